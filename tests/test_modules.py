"""Every module of torch's module database, unmodified, on masked tensors.

Four laws, train and eval: ``garbage`` (forward and backward do not depend on the payload; parameters get plain, finite
gradients), ``identity`` (an all-True mask gives the plain module), ``padding`` (a padded input gives the unpadded
result) and ``inference`` (inference mode changes nothing).
"""

import itertools
import warnings

import pytest
import torch
from torch import Tensor, nn

import masked_tensor as mt
from masked_tensor.engine.tensor import MaskedTensor, pair_of
from masked_tensor.testing import assert_close

from .helpers.database import MODULES, module_samples
from .helpers.harness import poisoned, random_mask
from .helpers.trees import tree_leaves, tree_map

PARTS = ("outputs", "input gradients", "parameter gradients", "buffers")
LAWS = ("garbage", "identity", "padding", "inference")
BY_NATURE = "its regions depend on the size of the input"
XFAIL = {
    **{(f"nn.Adaptive{kind}Pool{d}d", "padding"): BY_NATURE for kind in ("Avg", "Max") for d in (1, 2, 3)},
    **{(f"nn.FractionalMaxPool{d}d", "padding"): BY_NATURE for d in (2, 3)},
}
if not torch.__version__.startswith("2.14"):  # whose samples have none
    XFAIL["nn.LinearCrossEntropyLoss", "identity"] = "an ignored target gives a masked loss, where torch gives 0"


def parameters():
    for name, law, training in itertools.product(sorted(MODULES), LAWS, (True, False)):
        reason = XFAIL.get((name, law))
        marks = [pytest.mark.xfail(reason=reason, strict=True)] if reason else []
        yield pytest.param(name, law, training, marks=marks, id=f"{name}-{law}-{'train' if training else 'eval'}")


@pytest.mark.parametrize(("name", "law", "training"), list(parameters()))
def test_module(name, law, training):
    checked = 0
    for sample in module_samples(name, training):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # torch's own advice on its fast paths and deprecations
            checked += LAW[law](sample)
    if not checked and law == "padding":
        pytest.skip("no dimension that could be padded")
    assert checked, "the database has no sample that can be checked"


def is_mask(name):
    return isinstance(name, str) and ("mask" in name or "lengths" in name)


def masked(sample, choose):
    """The call's arguments with ``choose(index, tensor)`` giving (data, mask) or None for each tensor."""
    counter = itertools.count()
    constant_target = isinstance(sample.make(), nn.SoftMarginLoss)  # torch has no derivative by it

    def one(x):
        if not isinstance(x, Tensor):
            return x
        index = next(counter)
        found = choose(index, x)
        x = x.detach().clone() if found is None else mt.as_masked_tensor(*found).detach()
        return x.requires_grad_() if x.is_floating_point() and not (constant_target and index) else x

    args = tree_map(one, sample.args)
    kwargs = {k: v if is_mask(k) else tree_map(one, v) for k, v in sample.kwargs.items()}
    return args, kwargs


def outcome(module, args, kwargs):
    """Outputs, gradients of inputs and parameters, buffers."""
    torch.manual_seed(1)
    outputs = module(*args, **kwargs)
    leaves = [o for o in tree_leaves(outputs) if isinstance(o, Tensor)]
    sources = [x for x in tree_leaves((args, kwargs)) if isinstance(x, Tensor) and x.requires_grad]
    weights = list(module.parameters())
    total = [o.sin().sum() for o in leaves if o.requires_grad]
    if total:
        sum(t.filled(0) if type(t) is MaskedTensor else t for t in total).backward()
    grads, plain = [x.grad for x in sources], [p.grad for p in weights]
    assert all(type(g) is Tensor and torch.isfinite(g).all() for g in plain if g is not None), "parameter gradients"
    for x, g in zip(sources, grads, strict=True):
        if type(x) is MaskedTensor and g is not None:
            hidden = pair_of(g).data[~pair_of(x).mask]
            assert torch.equal(hidden, torch.zeros_like(hidden)), "a gradient under the mask is not 0"
    return outputs, grads, plain, [b.clone() for b in module.buffers()]


def check_garbage(sample):
    count = 0
    for which, pattern in (("first", "random"), ("all", "random"), ("all", "rows")):
        generator = torch.Generator().manual_seed(count)
        patterns = {}

        def choose(index, x, payload, which=which, pattern=pattern, generator=generator, patterns=patterns):
            if index > 0 and which == "first":
                return None
            if index not in patterns:
                patterns[index] = random_mask(x.shape, pattern, generator)
            mask = patterns[index]
            return (torch.where(mask, x, 0) if payload is None else poisoned(x, mask, payload)), mask

        reference = None
        for payload in (None, float("nan"), float("inf"), 1e30):
            args, kwargs = masked(sample, lambda i, x, p=payload: choose(i, x, p))
            got = outcome(sample.make(), args, kwargs)
            reference = reference or got
            for what, g, r in zip(PARTS, got, reference, strict=True):
                assert_close(g, r, message=f"{which}, {pattern}, payload {payload}, {what}: ")
        count += 1
    return count


def check_identity(sample):
    args, kwargs = masked(sample, lambda i, x: (x.detach().clone(), torch.ones(x.shape, dtype=torch.bool)))
    got = outcome(sample.make(), args, kwargs)
    args, kwargs = masked(sample, lambda i, x: None)
    for what, g, r in zip(PARTS, got, outcome(sample.make(), args, kwargs), strict=True):
        assert_close(g, r, message=f"{what}: ")
    return 1


def check_inference(sample):
    """In inference mode, results and buffers are those without gradients."""
    found = []
    for mode in (torch.no_grad(), torch.inference_mode()):
        generator = torch.Generator().manual_seed(0)
        args, kwargs = masked(sample, lambda i, x, g=generator: (x, random_mask(x.shape, "random", g)))
        module = sample.make()
        torch.manual_seed(1)
        with mode:
            found.append((module(*args, **kwargs), list(module.buffers())))
            if len(found) == 2:
                assert_close(found[1], found[0])
    return 1


ELEMENTWISE = (
    nn.ReLU, nn.GELU, nn.CELU, nn.ELU, nn.SELU, nn.SiLU, nn.Mish, nn.Sigmoid, nn.LogSigmoid, nn.Tanh, nn.Tanhshrink,
    nn.Softplus, nn.Softshrink, nn.Softsign, nn.Hardshrink, nn.Hardswish, nn.Hardtanh, nn.ReLU6, nn.LeakyReLU,
    nn.Threshold, nn.Softmax, nn.LogSoftmax, nn.Softmin, nn.Embedding,
)  # fmt: skip
SEQUENCE = (nn.TransformerEncoder, nn.TransformerEncoderLayer, nn.TransformerDecoderLayer, nn.Transformer, nn.RNNBase,
            nn.MultiheadAttention)  # fmt: skip


def batch_first(module):
    for part in module.modules():
        if hasattr(part, "batch_first"):
            return part.batch_first
    return False


def padded_dims(module, index, x, args):
    """The dimensions of argument ``index`` that hold a sequence, an image or a batch, so that it can be padded."""
    name = type(module).__name__
    if isinstance(module, SEQUENCE):
        if isinstance(module, nn.RNNBase) and index > 0:
            return ()
        return (0,) if x.dim() == 2 or not batch_first(module) else (1,)
    if isinstance(module, ELEMENTWISE):
        return tuple(range(x.dim()))
    if isinstance(module, nn.GroupNorm | nn.LocalResponseNorm | nn.Softmax2d | nn.PReLU):
        return tuple(range(2, x.dim()))
    if isinstance(module, nn.LayerNorm | nn.RMSNorm):
        return tuple(range(x.dim() - len(module.normalized_shape)))
    if isinstance(module, nn.BatchNorm1d) and x.dim() == 2:
        return (0,)
    if name[-1] == "d" and name[-2].isdigit():
        return tuple(range(x.dim() - int(name[-2]), x.dim()))
    if isinstance(module, nn.GLU):
        return tuple(d for d in range(x.dim()) if d != module.dim % x.dim())
    if isinstance(module, nn.Linear | nn.Bilinear):
        return tuple(range(x.dim() - 1))
    if isinstance(module, nn.RNNCellBase):
        return (0,) if x.dim() == 2 and index == 0 and len(args) == 1 else ()
    if name.endswith("Loss") and name not in ("CTCLoss", "LinearCrossEntropyLoss"):
        return (0,) if args[0].dim() >= 2 and x.shape[:1] == args[0].shape[:1] else ()
    return ()


def check_padding(sample):
    module = sample.make()
    if any(is_mask(k) and v is not None for k, v in sample.kwargs.items()):
        return 0  # masks of the unpadded size
    count = itertools.count()
    boxes = []

    def choose(index, x):
        next(count)
        dims = padded_dims(module, index, x, sample.args)
        if not dims:
            return None
        shape = [n + 2 * (d in dims) for d, n in enumerate(x.shape)]
        box = tuple(slice(n) for n in x.shape)
        data = x.new_full(shape, float("nan") if x.is_floating_point() else 10**6)
        mask = torch.zeros(shape, dtype=torch.bool)
        data[box], mask[box] = x.detach(), True
        boxes.append((index, box))
        return data, mask

    args, kwargs = masked(sample, choose)
    if not boxes:
        return 0
    got = outcome(sample.make(), args, kwargs)
    args, kwargs = masked(sample, lambda i, x: None)
    expected = outcome(sample.make(), args, kwargs)
    pairs = list(zip(tree_leaves(got[0]), tree_leaves(expected[0]), strict=True))
    if getattr(module, "return_indices", False):
        pairs = pairs[:1]  # an index counts the entries of the padded image
    if isinstance(module, nn.MultiheadAttention) and (module.bias_k is not None or module.add_zero_attn):
        pairs = pairs[:1]  # the weight of the added key comes after those of the padded ones
    for actual, plain in pairs:
        assert_close(narrowed(actual, plain, isinstance(module, nn.MultiheadAttention)), plain)
    assert_close(got[2:], expected[2:], message="parameter gradients and buffers: ")
    return 1


def narrowed(got, expected, zeros):
    """The part of a padded result that has the unpadded size; outside all is masked (or 0: weights of masked keys)."""
    if not isinstance(expected, Tensor) or type(got) is not MaskedTensor or got.shape == expected.shape:
        return got
    pair, box = pair_of(got), tuple(slice(n) for n in expected.shape)
    outside = pair.mask.clone()
    outside[box] = False
    assert not (outside & (pair.data != 0) if zeros else outside).any(), "valid results beyond the unpadded size"
    return mt.as_masked_tensor(pair.data[box].detach(), pair.mask[box])


LAW = {"garbage": check_garbage, "identity": check_identity, "padding": check_padding, "inference": check_inference}

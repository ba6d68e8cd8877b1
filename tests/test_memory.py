"""Who owns memory: nothing is promised of what somebody outside holds, and no mask is shared with anybody outside."""

import copy
import ctypes
import io
import pickle
import threading
import warnings
import weakref
from collections.abc import Callable
from functools import cache
from multiprocessing.reduction import ForkingPickler
from typing import Any

import numpy as np
import pytest
import torch
import torch.distributed.checkpoint as checkpoint
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.nn import functional as F

import masked_tensor as mt
from masked_tensor import MaskedTensor
from masked_tensor.engine.tensor import pair_of
from masked_tensor.errors import UnsupportedOpError
from masked_tensor.extend import Payload

VALUES = torch.arange(12.0, dtype=torch.float64).view(3, 4) + 1
MASK = torch.tensor([[1, 0, 1, 1], [0, 1, 1, 0], [1, 1, 0, 1]], dtype=torch.bool)
NAN = float("nan")


def example() -> MaskedTensor:
    return mt.masked_tensor(VALUES, MASK)


def reloaded(pair: list[MaskedTensor]) -> Any:
    file = io.BytesIO()
    torch.save(pair, file)
    file.seek(0)
    return torch.load(file)


def given_data(x: MaskedTensor) -> tuple[MaskedTensor, MaskedTensor]:
    other = mt.masked_tensor(torch.zeros_like(VALUES), True)
    other.data = x
    return x, other


@torch.compile(backend="aot_eager")
def a_view(x: MaskedTensor) -> torch.Tensor:
    return x.view(3, 4)


@torch.compile(backend="aot_eager")
def a_result_and_its_view(x: MaskedTensor) -> tuple[torch.Tensor, torch.Tensor]:
    y = x.relu()
    return y, y.view(3, 4)


@torch.compile(backend="aot_eager")
def wrapped_by_a_graph(t: torch.Tensor) -> MaskedTensor:
    return mt.as_masked_tensor(t, MASK)


def parameter(x: MaskedTensor) -> tuple[MaskedTensor, MaskedTensor]:
    return x, torch.nn.Parameter(x, requires_grad=False)  # type: ignore[return-value]


# Ways to get two masked tensors of one memory: they are of one family.
SHARES: dict[str, Callable[[MaskedTensor], Any]] = {
    "itself": lambda x: (x, x),
    "view": lambda x: (x, x[:]),
    "transposed twice": lambda x: (x, x.t().t()),
    "two views": lambda x: (x.view(3, 4), x[:]),
    "detach": lambda x: (x, x.detach()),
    "data": lambda x: (x, x.data),
    "copy.copy": lambda x: (x, copy.copy(x)),
    "as_masked_tensor": lambda x: (x, mt.as_masked_tensor(x)),
    "given data": given_data,
    "parameter": parameter,
    "contiguous": lambda x: (x, x.contiguous()),
    "deepcopy of both": lambda x: copy.deepcopy([x, x[:]]),
    "save of both": lambda x: reloaded([x, x[:]]),
    "compiled view": lambda x: (x, a_view(x)),
    "two of a graph": a_result_and_its_view,
}


def poison_parts(x: MaskedTensor) -> None:
    names, _ = x.__tensor_flatten__()
    getattr(x, names[0])[~MASK] = NAN


def poison_address(x: MaskedTensor) -> None:
    """As a C extension would: no version counter moves."""
    data = x.get_data().contiguous()
    memory = (ctypes.c_double * 12).from_address(data.data_ptr())
    for place in np.flatnonzero(~MASK.numpy()):
        memory[place] = NAN


def poison_in_a_hook(x: MaskedTensor) -> None:
    module = torch.nn.Identity()
    module.register_forward_hook(lambda m, args, result: result.get_data().__setitem__(~MASK, NAN))
    module(x)


def poison_a_buffer(x: MaskedTensor) -> None:
    module = torch.nn.Module()
    module.register_buffer("x", x)
    for buffer in module.buffers():
        buffer.get_data()[~MASK] = NAN  # type: ignore[operator]


# Ways for somebody outside to write under the mask.
POISONS: dict[str, Callable[[MaskedTensor], Any]] = {
    "get_data": lambda x: x.get_data().__setitem__(~MASK, NAN),
    "numpy of it": lambda x: x.get_data().numpy().__setitem__(~MASK.numpy(), NAN),
    "view of it": lambda x: x.get_data().t()[:].__setitem__(~MASK.t(), NAN),
    "function": lambda x: mt.get_data(x).masked_fill_(~MASK, NAN),
    "of a view": lambda x: x[1:].get_data().__setitem__(~MASK[1:], NAN),
    "parts": poison_parts,
    "address": poison_address,
    "dlpack": lambda x: torch.from_dlpack(x.get_data()).__setitem__(~MASK, NAN),
    "hook": poison_in_a_hook,
    "buffer": poison_a_buffer,
}
WEIGHT = torch.rand(4, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
FAMILIES: dict[str, Callable[[MaskedTensor, torch.Tensor], Any]] = {
    "sum": lambda x, w: (x * w[0]).sum() + x.sum(),
    "linear": lambda x, w: F.linear(x, w).sum(),
    "matmul": lambda x, w: (x @ w).sum(),
    "softmax": lambda x, w: (x.softmax(-1) * w[0]).sum(),
    "layer_norm": lambda x, w: (F.layer_norm(x, (4,), w[0]) * w[1]).sum(),
    "cumsum": lambda x, w: (x.cumsum(-1) * w[0]).sum(),
    "amax": lambda x, w: (x.amax(0) * w[0]).sum(),
    "conv": lambda x, w: F.conv1d(x.unsqueeze(1), w[:, None, :3], padding=1).sum(),
    "view of a product": lambda x, w: F.linear((x * 2).relu()[1:], w).sum(),
    "logsumexp": lambda x, w: (x.logsumexp(1) * w[0, :3]).sum(),
}


def outcome(x: MaskedTensor, family: Callable[[MaskedTensor, torch.Tensor], Any]) -> list[float]:
    w = WEIGHT.clone().requires_grad_()
    result = family(x, w)
    result.backward()
    assert w.grad is not None
    return [result.item(), *w.grad.flatten().tolist()]


@cache
def clean(name: str) -> list[float]:
    return outcome(example(), FAMILIES[name])


@pytest.mark.parametrize("poison", POISONS)
@pytest.mark.parametrize("share", SHARES)
def test_no_result_depends_on_what_was_written_under_the_mask_from_outside(share: str, poison: str) -> None:
    for side in (0, 1):
        pair = SHARES[share](example())
        later = pair[0].view(3, 4)
        POISONS[poison](pair[side])
        for k, x in enumerate((*pair, later, pair[0][:], pair[1].detach())):
            assert pair_of(x).payload is Payload.ANY
            for name, family in list(FAMILIES.items())[k::4]:
                assert outcome(x, family) == pytest.approx(clean(name), rel=1e-9), name


def put(x: Any, value: Any, mask: Any = True) -> None:
    x.copy_(mt.masked_tensor(torch.full((3, 4), value, dtype=torch.float64), mask))


WRITES: dict[str, Callable[[Any], Any]] = {
    "an entry": lambda x: x.__setitem__((0, 1), 100.0),
    "a row": lambda x: x.__setitem__(1, 100.0),
    "a column": lambda x: x[:, 1].fill_(100.0),
    "all": lambda x: x.fill_(7.0),
    "a product": lambda x: x.mul_(2),
    "zeros": lambda x: x.zero_(),
    "scattered": lambda x: put(x, 5.0, ~MASK),
    "less": lambda x: x.masked_fill_(MASK, 3.0),
}


def assert_sound(x: MaskedTensor) -> None:
    """Its sum and gradients are those of what it shows, and a promise that it makes is kept."""
    pair = pair_of(x)
    shown = [v for row in x.tolist() for v in row if v is not None]
    assert x.sum().item() == pytest.approx(sum(shown))
    w = torch.ones(3, 4, dtype=torch.float64, requires_grad=True)
    (x * w).sum().backward()
    assert torch.equal(w.grad, torch.where(pair.mask, pair.data, 0))  # type: ignore[arg-type]
    if pair.payload is Payload.ZERO:
        assert not pair.data[~pair.mask].any()


@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("share", SHARES)
def test_a_write_on_one_side_is_seen_on_the_other(share: str, write: str) -> None:
    for side in (0, 1):
        pair, reference = SHARES[share](example()), example()
        if type(pair[side]) is torch.nn.Parameter:
            continue
        kept = pair[0] * 1
        WRITES[write](pair[side]), WRITES[write](reference)
        for x in pair:
            assert x.tolist() == reference.tolist()
            assert_sound(x)
        assert kept.tolist() == example().tolist()


# Ways to share memory with what has another validity, or none: nothing is promised then.
OUTSIDE: dict[str, Callable[[], tuple[Any, Any]]] = {
    "wrapped": lambda: (t := VALUES.clone(), mt.as_masked_tensor(t, MASK)),
    "wrapped twice": lambda: (mt.as_masked_tensor(t := VALUES.clone(), MASK), mt.as_masked_tensor(t, MASK.roll(1, 0))),
    "wrapped data": lambda: ((x := example()).get_data(), x),
    "plain data given": lambda: (t := VALUES.clone(), given_plain(t)),
    "data wrapped": lambda: ((x := example()), mt.as_masked_tensor(x.get_data(), MASK.roll(1, 0))),
    "another process": lambda: ((x := example()), ForkingPickler.loads(ForkingPickler.dumps(x))),
    "view of wrapped": lambda: (t := VALUES.clone(), mt.as_masked_tensor(t, MASK).t().t()),
    "wrapped by a graph": lambda: (t := VALUES.clone(), wrapped_by_a_graph(t)),
}


def given_plain(t: torch.Tensor) -> MaskedTensor:
    x = example()
    x.data = t
    return x


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("write", [lambda d: d.__setitem__(0, 3.0), lambda d: d.mul_(2), lambda d: d[1:].fill_(5)])
def test_a_write_into_data_is_none_to_autograd(write: Callable[[Any], Any], masked: bool) -> None:
    """As in torch, backward uses what is there by then, and raises nothing."""

    def run(x: Any) -> list[Any]:
        w = torch.linspace(1, 2, 4, dtype=torch.float64).requires_grad_()
        k = x * w
        y, seen = (k * k).sum(), k[:2]
        write(k.data)
        assert k.requires_grad
        assert not k.data.requires_grad
        grads = torch.autograd.grad(y, w, retain_graph=True)
        return [k.detach(), seen.detach(), *grads, *torch.autograd.grad(k.sum() + seen.sum(), w)]

    mask = MASK if masked else torch.ones_like(MASK)
    theirs = run(torch.where(mask, VALUES, 0)) if not masked else None
    ours = run(mt.masked_tensor(VALUES, mask))
    assert_sound(ours[0])
    for one, other in zip(ours, theirs or [], strict=False):
        torch.testing.assert_close(one.filled(0) if type(one) is MaskedTensor else one, other)


@pytest.mark.parametrize("made", [torch.zeros, lambda *size: torch.nn.Parameter(torch.zeros(*size))])
def test_plain_data_cannot_be_masked(made: Callable[..., Any]) -> None:
    plain = made(3, 4)
    for masked in (example(), example().requires_grad_()):
        with pytest.raises(mt.MaskedWriteError, match=r"plain.data = masked"):
            plain.data = masked
    assert plain.tolist() == torch.zeros(3, 4).tolist()
    layer = torch.nn.Linear(4, 3)
    with pytest.raises(mt.MaskedWriteError, match=r"plain.data = masked"):
        torch.nn.utils.vector_to_parameters(mt.masked_tensor(torch.zeros(15)), layer.parameters())
    x = torch.nn.Parameter(example())  # type: ignore[arg-type]
    x.data = example() * 2
    assert x.tolist() == (example() * 2).tolist()


@pytest.mark.parametrize("write", [w for w in WRITES if w != "scattered"])
@pytest.mark.parametrize("share", OUTSIDE)
def test_nothing_is_promised_of_memory_that_is_shared_without_a_family(share: str, write: str) -> None:
    for side in (0, 1):
        pair = OUTSIDE[share]()
        before = [x.get_mask() for x in pair if type(x) is MaskedTensor]
        WRITES[write](pair[side])
        for x in pair:
            if type(x) is MaskedTensor:
                assert_sound(x)
                assert pair_of(x).payload is Payload.ANY
        if type(pair[1 - side]) is MaskedTensor:
            assert torch.equal(pair[1 - side].get_mask(), before[-(side == 0)])  # validity is copied


def test_masks_are_handed_out_and_taken_in_as_copies() -> None:
    for make in (mt.masked_tensor, mt.as_masked_tensor, lambda d, m: mt.masked_where(~m, d)):
        mask = torch.tensor([True, False])
        x = make(torch.ones(2), mask)
        y = x + 1
        mask.fill_(True)
        x.mask[0] = False
        mt.get_mask(x).fill_(False)
        assert x.tolist() == [1.0, None]
        assert y.tolist() == [2.0, None]
    sparse, stored = torch.eye(2).to_sparse().coalesce(), torch.tensor([True, False])
    mask = torch.sparse_coo_tensor(sparse.indices(), stored, (2, 2), is_coalesced=True, check_invariants=False)
    x = mt.as_masked_tensor(sparse, mask)
    stored.fill_(True), x.get_mask()._values().fill_(True)
    assert x.to_dense().tolist() == [[1.0, None], [None, None]]


@pytest.mark.parametrize("make", [mt.masked_tensor, mt.as_masked_tensor])
@pytest.mark.parametrize("shape", [(4, 4), (4, 1), (3, 5), (96, 128)])
def test_tensors_made_with_one_mask_share_its_copy(make: Any, shape: tuple[int, ...]) -> None:
    mask = torch.rand(shape) < 0.5
    kept, size = mask.clone(), (shape[0], max(shape[1], 2))
    x, y = (make(torch.ones(size), mask) for _ in range(2))
    assert x._pair.mask is y._pair.mask
    assert (x + y)._pair.mask is x._pair.mask
    mask.numpy()[...] = ~mask.numpy()  # which no version of the mask counts
    z = make(torch.ones(size), mask)
    assert torch.equal(z.mask, ~kept.expand(size))
    assert z._pair.mask is not x._pair.mask
    y[0] = 5.0
    y[1] = None
    for made in (x, make(torch.ones(size), kept)):
        assert torch.equal(made.mask, kept.expand(size))
    held = weakref.ref(z._pair.mask)
    del z
    assert held() is None  # a copy is not kept for those to come


def test_copies_of_masks_are_not_shared_where_they_could_not_serve() -> None:
    mask = torch.tensor([True, False])
    with torch.inference_mode():
        inner = mt.masked_tensor(torch.ones(2), mask)
    outer, w = mt.masked_tensor(torch.ones(2), mask), torch.ones(2, requires_grad=True)
    with torch.inference_mode():
        again = mt.masked_tensor(torch.ones(2), mask)
    assert len({id(x._pair.mask) for x in (inner, outer, again)}) == 3
    (w * outer).sum().backward()
    assert w.grad is not None
    assert w.grad.tolist() == [1.0, 0.0]
    flat = mt.as_masked_tensor(torch.ones(4, 2), mask.view(1, 2))  # the same place, other strides
    assert flat._pair.mask is not mt.as_masked_tensor(torch.ones(4, 2), mask.expand(4, 2).contiguous())._pair.mask
    with FakeTensorMode(allow_non_fake_inputs=True):  # a tracer cannot tell whether two masks are equal
        assert mt.masked_tensor(torch.ones(2), mask).shape == (2,)


def test_pickles_of_one_memory_that_are_two_have_two_families() -> None:
    x, y = pickle.loads(pickle.dumps([example(), example()[:]]))
    first, second = pickle.loads(pickle.dumps([(z := example()), z[:]]))  # a plain pickle writes the memory twice
    for a, b in ((x, y), (first, second)):
        a[...] = 5.0
        assert b.tolist() == example().tolist()
        b[...] = 0.0
        assert a.sum().item() == 60
    big = mt.masked_tensor(torch.zeros(1000), True)
    size = len(pickle.dumps(big))
    assert big[0].item() == 0
    assert len(pickle.dumps(big)) < size + 1000, "a family adds no data"


def test_a_compact_mask_stays_compact_and_is_handed_out_dense() -> None:
    x = mt.from_lengths(torch.ones(4, 5, 6), [1, 2, 3, 5])
    assert x.get_mask().untyped_storage().nbytes() == 120
    assert pair_of(x).mask.stride()[-1] == 0
    assert pair_of(x).mask.untyped_storage().nbytes() == 20


def test_get_data_is_another_tensor() -> None:
    x = example()
    x.get_data().requires_grad_()
    assert not (x * 2).requires_grad


def test_get_data_of_sparse_data_is_a_copy() -> None:
    for tracked in (False, True):
        x = mt.as_masked_tensor(torch.eye(2).to_sparse()).requires_grad_(tracked)
        data = (x * 2).get_data() if tracked else x.get_data()
        assert data.to_dense().diagonal().tolist() == ([2.0, 2.0] if tracked else [1.0, 1.0])
        if tracked:
            data.to_dense().sum().backward()
            assert x.grad.to_dense().tolist() == [[2.0, None], [None, 2.0]]  # type: ignore[union-attr]
        else:
            data._values().fill_(NAN)
            assert x.to_dense().sum().item() == 2


def test_to_numpy_ma_of_lazy_data() -> None:
    x = mt.masked_tensor([1 + 1j, None, 2j])
    assert x.conj().to_numpy_ma().tolist() == [1 - 1j, None, -2j]
    assert x.conj().imag.to_numpy_ma().tolist() == [-1.0, None, -2.0]


def test_a_promise_survives_compiled_calls() -> None:
    torch._dynamo.reset()
    x, calls = example(), []
    f = torch.compile(lambda v: v * 2, backend=lambda g, args: calls.append(g) or g.forward)
    first = f(x)
    assert pair_of(x).payload is Payload.ZERO
    f(x), f(first)
    assert len(calls) <= 2


def test_get_data_in_a_compiled_function() -> None:
    torch._dynamo.reset()
    x = example()
    data = torch.compile(mt.get_data, backend="aot_eager")(x)
    data[~MASK] = NAN
    assert x.sum().item() == example().sum().item()


# ------------------------------------------------------------------------------------------------------ hard masks

COPIES: dict[str, Callable[[MaskedTensor], Any]] = {
    "clone": lambda x: x.clone(),
    "to": lambda x: x.to(torch.float32),
    "half": lambda x: x.half(),
    "contiguous": lambda x: x.t().contiguous(),
    "deepcopy": copy.deepcopy,
    "pickle": lambda x: pickle.loads(pickle.dumps(x)),
    "save": lambda x: reloaded([x])[0],
    "view": lambda x: x.t(),
    "detach": lambda x: x.detach(),
    "as_masked_tensor": mt.as_masked_tensor,
    "module": lambda x: converted(x).float().x,
    "module state": lambda x: loaded(converted(x)).x,
}


def converted(x: MaskedTensor) -> Any:
    module = torch.nn.Module()
    module.x = torch.nn.Parameter(x)
    return module.half()


def loaded(module: Any) -> Any:
    module.load_state_dict({"x": torch.ones(3, 4)})
    return module


@pytest.mark.parametrize("way", COPIES)
def test_a_copy_of_a_hard_mask_is_hard(way: str) -> None:
    x = COPIES[way](example().harden_mask())
    with torch.no_grad():
        x[:] = 5.0
    assert x.get_mask().sum() == MASK.sum()
    soft = COPIES[way](example().harden_mask().soften_mask())
    with torch.no_grad():
        soft[:] = 5.0
    assert soft.get_mask().all()


def test_a_hard_mask_stays_hard_over_new_data() -> None:
    x = example().harden_mask()
    x.data = example()
    x[:] = 5.0
    assert torch.equal(x.get_mask(), MASK)


# ---------------------------------------------------------------------------------------------- no way past the mask

POINTERS: dict[str, Callable[[MaskedTensor], Any]] = {
    "data_ptr": lambda x: x.data_ptr(),
    "untyped_storage": lambda x: x.untyped_storage(),
    "storage": lambda x: x.storage(),
    "dlpack capsule": lambda x: torch.utils.dlpack.to_dlpack(x),
    "dlpack": lambda x: torch.from_dlpack(x),
    "numpy dlpack": lambda x: np.from_dlpack(x),
    "numpy": lambda x: x.numpy(),
    "array": lambda x: np.asarray(x),
    "cuda array": lambda x: x.__cuda_array_interface__,
    "buffer": lambda x: memoryview(x),  # type: ignore[arg-type]
    "frombuffer": lambda x: torch.frombuffer(x, dtype=torch.float64),  # type: ignore[call-overload]
    "ctypes": lambda x: (ctypes.c_char * 8).from_buffer(x),  # type: ignore[arg-type]
    "set_ of its storage": lambda x: torch.empty(0, dtype=torch.float64).set_(x.untyped_storage(), 0, (2,), (1,)),
    "set_": lambda x: torch.empty(0, dtype=torch.float64).set_(x),
    "set_ with a geometry": lambda x: torch.empty(0, dtype=torch.float64).set_(x, 0, (2,), (1,)),
    "set_ of itself": lambda x: x.set_(torch.ones(2, dtype=torch.float64)),
    "as_subclass": lambda x: x.as_subclass(torch.Tensor),
    "resize_": lambda x: x.resize_(40),
    "apply_": lambda x: x.apply_(abs),
    "torch's own data_ptr": lambda x: torch.Tensor.data_ptr(x),
    "torch's own storage": lambda x: torch.Tensor.untyped_storage(x).data_ptr(),
    "torch's own bytes": lambda x: bytes(torch.Tensor.untyped_storage(x)),
    "const_data_ptr": lambda x: x.const_data_ptr(),  # type: ignore[attr-defined]
}


@pytest.mark.parametrize("way", POINTERS)
def test_nobody_outside_gets_the_memory_of_a_masked_tensor(way: str) -> None:
    for x in (example(), example()[1:], mt.as_masked_tensor(VALUES.clone(), MASK)):
        with pytest.raises((UnsupportedOpError, ValueError, RuntimeError, TypeError, AttributeError)):
            POINTERS[way](x)
        assert_sound(x) if x.shape == (3, 4) else None


def test_as_subclass_of_its_own_class_is_a_view() -> None:
    x = example()
    x.as_subclass(MaskedTensor)[0] = 9.0
    assert x[0].tolist() == [9.0] * 4


@pytest.mark.parametrize("save", ["save", "async_save"])
def test_distributed_checkpoints(save: str, tmp_path: Any) -> None:
    hard = torch.nn.Parameter(example().harden_mask())
    written = example()
    written[0, 1] = 5.0
    state = {"x": example(), "p": hard, "written": written, "inner": {"wrapped": mt.as_masked_tensor(VALUES, MASK)}}
    empty = lambda: mt.masked_tensor(torch.zeros(3, 4, dtype=torch.float64), False)  # noqa: E731
    read = {"x": empty(), "p": torch.nn.Parameter(empty()), "written": empty(), "inner": {"wrapped": empty()}}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # no process group
        saved = getattr(checkpoint, save)(state, checkpoint_id=tmp_path, no_dist=True)
        if save == "async_save":
            saved.result()
        checkpoint.load(read, checkpoint_id=tmp_path, no_dist=True)
    for name in ("x", "p", "written"):
        assert read[name].tolist() == state[name].tolist()  # type: ignore[attr-defined]
    assert read["inner"]["wrapped"].tolist() == example().tolist()  # type: ignore[index]


# -------------------------------------------------------------------------------------------------- what a write costs


ROW = mt.masked_tensor(torch.ones(2000), torch.arange(2000) % 2 == 0)


def allocated(work: Callable[[], Any]) -> int:
    """The bytes that all allocations of ``work`` ask for."""
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True) as profile:
        work()
    return sum(max(0, e.self_cpu_memory_usage) for e in profile.key_averages())


@pytest.mark.parametrize(
    "write",
    [
        lambda x, i: x.__setitem__(i, 1.0),
        lambda x, i: x.__setitem__(i, torch.ones(2000)),
        lambda x, i: x.__setitem__(i, ROW),
        lambda x, i: x[i].fill_(2.0),
        lambda x, i: x[i].add_(1.0),
        lambda x, i: x.t()[:, i].mul_(2.0),
        lambda x, i: x.__setitem__(i, x[i - 1] * 2),
    ],
)
def test_a_write_costs_what_it_writes(write: Callable[[MaskedTensor, int], Any]) -> None:
    x = mt.masked_tensor(torch.zeros(200, 2000), torch.arange(2000) % 3 == 0)
    write(x, 0)  # the first makes the family's buffer
    assert allocated(lambda: [write(x, i) for i in range(1, 11)]) < 10 * 16 * 2000 + 50_000


def test_a_tracked_write_keeps_what_it_writes() -> None:
    w = torch.ones(2000, requires_grad=True)
    x = mt.masked_tensor(torch.zeros(200, 2000), torch.arange(2000) % 3 == 0)

    def fill() -> None:
        for i in range(20):
            x[i] = w * i

    fill()
    assert allocated(fill) < 20 * 24 * 2000 + 100_000
    (x[:20] * 2).sum().backward()
    assert w.grad is not None
    assert w.grad.tolist() == [2 * sum(range(20))] * 2000


def test_a_tracked_write_saves_no_mask() -> None:
    """What was valid before a write is not kept for backward, of what was written only that all of it is valid."""
    w = torch.ones(2000, requires_grad=True)
    x = mt.masked_tensor(torch.zeros(20, 2000), torch.arange(2000) % 3 == 0)
    saved: dict[int, int] = {}

    def pack(t: torch.Tensor) -> torch.Tensor:
        saved[t.untyped_storage().data_ptr()] = t.untyped_storage().nbytes()
        return t

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
        for i in range(5):
            x[i] = w * i
    assert sum(saved.values()) < 100
    x.sum().backward()
    assert w.grad is not None
    assert w.grad.tolist() == [sum(range(5))] * 2000


def test_gradients_of_what_was_there_before_a_write_keep_its_masked_entries() -> None:
    """The gradient that goes on through writes is added to another use's: nothing is lost, masked entries stay 0."""
    x = mt.masked_tensor(torch.ones(3, 4), torch.arange(4) % 2 == 0).requires_grad_()
    y = x * 2
    z = y * 3
    y[0] = torch.full((4,), 5.0, requires_grad=True)
    (y.sum() + z.sum()).backward()
    assert x.grad is not None
    assert x.grad.tolist() == [[6.0, None, 6.0, None], [8.0, None, 8.0, None], [8.0, None, 8.0, None]]


def test_a_mask_that_was_written_is_not_kept() -> None:
    x = mt.masked_tensor(torch.zeros(4, 5), torch.rand(4, 5) < 0.5)
    first = weakref.ref(pair_of(x).mask)
    x[0] = 1.0
    assert x.count() >= 5
    assert first() is None
    assert pickle.loads(pickle.dumps([x, x[1:]]))[1].tolist() == x[1:].tolist()


def test_repr_allocates_little() -> None:
    x = mt.masked_tensor(torch.zeros(1000, 1000), torch.rand(1000, 1000) < 0.5)
    assert allocated(lambda: repr(x)) < 1_000_000


def test_threads_that_write_disjoint_rows_lose_nothing() -> None:
    for write in (lambda x, i: x.__setitem__(i, 1.0), lambda x, i: x[i].copy_(torch.ones(4))):
        x = mt.masked_tensor(torch.zeros(400, 4), False)
        threads = [
            threading.Thread(target=lambda k, write=write, x=x: [write(x, i) for i in range(k, 400, 4)], args=(k,))
            for k in range(4)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert x.get_mask().all()
        assert x.sum().item() == 1600


@pytest.mark.parametrize("size", [3, 3000])
@pytest.mark.parametrize("own", [False, True])
def test_what_backward_needs_is_not_overwritten(size: int, own: bool) -> None:
    """At every size a product whose factor is written afterwards is refused, as torch refuses it of plain tensors."""
    leaf, w = mt.masked_tensor(torch.ones(2, size), torch.rand(2, size) < 0.5).requires_grad_(), torch.ones(size)
    for made in (leaf, torch.ones(2, size, requires_grad=True)):
        x = made * 1
        y = (x * x if own else x * w.requires_grad_()).sum()
        x.add_(1)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            y.backward()


def test_a_write_in_inference_mode_is_a_write() -> None:
    for write in (lambda x: x.__setitem__(2, 5.0), lambda x: x.mul_(2), lambda x: x.t().add_(1)):
        x, w = mt.masked_tensor([1.0, None, 3.0]), torch.ones(3, requires_grad=True)
        y = (x * w).sum()
        with torch.inference_mode():
            write(x)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            y.backward()


def test_a_mask_written_in_inference_mode_serves_training() -> None:
    def mask_entry(x: MaskedTensor) -> None:
        x[0] = mt.masked_tensor(2.0, False)

    writes: list[Callable[[MaskedTensor], Any]] = [
        mask_entry,
        lambda x: x.__setitem__(1, 5.0),
        lambda x: x.masked_fill_(torch.tensor([True, True, False]), 1.0),
        lambda x: x.mul_(mt.masked_tensor([1.0, 1.0, None])),
        lambda x: x[1:].fill_(2.0),
    ]
    for write in writes:
        for family in (False, True):
            x, w = mt.masked_tensor([1.0, None, 3.0]), torch.ones(3, requires_grad=True)
            view = x[:] if family else x
            with torch.inference_mode():
                write(x)
                x.sum(), view.sum()
            (x * w).exp().sum().backward()
            (view * w).exp().sum().backward()
            assert w.grad is not None


@pytest.mark.parametrize("order", [1, 2])
def test_gradients_of_a_loop_that_fills_rows(order: int) -> None:
    """Against the same loop over a list that is stacked; rows are read, written again, and masked."""

    def filled(a: torch.Tensor, written: bool) -> Any:
        x = mt.masked_tensor(torch.zeros(4, 3, dtype=a.dtype), False) if written else [None] * 4
        rows = [mt.as_masked_tensor(a[i], MASK[0, :3].roll(i)) for i in range(4)]
        x[0] = rows[0] * 2
        for i in range(1, 4):
            x[i] = x[i - 1].exp() * rows[i] + a[i]
        x[1] = (x[3].clone() * a[0]).sin()
        x[2] = mt.masked_tensor(torch.ones(3, dtype=a.dtype), False)
        whole = x if written else torch.stack(x)
        return ((whole * whole).sum() + (x[1] * x[0]).sum()).filled(0.0)

    a = (torch.arange(12.0, dtype=torch.float64).view(4, 3) / 10).requires_grad_()
    results = []
    for written in (True, False):
        grads = torch.autograd.grad(filled(a, written), a, create_graph=order == 2)[0]
        results.append(torch.autograd.grad(grads.square().sum(), a)[0] if order == 2 else grads)
    torch.testing.assert_close(*results)


def test_gradients_of_two_leaves_share_no_memory() -> None:
    weight = torch.rand(3)
    for loss in (
        lambda a, b: (a + b).sum(),
        lambda a, b: ((a + b) * weight).sum(),
        lambda a, b: (a - b + a).exp().sum(),
        lambda a, b: ((a.view(1, 3) + b.view(1, 3)) * weight).sum(),  # one gradient, of which each gets a view
    ):
        a, b = (mt.masked_tensor([1.0, None, 3.0], requires_grad=True) for _ in range(2))
        loss(a, b).backward()
        before = b.grad.tolist()  # type: ignore[union-attr]
        a.grad.mul_(2), a.grad.__setitem__(1, 7.0)  # type: ignore[union-attr]
        assert b.grad.tolist() == before  # type: ignore[union-attr]
        assert b.grad.sum().item() == pytest.approx(before[0] + before[2])  # type: ignore[union-attr]


@pytest.mark.skipif(torch.__version__ < "2.13", reason="more of torch's own holds it")
def test_the_gradient_of_a_leaf_that_nobody_else_holds_is_not_copied() -> None:
    leaf = mt.masked_tensor(torch.rand(100, 1000), torch.rand(100, 1000) < 0.5).requires_grad_()
    for view in (lambda x: x, lambda x: x.view(1000, 100), lambda x: x.t()[None]):
        y, ones = view(leaf) * 2.0, torch.ones_like(view(leaf.detach()))
        made = allocated(lambda y=y, ones=ones: torch.autograd.grad(y, leaf, ones))
        assert made < 2.5 * 400_000  # the gradient with 0 outside the mask, and that of the product


def test_a_gradient_is_taken_as_it_is_where_nobody_else_holds_it() -> None:
    """Autograd asks for it without its history, and then it may be the same tensor; a hook that asks gets another."""
    kept: list[Any] = []

    def after(x: torch.Tensor) -> None:
        found, x.grad = x.grad, None
        assert found is not None
        kept.append((found, found.detach()))

    for hook in (None, "before", "after"):
        x = mt.masked_tensor([1.0, None, 3.0], requires_grad=True)
        if hook == "before":
            x.register_hook(kept.append)
        elif hook == "after":
            x.register_post_accumulate_grad_hook(after)
        for times in (1, 2):
            (x * x).sum().backward()
            if hook == "after":
                found, detached = kept.pop()
                assert found is not detached
                assert found.tolist() == detached.tolist() == [2.0, None, 6.0]
                continue
            assert x.grad is not None
            assert x.grad.tolist() == [2.0 * times, None, 6.0 * times]
            assert (x.grad.requires_grad, x.grad.grad_fn) == (False, None)
        if hook == "before":
            assert [g.tolist() for g in kept] == [[2.0, None, 6.0]] * 2  # accumulating does not write into them
            kept.clear()

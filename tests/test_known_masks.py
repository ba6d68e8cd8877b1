"""What is known of a mask without a look at it changes what an op costs, never its result.

Known is a mask that is True everywhere, by where it lies; and of a mask that was taken in, the number of valid entries,
in all and at least in the slices along each dimension.  Each op of torch's database runs twice, the second time with
all of this forgotten: masks, values and gradients are the same.
"""

import itertools
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

import masked_tensor as mt
from masked_tensor import masks, settings
from masked_tensor.engine.tensor import pair_of
from masked_tensor.masks import known

from .helpers import database
from .helpers.backward import differentiate
from .helpers.harness import assert_keeps_promise, assert_same, differentiable
from .helpers.trees import tree_leaves, tree_map

ALL = "MASKED_TENSOR_KNOWN" in os.environ  #: all of torch's operators, not every eighth
ALWAYS = {
    "add",
    "mul",
    "sum",
    "mean",
    "amax",
    "any",
    "std",
    "var",
    "mm",
    "addmm",
    "count_nonzero",
    "nn.functional.linear",
    "nn.functional.mse_loss",
}
NAMES = sorted({*[n for n in database.ENTRIES if "jiter" not in n][:: 1 if ALL else 8], *ALWAYS})
WRITTEN = "to_sparse", "empty"  #: results that are not compared: sparse, or memory as it was found


def give_anew(shape: Any, device: torch.device, value: bool = True) -> Tensor:
    return torch.full((), value, dtype=torch.bool, device=device).expand(tuple(shape))


@contextmanager
def nothing_known() -> Iterator[None]:
    """Every mask is one of which nothing is known."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(known, "KNOWN", {})
        patch.setattr(masks, "full", give_anew)
        patch.setattr(known, "all_true", lambda shape: give_anew(shape, torch.device("cpu")))
        patch.setattr(masks, "note_facts", lambda mask: None)
        patch.setattr(masks, "is_all_valid", lambda mask: False)
        yield


def outcome(sample: database.Sample, masked: str) -> tuple[list[Any], list[Any]]:
    """Results and gradients with tensors that are valid everywhere, but for those that are ``masked`` at random."""
    generator, places = torch.Generator().manual_seed(0), itertools.count()

    def give(x: Any) -> Any:
        if not isinstance(x, Tensor):
            return x
        if x.layout is not torch.strided or x.is_conj() or x.is_neg():
            return x
        valid = torch.rand(x.shape, generator=generator) < 0.2
        if valid.dim() > 1 and valid.numel():
            valid.select(-1, 0).fill_(True)  # every row has a valid entry, columns have none
        number = next(places)
        hidden = masked == "all" or (masked == "first" and number == 0) or (masked == "rest" and number > 0)
        made = mt.masked_tensor(x.detach().clone(), valid if hidden else None)
        return made.requires_grad_() if differentiable(x) else made

    args, kwargs = tree_map(give, (sample.args, sample.kwargs))
    torch.manual_seed(1)
    found = [x for x in tree_leaves(sample.op(*args, **kwargs)) if isinstance(x, Tensor)]
    for x in found:
        assert_keeps_promise(x)
    inputs = [x for x in tree_leaves((args, kwargs)) if isinstance(x, Tensor) and x.requires_grad]
    tracked = [x for x in found if x.requires_grad and not any(x is i for i in inputs)]
    seeds = [
        torch.linspace(0.5, 1.5, x.shape.numel(), dtype=torch.float64).reshape(x.shape).to(x.dtype) for x in tracked
    ]
    grads = differentiate(tracked, inputs, seeds, allow_unused=True) if tracked and inputs else []
    return found, [g for g in grads if g is not None]


def attempt(sample: database.Sample, masked: str) -> Any:
    """The outcome, or what was raised."""
    try:
        return outcome(sample, masked)
    except (RuntimeError, TypeError, ValueError, NotImplementedError) as error:
        return type(error)


@pytest.mark.filterwarnings("ignore")
def test_what_is_known_changes_no_result() -> None:
    same = 0
    for name in NAMES:
        for sample in database.samples(name, limit=8 if name in ALWAYS else 1):
            for masked in ("none", "all", "first", "rest"):
                found = attempt(sample, masked)
                with nothing_known():
                    expected = attempt(sample, masked)
                if isinstance(found, type) or isinstance(expected, type):
                    assert found is expected, f"{name}: {found}, {expected}"
                    continue
                for actual, wanted in zip(found, expected, strict=True):
                    assert len(actual) == len(wanted), name
                    for a, b in zip(actual, wanted, strict=True):
                        if not any(w in name for w in WRITTEN):
                            assert_same(a, b, name)
                            same += 1
    assert same > 400


def test_a_mask_that_is_taken_in_is_known() -> None:
    x = mt.masked_tensor(torch.randn(3, 4), torch.eye(3, 4, dtype=torch.bool))
    mask = pair_of(x).mask
    assert masks.is_all_valid(masks.any(mask, 1))
    assert not masks.is_all_valid(masks.any(mask, 0))
    assert masks.is_all_valid(masks.any(mask))
    assert masks.count(mask).item() == 3
    hidden = F.linear(x, torch.randn(5, 4))
    assert masks.is_all_valid(pair_of(hidden).mask)
    assert masks.is_all_valid(pair_of(hidden.relu().T[1:]).mask)
    assert not masks.is_all_valid(pair_of(mt.masked_tensor(torch.randn(2), [True, True])).mask)


@pytest.mark.parametrize("correction", [0, 1, 1.5, 2, 3])
def test_a_variance_is_known_to_be_valid_only_where_it_is(correction: float) -> None:
    known_valid = 0
    for seed in range(60):
        generator = torch.Generator().manual_seed(seed)
        valid = torch.rand(3, 1, 4, generator=generator) < 0.8
        x = mt.masked_tensor(torch.randn(3, 2, 4), valid.expand(3, 2, 4))
        for dim in (0, 1, 2, (0, 1), (1, 2), (0, 2), (0, 1, 2), None):
            for keepdim in (False, True):
                found = pair_of(x.var(dim, correction=correction, keepdim=keepdim)).mask
                dims = tuple(range(3)) if dim is None else dim
                assert torch.equal(found, valid.expand(3, 2, 4).sum(dims, keepdim) > correction), (seed, dim)
                known_valid += masks.is_all_valid(found)
    assert known_valid > 100


def test_a_standardised_table_keeps_its_mask() -> None:
    x = mt.masked_tensor(torch.randn(30, 4), torch.rand(30, 4) < 0.8)
    assert pair_of((x - x.mean(0)) / x.std(0)).mask is pair_of(x).mask


def test_a_write_ends_what_is_known() -> None:
    x = mt.masked_tensor(torch.randn(3, 4))
    y = mt.as_masked_tensor(torch.randn(3, 4), torch.eye(3, 4, dtype=torch.bool))
    kept = F.linear(y, torch.ones(2, 4))
    x[0] = mt.masked_tensor(torch.zeros(4), [False] * 4)
    y[1] = mt.masked_tensor(torch.zeros(4), [False] * 4)
    assert x.get_mask().sum() == 8
    assert mt.masked_tensor(torch.ones(2)).get_mask().all()
    assert F.linear(y, torch.ones(2, 4)).get_mask().sum(1).tolist() == [2, 0, 2]
    assert kept.get_mask().all()
    assert x.sum(1).get_mask().tolist() == [False, True, True]


def test_counts_are_kept_with_their_mask() -> None:
    data, valid = torch.randn(3, 4), torch.eye(3, 4, dtype=torch.bool)
    valid[:, 3] = True
    x = mt.masked_tensor(data, valid)
    mask = pair_of(x).mask
    run = (
        lambda t: t.mean(0),
        lambda t: t.mean(1, keepdim=True),
        lambda t: t.std(1),
        lambda t: t.var((0, 1), correction=0.5),
    )
    with torch.inference_mode():
        for op in run:
            op(x)
    assert not known.KNOWN[id(mask)].made  # no graph could save them
    for _ in range(2):
        for op in run:
            leaf = x.detach().requires_grad_()
            found = op(leaf)
            found.sum().backward()
            with nothing_known():
                again = mt.masked_tensor(data, valid.clone()).requires_grad_()
                wanted = op(again)
                wanted.sum().backward()
            assert_same(found, wanted, "values")
            assert_same(leaf.grad, again.grad, "gradients")
    assert len(known.KNOWN[id(mask)].made) == len(run)
    x[0] = mt.masked_tensor(torch.ones(4))
    assert x.mean(1).filled(0)[0] == 1
    assert x.std(1).filled(9)[0] == 0
    y = mt.masked_tensor(data, valid.clone())
    place = id(pair_of(y).mask)
    y.mean(1)
    assert known.KNOWN[place].made
    del y
    assert place not in known.KNOWN


def test_common_counts_are_kept_with_their_mask() -> None:
    data, valid = torch.randn(3, 5), torch.eye(3, 5, dtype=torch.bool)
    valid[:2, 3:] = True  # the first two variables meet twice, the third meets nobody
    run = (
        torch.corrcoef,
        torch.cov,
        lambda t: torch.cov(t, correction=0),
        lambda t: torch.cov(t.to(torch.promote_types(t.dtype, torch.float64))),  # with the same mask
        lambda t: torch.cov(t, aweights=mt.masked_tensor([0.5, None, 2, 1, 3])),
    )
    for dtype in (torch.float32, torch.float64, torch.complex64):
        x = mt.masked_tensor(data.to(dtype), valid)
        for _ in range(2):
            for op in run:
                leaf = x.detach().requires_grad_()
                found = op(leaf)
                found.abs().sum().backward()
                with nothing_known():
                    again = mt.masked_tensor(data.to(dtype), valid.clone()).requires_grad_()
                    wanted = op(again)
                    wanted.abs().sum().backward()
                assert_same(found, wanted, "values")
                assert_same(leaf.grad, again.grad, "gradients")
                assert found.get_mask()[:2, :2].all()
                assert not found.get_mask()[2, :2].any()
        kept = known.KNOWN[id(pair_of(x).mask)].made
        assert {key[0] for key in kept} == {"common", "freedom"}  # type: ignore[index]
        x[2] = mt.masked_tensor(torch.ones(5, dtype=dtype))
        assert torch.cov(x).get_mask().all()
    tall = mt.masked_tensor(torch.randn(3, 2), torch.eye(3, 2, dtype=torch.bool))
    torch.cov(tall)
    assert not known.KNOWN[id(pair_of(tall).mask)].made  # they would take more room than the mask


def test_norms_keep_counts_with_their_mask() -> None:
    data, valid = torch.randn(60, 2, 300), torch.rand(60, 2, 300) < 0.5
    data.masked_fill_(~valid, torch.nan)
    valid[0, 0] = False
    for run in (lambda t: F.layer_norm(t, (300,)), lambda t: F.batch_norm(t, None, None, training=True)):
        for part in (slice(None), slice(0, 2)):  # the closed form, and the formula
            x = mt.masked_tensor(data[part], valid[part])
            for _ in range(2):
                leaf, again = x.detach().requires_grad_(), mt.masked_tensor(data[part], valid[part]).requires_grad_()
                found = run(leaf)
                found.square().sum().backward()
                with nothing_known():
                    wanted = run(again)
                    wanted.square().sum().backward()
                assert_same(found, wanted, "values")
                assert_same(leaf.grad, again.grad, "gradients")
            kept = known.KNOWN[id(pair_of(x).mask)].made
            assert [of[0] for of in kept] == ["number"]  # type: ignore[index]


def test_counts_of_windows_are_kept_with_their_mask() -> None:
    data, valid = torch.randn(3, 30, dtype=torch.float64), torch.rand(3, 30) < 0.6
    x = mt.masked_tensor(data, valid)
    kept = known.KNOWN[id(pair_of(x).mask)].made
    for _ in range(2):
        for dim in (0, 1):
            for width in (1, 2, 5, 20):
                for name in ("sum", "mean", "max", "std", "count"):
                    said: dict[str, Any] = {"min_periods": 1, "center": True, "lengths": "full"}
                    found = getattr(mt.rolling(x, width, dim, **said), name)()
                    with nothing_known():
                        wanted = getattr(mt.rolling(mt.masked_tensor(data, valid), width, dim, **said), name)()
                    assert_same(found, wanted, name)
    assert len(kept) == 8
    mt.rolling(x, 20, 1, **said).count().zero_()
    assert mt.rolling(x, 20, 1, **said).mean().mask.any()
    x[0] = mt.masked_tensor(torch.ones(30, dtype=torch.float64))
    assert mt.rolling(x, 20, 1, **said).count()[0, 15] == 20
    again = mt.masked_tensor(data, valid)
    for width in range(1, 31):
        for dim in (0, 1):
            mt.rolling(again, width, dim, lengths="full").count()
    assert 0 < len(known.KNOWN[id(pair_of(again).mask)].made) <= settings.KEPT < 60


def test_linear_and_reshape_keep_what_is_known_of_rows() -> None:
    valid = torch.tensor([[True, True, False], [True, False, False]])[..., None]
    x = mt.as_masked_tensor(torch.randn(2, 3, 8), valid)
    mask = pair_of(x).mask
    assert pair_of(F.linear(x, torch.ones(8, 8))).mask is mask
    assert pair_of(F.linear(x, torch.ones(4, 8))).mask.stride() == (3, 1, 0)
    assert pair_of(x.view(2, 3, 2, 4)).mask.stride() == (3, 1, 0, 0)


def test_hidden_keys_are_kept_with_their_mask() -> None:
    valid = torch.tensor([[True, True, False], [True, False, False], [False, False, False]])[:, None, :, None]
    data = torch.randn(2, 3, 1, 3, 4)
    key, value = (mt.masked_tensor(t, valid) for t in data)
    assert pair_of(key).mask is pair_of(value).mask
    for heads, length, causal in [(1, 2, False), (2, 3, False), (2, 3, False), (2, 3, True), (1, 2, False)]:
        query = torch.randn(3, heads, length, 4)
        wide = [t.expand(3, heads, 3, 4) for t in (key, value)]
        for k, v in ((key, value), wide):
            found = F.scaled_dot_product_attention(query, k, v, is_causal=causal)
            with nothing_known():
                wanted = F.scaled_dot_product_attention(query, *(t + 0 for t in (k, v)), is_causal=causal)
            assert_same(found, wanted, "attention")
            assert not found.get_mask()[2].any()
    assert len([of for of in known.KNOWN[id(pair_of(key).mask)].made if of[0] == "keys"]) == 3


def test_divisors_are_kept_with_a_mask_of_any_origin() -> None:
    data = torch.randn(3, 2, 4, dtype=torch.float64)
    data[0, 1], data[2] = torch.nan, torch.inf
    x = mt.from_lengths(data, [1, 2, 0])
    assert known.number(pair_of(x).mask) is None
    wanted = mt.masked_tensor(data, x.get_mask()).mean(1)
    assert_same(x.mean(1), wanted, "made")
    written = x.mean(1)
    written[2] = 7.0
    x.mean(1).get_mask().fill_(True)
    assert_same(x.mean(1), wanted, "what a result was written does not come back")
    made = [key for key in known.KNOWN[id(pair_of(x).mask)].made if key[0] == "divisors"]
    assert len(made) == 1
    x[2] = 1.0
    assert_same(x.mean(1), mt.masked_tensor(pair_of(x).data, x.get_mask()).mean(1), "another mask")
    assert x.mean(1)[2].eq(1).all()
    place, number = id(pair_of(x).mask), len(known.KNOWN)
    assert place in known.KNOWN
    del x
    assert len(known.KNOWN) < number


def test_shared_memory_holds_a_mask_of_its_own() -> None:
    x, other = mt.masked_tensor(torch.randn(3)), mt.masked_tensor(torch.randn(3))
    x.share_memory_()
    assert not masks.is_all_valid(pair_of(x).mask)
    assert masks.is_all_valid(pair_of(other).mask)
    assert x.get_mask().all()
    assert not pair_of(other).mask.is_shared()


def test_the_data_of_what_is_known_to_be_valid_keep_their_history() -> None:
    x = mt.masked_tensor(torch.randn(2, 3), requires_grad=True)
    (x * 2).get_data().sum().backward()
    assert x.grad is not None
    assert x.grad.filled(0).eq(2).all()


def test_what_a_transform_has_wrapped_is_known_as_what_it_wraps() -> None:
    """No address is asked of the wrapper: it has none, and the exception takes longer than the op."""
    answers = []

    def ask(mask: Tensor) -> Tensor:
        answers.append(known.is_all_valid(mask))
        return mask

    torch.vmap(torch.vmap(ask))(known.all_true((2, 3, 4)))
    torch.vmap(torch.vmap(ask))(torch.ones(2, 3, 4, dtype=torch.bool))
    assert answers == [True, False]


VIEWED: dict[str, Callable[[Any], Any]] = {
    "transpose": lambda x: x.transpose(0, 1),
    "view": lambda x: x.view(2, 3, 2, 2).transpose(1, 2),
    "flatten": lambda x: x.flatten(1),
    "index": lambda x: x[:, 1],
    "expand": lambda x: x.expand(5, 2, 3, 4),
    "split": lambda x: x.split(2, 1)[1],
    "unbind": lambda x: x.unbind(1)[2],
    "narrower": lambda x: F.linear(x, torch.ones(2, 4)),
    "there and back": lambda x: x + F.linear(F.linear(x, torch.ones(6, 4)), torch.ones(4, 6)),
    "norm": lambda x: F.layer_norm(x, (4,)),
    "attention": lambda x: F.scaled_dot_product_attention(x, x, x),
    "causal": lambda x: F.scaled_dot_product_attention(x, x, x, is_causal=True),
    "some queries": lambda x: F.scaled_dot_product_attention(x[:, :2], x, x, is_causal=True),
}
PATTERNS = {
    "rows": torch.tensor([[True, True, False], [True, False, False]])[..., None],
    "nothing": torch.zeros(2, 3, 1, dtype=torch.bool),
    "samples": torch.tensor([True, False])[:, None, None],
    "all": torch.ones(2, 3, 1, dtype=torch.bool),
}


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("name", VIEWED)
def test_what_is_kept_with_a_mask_changes_no_bit(name: str, pattern: str, monkeypatch: pytest.MonkeyPatch) -> None:
    valid = PATTERNS[pattern].expand(2, 3, 4)
    data = torch.where(valid, torch.randn(2, 3, 4), torch.nan)

    def run() -> list[Tensor]:
        x = mt.masked_tensor(data, valid).requires_grad_()
        found: list[Tensor] = []
        for _ in range(2):  # the second finds what the first has kept
            y = VIEWED[name](x)
            weights = torch.arange(1.0, y.shape.numel() + 1).view(y.shape)
            (slope,) = torch.autograd.grad((y.filled(0) * weights).sum(), x)
            found += [y.get_mask(), y.filled(0), slope.filled(0)]
        return found

    found = run()
    monkeypatch.setattr(masks, "derive", lambda mask, key, make, *args: make(*args))
    for a, b in zip(found, run(), strict=True):
        assert torch.equal(a, b)


def test_what_is_known_ends_with_its_mask() -> None:
    begun = len(known.KNOWN)
    made = [torch.rand(5, 4) < 0.5 for _ in range(20)]
    for mask in made:
        masks.count(mask, (0,), True)
        masks.derive(mask, "key", torch.zeros, 1)
    assert len(known.KNOWN) == begun + 20
    del made, mask
    assert len(known.KNOWN) == begun


def test_masks_by_shape_are_as_many_as_the_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings, "SHAPES", 4)
    monkeypatch.setattr(known, "_BY_SHAPE", {})
    for size in range(20):
        assert known.all_true((2, size)).shape == (2, size)
        assert len(known._BY_SHAPE) <= 4

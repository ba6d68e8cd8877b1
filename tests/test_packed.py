"""Packed tensors: a representation, never a value; views, writes, copies and the doors they go through."""

import copy
import gc
import io
import pickle
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

import masked_tensor as mt
from masked_tensor import MaskedTensor

from .helpers.harness import assert_same
from .helpers.trees import tree_leaves


def batch(*features: int, requires_grad: bool = False) -> tuple[MaskedTensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    data = torch.randn(3, 4, *features, generator=generator, dtype=torch.float64).requires_grad_(requires_grad)
    return mt.from_lengths(data, [4, 0, 2]), data


def test_packing_and_back_change_no_value() -> None:
    x, _ = batch(5)
    p = x.packed()
    assert p.is_packed
    assert not p.unpacked().is_packed
    assert p.packed() is p
    assert x.unpacked() is x
    for y in (p, p.unpacked()):
        assert_same(y, x, "packed", exact=True)
    assert p._packed.values.shape == (6, 5)


@pytest.mark.parametrize("dims", [(0, 1), (0, 2), (2, 0), (1, 2), (-1, 0)])
def test_any_two_dimensions_are_a_grid(dims: tuple[int, int]) -> None:
    generator = torch.Generator().manual_seed(0)
    data = torch.randn(3, 4, 5, generator=generator)
    x = mt.masked_tensor(data, torch.rand(3, 4, 5, generator=generator) < 0.5)
    assert_same(x.packed(dims) * 2, x * 2, "packed", exact=True)


@pytest.mark.parametrize("lengths", [[4, 0, 2], [4, 4, 4]])
def test_unpacked_is_other_memory(lengths: list[int]) -> None:
    p = mt.from_lengths(torch.zeros(3, 4, 5), lengths).packed()
    p.unpacked().add_(1)
    assert not p.sum().item()


def test_exits() -> None:
    x, _ = batch(5)
    p = x.packed()
    assert torch.equal(p.filled(-1), x.filled(-1))
    assert torch.equal(p.compressed(), x.compressed())
    assert torch.equal(p.transpose(1, 2).compressed(), x.transpose(1, 2).compressed())
    assert torch.equal(p.get_mask(), x.get_mask())
    assert torch.equal(p.get_data() * p.get_mask(), x.get_data() * x.get_mask())
    assert torch.equal(p.count((1, 2)), x.count((1, 2)))
    assert repr(p) == repr(x)
    assert p.tolist() == x.tolist()


def test_copies_stay_packed() -> None:
    x, _ = batch(5)
    p = x.packed()
    file = io.BytesIO()
    torch.save(p, file)
    file.seek(0)
    copies = [torch.load(file), pickle.loads(pickle.dumps(p)), copy.deepcopy(p), copy.copy(p), p.clone(), p.detach()]
    for y in [*copies, p.share_memory_(), p.contiguous()]:
        assert y.is_packed
        assert_same(y, x, "a copy")
    assert_same(p.to(torch.float32), x.float(), "a cast")


def test_a_shared_pattern() -> None:
    x, _ = batch(5)
    other = mt.from_lengths(torch.ones(3, 4), [4, 0, 2])
    p = x.packed()
    q = other.packed(like=p)
    assert q._packed.grid is p._packed.grid
    assert (p * q.unsqueeze(-1)).is_packed
    with pytest.raises(ValueError, match="stores every place"):
        mt.from_lengths(torch.ones(3, 4), [4, 1, 2]).packed(like=p)
    with pytest.raises(ValueError, match="pack other first"):
        x.packed(like=other)


def test_bad_requests() -> None:
    x, _ = batch(5)
    for dims in [(0,), (0, 0), (0, 3), (0, -3)]:
        with pytest.raises(ValueError, match="two dimensions"):
            x.packed(dims)
    with pytest.raises(ValueError, match="to_dense"):
        mt.masked_tensor([[1.0, None]]).to_sparse().packed()
    for form in (mt.packed, mt.unpacked):
        with pytest.raises(TypeError, match="expects a masked tensor"):
            form(torch.ones(2, 2))


def test_the_gradient_of_a_packed_tensor_is_packed() -> None:
    p = batch(5)[0].packed().requires_grad_()
    for k in range(1, 3):
        ((p * p).sum() + p.flip(1).sum()).backward()
        assert p.grad is not None
        assert p.grad.is_packed
        assert_same(p.grad, (2 * p.detach() + 1) * k, "gradient")
    optimizer = torch.optim.AdamW([p])
    optimizer.step()
    assert p.is_packed


def test_a_gradient_flows_back_into_the_padded_tensor() -> None:
    x, data = batch(5, requires_grad=True)
    x.packed().exp().filled(0).sum().backward()
    expected = torch.where(x.get_mask(), data.detach().exp(), 0)
    assert torch.equal(data.grad, expected)


def test_second_derivatives() -> None:
    p = batch(5)[0].packed().requires_grad_()
    (first,) = torch.autograd.grad((p**3).filled(0).sum(), p, create_graph=True)
    (second,) = torch.autograd.grad(first.filled(0).sum(), p)
    assert second.is_packed
    assert_same(second, 6 * p.detach(), "second derivative")


def test_gradcheck() -> None:
    def run(data: Tensor) -> Tensor:
        p = mt.from_lengths(data, [4, 0, 2]).packed()
        return (p.view(3, 4, 2, 3).transpose(1, 2) * p.reshape(3, 2, 4, 3).tanh()).filled(0)

    data = torch.randn(3, 4, 6, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(run, [data])
    assert torch.autograd.gradgradcheck(run, [data])


def test_a_write_that_nobody_else_sees_keeps_it_packed() -> None:
    x, _ = batch(5)
    p = x.packed()
    p.mul_(2).add_(1)
    p += p
    assert p.is_packed
    assert_same(p, (x * 2 + 1) * 2, "written")
    q = x.packed()
    q[1, 0] = 7.0
    assert not q.is_packed
    assert q[1, 0].tolist() == [7.0] * 5


def test_a_write_reaches_the_base_and_its_views() -> None:
    for view in (lambda p: p[:, :, 0], lambda p: p[2], lambda p: p.transpose(0, 1), lambda p: p.view(12, 5)[3:]):
        x, _ = batch(5)
        p = x.packed()
        early, other = view(p), p.unsqueeze(0)
        view(p).fill_(9)
        view(x).fill_(9)
        assert_same(p, x, "the base")
        assert_same(early, view(x), "an earlier view")
        assert_same(other, x.unsqueeze(0), "another view")
        p[0] = 3.0
        x[0] = 3.0
        assert_same(early, view(x), "a view of the base")


def test_views_that_are_gone_ask_for_nothing() -> None:
    p = batch(5)[0].packed()
    for _ in range(3):
        p.transpose(0, 1).sum()
    p.add_(1)
    assert p.is_packed


def test_hard_masks_stay_hard() -> None:
    p = batch(5)[0].packed().harden_mask()
    p[:] = 5.0
    assert p.count().item() == 30
    q = batch(5)[0].packed()
    early = q.transpose(0, 1)
    q[2:].harden_mask()
    early[:] = 5.0
    assert q.count().item() == 30


def test_new_data() -> None:
    p = batch(5)[0].packed()
    p.data = torch.ones(3, 4, 5, dtype=torch.float64)
    assert not p.is_packed
    assert p.count().item() == 60


def test_modes() -> None:
    x, _ = batch(5)
    with torch.inference_mode():
        assert_same(x.packed().exp(), x.exp(), "inference mode")
    p = x.packed()
    assert_same(torch.vmap(lambda v: v.exp().sum())(p), x.exp().sum((1, 2)), "vmap")
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert_same(p.float() @ torch.ones(5, 2), x.float() @ torch.ones(5, 2), "autocast")
    assert_same(torch.utils.checkpoint.checkpoint(torch.exp, p.requires_grad_(), use_reentrant=False), x.exp(), "again")
    with mt.meaning(mismatch="raise"), pytest.raises(mt.MaskMismatchError):
        p + mt.from_lengths(torch.ones(3, 4, 5), [4, 1, 2]).packed()


def test_what_has_no_rule_is_reported() -> None:
    x, _ = batch(5)
    p = x.packed()
    with mt.extend.packing_report() as report:
        p.exp().transpose(0, 1)
    assert report == {}
    with mt.extend.packing_report() as report:
        p.flip(1)
        torch.roll(p, 1, 1)
    assert set(report) == {"aten::flip", "aten::roll"}
    assert report["aten::flip"].bytes == 3 * 4 * 5 * 8
    assert "packed  elementwise" in mt.explain("exp")
    assert "packed  no packed rule" in mt.explain("flip")


def test_a_cache_that_is_empty_at_first() -> None:
    x = mt.from_lengths(torch.randn(2, 3, 4), [3, 1]).packed()
    out = torch.cat([torch.tensor([]), x], -2)
    assert out.is_packed
    assert torch.equal(out.get_mask(), x.get_mask())
    assert torch.equal(out.filled(0), x.filled(0))
    wider = torch.cat([torch.tensor([], dtype=torch.float64), x], -2)
    assert wider.dtype is torch.cat([torch.tensor([], dtype=torch.float64), x.unpacked()], -2).dtype


@pytest.mark.parametrize("side", ["right", "left"])
@pytest.mark.parametrize(("batch_first", "dim"), [(True, None), (False, None), (True, 2)])
def test_sequences_are_packed_without_padding(side: str, batch_first: bool, dim: int | None) -> None:
    shapes = [(n, 3) if dim is None else (3, n) for n in (2, 5, 1)]
    sequences = [torch.randn(shape, dtype=torch.float64).requires_grad_() for shape in shapes]
    p, x = (
        mt.from_sequences(sequences, batch_first=batch_first, dim=dim, padding_side=side, packed=k)
        for k in (True, False)
    )
    assert p.is_packed
    assert p._packed.values.shape == (8, 3)
    assert_same(p, x, "packed")
    (p * p).sum().backward()
    assert all(torch.equal(s.grad, 2 * s.detach()) for s in sequences)
    q = mt.from_lengths(x.get_data().detach(), [2, 5, 1], batch_first, dim=dim, padding_side=side, packed=True)
    assert q.is_packed
    assert_same(q, x, "from lengths")


def test_masked_sequences_are_packed_with_their_masked_entries() -> None:
    sequences = [mt.masked_tensor([[1.0, None], [2.0, 3.0]]), mt.masked_tensor([[None, 4.0]])]
    assert_same(mt.from_sequences(sequences, packed=True), mt.from_sequences(sequences), "packed")
    assert mt.from_sequences(sequences, packed=True).is_packed


def test_a_write_through_a_view_that_was_unpacked_reaches_a_full_grid() -> None:
    mask = torch.tensor([[[True, False]]] * 3)
    for view in (lambda x: x.split(1, 0)[2], lambda x: x[1:], lambda x: x.transpose(0, 1)):
        x, y = (mt.masked_tensor(torch.ones(3, 1, 2), mask) for _ in range(2))
        p = x.packed()
        for base in (p, y):
            view(base)[-1] = -3.0
        assert_same(p, y, "the base")


@pytest.mark.parametrize("dims", [(0, 1), (0, 2), (1, 2)])
def test_memory_is_read_as_the_strides_say(dims: tuple[int, int]) -> None:
    data = torch.arange(24.0).view(2, 3, 4)
    mask = torch.ones(2, 3, 4, dtype=torch.bool)
    mask.movedim(dims, (0, 1))[0, 2:] = False  # padding of the first row
    mask[1, 1, 1] = False
    x = mt.as_masked_tensor(data, mask)
    p = x.packed(dims, lengths=[2, *[mask.shape[dims[1]]] * (mask.shape[dims[0]] - 1)])
    for read in (
        lambda x: x.as_strided((2, 2, 2), (1, 1, 1), 3),
        lambda x: x.as_strided((3, 4), (4, 1), 12),
        lambda x: torch.as_strided_copy(x, (5, 3), (2, 7)),
        lambda x: torch.as_strided_scatter(x, torch.zeros(2, 2), (2, 2), (4, 1), 3),
    ):
        assert_same(read(p), read(x), f"packed over {dims}")


def test_a_batch_without_padding_is_copied_too() -> None:
    x = mt.masked_tensor(torch.zeros(2, 3, 1), torch.ones(2, 3, 1, dtype=torch.bool))
    packed = x.packed()
    x.add_(1)
    assert packed.sum() == 0


COPIES_OR_VIEWS = {
    "contiguous": lambda x: x.transpose(0, 1).contiguous(),
    "contiguous, viewed": lambda x: x.transpose(0, 1).contiguous().view(-1),
    "reshape": lambda x: x.transpose(0, 1).reshape(-1),
    "flatten": lambda x: x[..., 0].flatten(),
    "ravel": lambda x: x.transpose(0, 1).ravel(),
    "reshape of all": lambda x: x.reshape(12, 5),
    "contiguous of a part": lambda x: x[..., 0].contiguous(),
    "a view": lambda x: x.movedim(0, 2),
}


@pytest.mark.parametrize("name", COPIES_OR_VIEWS)
def test_what_is_a_copy_of_padded_data_is_one_of_packed(name: str) -> None:
    x = batch(5)[0]
    p = x.packed()
    seen, packed_seen = COPIES_OR_VIEWS[name](x), COPIES_OR_VIEWS[name](p)
    x[0], p[0] = 7.0, 7.0
    assert_same(packed_seen, seen, name)


EXITS = sorted(
    {*dir(mt.MaskedTensor), *mt.__all__} - {"get_data", "packed", "unpacked"}
)  # what those share is documented


def written_into(x: mt.MaskedTensor, call: Callable[..., Any], *args: int) -> bool | str:
    """Whether a write into what ``call`` returns changes ``x``."""
    try:
        results = [r.values() if r.is_nested else r for r in tree_leaves(call(x, *args)) if isinstance(r, torch.Tensor)]
    except (RuntimeError, TypeError, ValueError, LookupError, AttributeError, AssertionError, ImportError) as error:
        return type(error).__name__
    with torch.no_grad():
        for result in results:
            if result is not x and result.dtype is x.dtype and result.layout is torch.strided:
                result.fill_(77)
    return bool((x.filled(0) == 77).any())


@pytest.mark.parametrize("lengths", [[4, 2, 1], [4, 4, 4]])
@pytest.mark.filterwarnings("ignore")  # of deprecated names
def test_what_is_a_copy_of_a_padded_batch_is_one_of_a_packed_one(lengths: list[int]) -> None:
    """Over all methods and functions: values of a packed tensor are handed out only where padded data are."""
    padded = mt.from_lengths(torch.rand(3, 4, 2), lengths)
    asked: Counter[bool | str] = Counter()
    for name in EXITS:
        if name.startswith("_") or name.endswith("_"):
            continue
        for call in {getattr(mt.MaskedTensor, name, None), getattr(mt, name, None)} - {None}:
            for args in ((), (1,)) if callable(call) else ():
                expected, found = (written_into(x, call, *args) for x in (padded.clone(), padded.clone().packed()))
                asked[expected] += 1
                assert found is not True or expected is True, name
    assert asked[True] > 20
    assert asked[False] > 200


@pytest.mark.parametrize("tracked", [False, True])
@pytest.mark.filterwarnings("ignore")  # of deprecated names
def test_what_shares_memory_with_plain_data_does_with_packed(tracked: bool) -> None:
    """Over all methods and functions of modules: views, and what gives its argument, such as dropout in evaluation."""
    data = torch.rand(3, 4, 2)
    x = mt.from_lengths(data, [4, 2, 1])
    shared = 0
    names = [(torch.Tensor, n) for n in EXITS if hasattr(torch.Tensor, n)] + [(F, n) for n in dir(F)]
    for owner, name in names:
        call = getattr(owner, name)
        if name.startswith("_") or name.endswith("_") or not callable(call):
            continue
        for args in ((), (1,), (0.5, False)):
            found = []
            for make in (data.clone, x.packed):
                given = make()
                given = given.requires_grad_() * 1 if tracked else given.clone()
                found.append(first_entry_written(given, call, *args))
            shared += found == [True, True]
            assert found != [True, False], (name, args)
    assert shared > 20


def first_entry_written(x: Any, call: Callable[..., Any], *args: Any) -> bool | None:
    """Whether a write into the first entry of what ``call`` returns changes ``x``; None if one of them is refused."""
    try:
        result = tree_leaves(call(x, *args))[0]
        with torch.no_grad():
            result[(0,) * result.dim()] = 77
    except Exception:
        return None
    return bool((x == 77).any())


PROGRAMS = {
    "linear": lambda x, net: net[0](x),
    "encoder": lambda x, net: net[1](net[0](x)),
    "norm": lambda x, net: torch.nn.functional.layer_norm(net[0](x), (4,)),
    "sum": lambda x, net: net[0](x).sum(1),
    "join": lambda x, net: torch.cat([net[0](x), x], -1),
    "slice": lambda x, net: net[0](x)[:, :2].transpose(1, 2),
    "softmax": lambda x, net: net[0](x).softmax(-1) * x,
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_no_reference_cycles_are_left(name: str) -> None:
    """Memory is freed when the last name of a tensor goes, and not when the collector runs."""
    x = mt.from_sequences([torch.randn(3, 4), torch.randn(2, 4)], packed=True)
    net = torch.nn.Linear(4, 4), torch.nn.TransformerEncoderLayer(4, 2, 8, batch_first=True, dropout=0.0)
    for _ in range(2):  # the first fills caches
        gc.collect()
        gc.disable()
        try:
            PROGRAMS[name](x, net).sum().backward()
            found = gc.collect()
        finally:
            gc.enable()
    assert found == 0


FEATURES: dict[str, Any] = {
    "max": lambda x, dim: x.max(dim)[0],
    "min": lambda x, dim: x.min(dim)[1],
    "argmax": lambda x, dim: x.argmax(dim),
    "topk": lambda x, dim: x.topk(2, dim)[0],
    "logsumexp": lambda x, dim: x.logsumexp(dim),
    "norm": lambda x, dim: torch.linalg.vector_norm(x, dim=dim),
}


@pytest.mark.parametrize("name", FEATURES)
def test_a_feature_that_goes_leaves_the_others_where_they_are(name: str) -> None:
    """Also of a view, whose features are stored in another order than they are read."""
    x = mt.from_lengths(torch.randn(3, 4, 2, 3, 2), [4, 1, 2])
    for order in ((0, 1, 2, 3, 4), (0, 1, 4, 2, 3), (0, 1, 3, 2, 4), (1, 0, 4, 3, 2), (2, 0, 1, 3, 4), (3, 0, 2, 1, 4)):
        view, packed = x.permute(order), x.packed().permute(order)
        for dim in (d for d, source in enumerate(order) if source > 1):
            found, expected = FEATURES[name](packed, dim), FEATURES[name](view, dim)
            assert found.is_packed
            assert found.mask.equal(expected.mask)
            torch.testing.assert_close(found.filled(0), expected.filled(0))


def test_a_plain_condition_chooses_within_the_tokens() -> None:
    x = mt.from_lengths(torch.randn(3, 4, 2), [4, 1, 2])
    for condition in (torch.tensor(True), torch.tensor([True, False]), torch.rand(3, 4, 2) < 0.5):
        packed = x.packed()
        found = torch.where(condition, packed, packed + 1)
        assert found.is_packed
        torch.testing.assert_close(found.unpacked(), torch.where(condition, x, x + 1))


@pytest.mark.parametrize("order", [(0, 1, 3, 2, 4), (1, 0, 4, 3, 2), (0, 1, 3, 4, 2), (0, 4, 1, 2, 3), (3, 0, 1, 4, 2)])
def test_what_stores_its_features_in_different_orders_is_joined(order: tuple[int, ...]) -> None:
    """A view of the first, of the second all that it is a copy of."""
    x = mt.from_lengths(torch.randn(3, 4, 2, 3, 2), [4, 1, 2])
    view, padded = x.packed().permute(order), x.permute(order)
    copied = mt.from_lengths(x.filled(0).permute(0, 1, *(d for d in order if d > 1)).contiguous(), [4, 1, 2]).packed()
    lead = [d for d in order if d > 1]
    other = copied.permute([d if d < 2 else 2 + lead.index(d) for d in order])
    for parts in ((view, other), (other, view)):
        for dim, source in enumerate(order):
            found = torch.cat(parts, dim)
            assert found.is_packed or source < 2
            torch.testing.assert_close(found.filled(0), torch.cat([padded, padded], dim).filled(0))

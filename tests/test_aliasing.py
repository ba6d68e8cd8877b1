"""Views are true aliases, of data, validity and gradient history; results that are no views never are."""

import copy
import io
import itertools
import pickle

import pytest
import torch

import masked_tensor as mt
from masked_tensor import MaskedTensor
from masked_tensor.engine.tensor import pair_of
from masked_tensor.errors import MaskedWriteError

VALUES = torch.arange(12.0, dtype=torch.float64).view(3, 4) + 1
MASK = torch.tensor([[1, 0, 1, 1], [0, 1, 1, 0], [1, 1, 0, 1]], dtype=torch.bool)


def example(requires_grad: bool = False) -> MaskedTensor:
    return mt.masked_tensor(VALUES, MASK, requires_grad=requires_grad)


def both(x: MaskedTensor) -> tuple[torch.Tensor, torch.Tensor]:
    return x.get_data().clone(), x.get_mask().clone()


VIEWS = {
    "row": lambda x: x[1],
    "columns": lambda x: x[:, 1:],
    "entry": lambda x: x[2, 3],
    "steps": lambda x: x[::2, ::3],
    "flat": lambda x: x.view(-1),
    "split last": lambda x: x.view(3, 2, 2),
    "transposed": lambda x: x.t(),
    "permuted view": lambda x: x.view(3, 2, 2).permute(2, 0, 1),
    "chunk": lambda x: x.chunk(2, 1)[1],
    "unbind": lambda x: x.unbind(1)[2],
    "split": lambda x: x.split([1, 3], 1)[1],
    "diagonal": lambda x: x.diagonal(1),
    "narrow": lambda x: x.narrow(0, 1, 2),
    "unsqueezed": lambda x: x.unsqueeze(1),
    "squeezed": lambda x: x[:1].squeeze(0),
    "view of a view": lambda x: x[1:].t()[1:3],
    "as_strided": lambda x: x.as_strided((2, 2), (5, 2), 1),
    "reshape": lambda x: x.reshape(2, 6),
    "flatten": lambda x: x.flatten(),
    "contiguous": lambda x: x.contiguous(),
    "to": lambda x: x.to(torch.float64),
    "detach": lambda x: x.detach(),
}
WRITES = {
    "fill_": lambda v: v.fill_(9),
    "zero_": lambda v: v.zero_(),
    "mul_": lambda v: v.mul_(2),
    "add_": lambda v: v.add_(1),
    "copy_ masked": lambda v: v.copy_(
        mt.masked_tensor(torch.full(v.shape, 7.0), torch.zeros(v.shape, dtype=torch.bool))
    ),
    "copy_ plain": lambda v: v.copy_(torch.full(v.shape, 7.0)),
    "masked_fill_": lambda v: v.masked_fill_(torch.ones(v.shape, dtype=torch.bool), 3),
    "setitem": lambda v: v.__setitem__(..., 5),
    "mul_ masked": lambda v: v.mul_(mt.masked_tensor(torch.full(v.shape, 7.0), torch.zeros(v.shape, dtype=torch.bool))),
}


@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("view", VIEWS)
def test_writing_into_a_view_writes_into_the_base(view: str, write: str) -> None:
    x = example()
    bystander, early = x.relu(), VIEWS[view](x)
    kept = x * 1  # shares the mask of the base
    before, kept_before = both(bystander), both(kept)
    WRITES[write](VIEWS[view](x))
    # The reference writes into the same view of plain data and of a plain mask.
    data, mask = mt.masked_tensor(VALUES, MASK).get_data().clone(), MASK.clone()
    v, m = VIEWS[view](data), VIEWS[view](mask) if view != "to" else mask
    expected = WRITES[write](mt.masked_tensor(v, m))
    if expected is None:
        expected = mt.masked_tensor(torch.full(v.shape, 5.0, dtype=v.dtype), torch.ones_like(m))
    v.copy_(expected.filled(0)), m.copy_(expected.get_mask())
    assert torch.equal(x.get_mask(), mask)
    assert torch.equal(x.filled(-1), torch.where(mask, data, -1))
    assert torch.equal(early.get_mask(), VIEWS[view](mask) if view != "to" else mask)
    assert torch.equal(early.filled(-1), VIEWS[view](torch.where(mask, data, -1)))
    for tensor, (old_data, old_mask) in ((bystander, before), (kept, kept_before)):
        assert torch.equal(tensor.get_mask(), old_mask)
        assert torch.equal(tensor.get_data(), old_data)


def test_results_share_masks_but_never_their_writes() -> None:
    x = example()
    y = x.relu()
    y[0].fill_(9)
    x[1].fill_(8)
    z = x * 2  # made after the family of x has its own buffer
    x[2] = 0
    z.view(-1)[0] = mt.masked_tensor(0.0, False)
    assert x.tolist() == [[1, None, 3, 4], [None, 8, 8, None], [0, 0, 0, 0]]
    assert y.tolist() == [[9, None, 9, 9], [None, 6, 7, None], [9, 10, None, 12]]
    assert z.tolist() == [[None, None, 6, 8], [None, 16, 16, None], [18, 20, None, 24]]


def test_broadcast_masks_are_spelled_out_on_the_first_write_only() -> None:
    x = mt.masked_tensor(VALUES, torch.tensor([[True], [False], [True]]))
    x[:, 1:] += 1
    assert pair_of(x).mask.stride(1) == 0
    x[1, 2] = 5
    assert x.tolist() == [[1, 3, 4, 5], [None, None, 5, None], [9, 11, 12, 13]]


@pytest.mark.parametrize("part", ["real", "imag"])
def test_real_views_of_complex_data(part: str) -> None:
    x = mt.masked_tensor(torch.complex(VALUES, VALUES), MASK)
    view = getattr(x, part)
    view[0] = 7
    assert x.get_mask()[0].tolist() == [True, False, True, True], "half a number is not a number"
    assert getattr(x, part)[0].tolist() == [7, 7, 7, 7]
    torch.view_as_real(x)[0] = 3
    assert x[0].tolist() == [3 + 3j] * 4


def test_complex_view_of_real_data() -> None:
    x = mt.masked_tensor(torch.arange(4.0), torch.tensor([True, False, True, True]))
    z = torch.view_as_complex(x.view(2, 2))
    assert z.tolist() == [None, 2 + 3j]
    z[0] = 5 + 6j
    assert x.tolist() == [5, 6, 2, 3]


def test_conjugate_views() -> None:
    x = mt.masked_tensor(torch.complex(VALUES, VALUES), MASK)
    y = x.conj()
    y[0] = 1 + 2j
    assert x[0].tolist() == [1 - 2j] * 4


@pytest.mark.parametrize("name", ["t_", "squeeze_", "unsqueeze_", "transpose_"])
def test_in_place_changes_of_shape(name: str) -> None:
    args = {"unsqueeze_": (1,), "transpose_": (0, 1)}.get(name, ())
    x, plain = example(), torch.where(MASK, VALUES, -1)
    view = x[1]
    result = getattr(x, name)(*args)
    expected = getattr(plain.clone(), name)(*args)
    assert result is x
    assert x.shape == expected.shape
    assert x.stride() == expected.stride()
    assert torch.equal(x.filled(-1), expected)
    view[...] = 0
    assert torch.equal(x.filled(-1), getattr(plain.index_fill(0, torch.tensor([1]), 0), name)(*args))
    with pytest.raises(RuntimeError, match="on a masked tensor that requires grad"):
        getattr(example(True) * 1, name)(*args)


# ------------------------------------------------------------------------------------------------------ autograd

TRACKED_VIEWS = [name for name in VIEWS if name not in ("contiguous", "to", "detach")]


def out_of_place(x: torch.Tensor, view: str, new) -> torch.Tensor:
    """The base after ``new(view)`` was written into its view, on plain tensors, by torch itself."""
    base = x * 1
    v = VIEWS[view](base.detach())  # for its geometry: torch forbids writes into one of several views (chunk)
    v = base.as_strided(v.shape, v.stride(), v.storage_offset())
    v.copy_(new(v.clone()))
    return base


@pytest.mark.parametrize("view", TRACKED_VIEWS)
def test_a_tracked_write_through_a_view_reaches_the_base(view: str) -> None:
    w = torch.tensor(3.0, dtype=torch.float64, requires_grad=True)
    x = example(True)
    base = x * 1
    early, target = VIEWS[view](base), VIEWS[view](base)
    target.mul_(w)
    loss = (base * base).sum() + early.sum() + 2 * target.sum()
    loss.backward()

    p = torch.where(MASK, VALUES, 0).requires_grad_()
    w2 = w.detach().clone().requires_grad_()
    b = out_of_place(p, view, lambda v: v * w2)
    ((b * b).sum() + 3 * VIEWS[view](b).sum()).backward()
    assert torch.equal(x.grad.get_mask(), MASK)
    torch.testing.assert_close(x.grad.filled(0), torch.where(MASK, p.grad, 0))
    torch.testing.assert_close(w.grad, w2.grad)


@pytest.mark.parametrize("view", TRACKED_VIEWS)
def test_a_tracked_assignment_makes_an_untracked_base_tracked(view: str) -> None:
    base = example()
    early = VIEWS[view](base)
    w = torch.full(early.shape, 2.0, dtype=torch.float64, requires_grad=True)
    VIEWS[view](base).copy_(w)
    assert base.requires_grad
    (base * 3).sum().backward(retain_graph=True)
    assert torch.equal(w.grad, torch.full_like(w, 3))
    w.grad = None
    VIEWS[view](base).sum().backward(retain_graph=True)
    assert torch.equal(w.grad, torch.ones_like(w))
    w.grad = None
    early.sum().backward()  # its base was written since: it has the history of the base
    assert torch.equal(w.grad, torch.ones_like(w))


def test_augmented_assignment_to_an_index() -> None:
    x, w = example(True), torch.tensor(2.0, dtype=torch.float64, requires_grad=True)
    y = x * 1
    y[:, 1:] += w
    y[0] *= 3
    y.sum().backward()
    assert w.grad == (MASK[:, 1:].sum() + 2 * MASK[0, 1:].sum())
    assert torch.equal(x.grad.filled(0), MASK * torch.tensor([[3.0], [1.0], [1.0]], dtype=torch.float64))


def test_a_loop_that_fills_a_tensor_step_by_step() -> None:
    x = example(True)
    out = mt.masked_tensor(torch.zeros(3, 4, dtype=torch.float64), torch.zeros(3, 4, dtype=torch.bool))
    state = x[0] * 0
    for t in range(3):
        state = state + x[t]
        out[t] = state
    assert torch.equal(out.get_mask(), MASK.cumprod(0).bool() & MASK[0])
    out.sum().backward()
    expected = out.get_mask() * torch.tensor([[1.0], [2.0], [1.0]], dtype=torch.float64)
    assert (x.grad.filled(0) >= 0).all()
    assert torch.equal(x.grad.filled(0)[2], expected[2])


@pytest.mark.parametrize(
    "write",
    [
        lambda y: y.mul_(2),
        lambda y: y[0].fill_(1),
        lambda y: y.view(-1)[1:].zero_(),
        lambda y: y.__setitem__((0, 0), 3.0),
        lambda y: y.detach().mul_(2),
    ],
)
def test_writes_after_a_backward_saved_the_values_raise(write) -> None:
    y = example(True) * 1
    loss = (y * y).sum()
    write(y)
    with pytest.raises(RuntimeError, match=r"modified (by an )?inplace"):
        loss.backward()


@pytest.mark.parametrize("write", [lambda y: y.data.mul_(2), lambda y: y.t().data[0].fill_(1)])
def test_what_autograd_saved_of_a_packed_tensor_cannot_see_a_write_past_it(write) -> None:
    y = mt.masked_tensor(VALUES, MASK, requires_grad=True).packed() * 1
    loss, before = (y * y).sum(), y.tolist()
    write(y)
    assert y.tolist() != before
    with pytest.raises(RuntimeError, match=r"modified (by an )?inplace"):
        loss.backward()


def test_a_leaf_that_requires_grad_is_not_written() -> None:
    x = example(True)
    with pytest.raises(RuntimeError, match=r"^a leaf Variable that requires grad is being used"):
        x.mul_(2)
    for write in (lambda: x[0].mul_(2), lambda: x.view(-1).fill_(1), lambda: x.__setitem__(0, 1.0)):
        with pytest.raises(RuntimeError, match="a view of a leaf Variable that requires grad"):
            write()
    with torch.no_grad():
        x[0] = 1.0
        x.mul_(2)
    assert x.tolist()[0] == [2, 2, 2, 2]
    assert x.tolist()[1] == [None, 12, 14, None]
    x.detach()[1] = 3  # a detached alias writes without a record, as in torch
    assert x.tolist()[1] == [3, 3, 3, 3]
    assert x.requires_grad
    assert x.is_leaf


def test_a_view_whose_connection_is_lost_raises() -> None:
    base = torch.view_as_real(mt.masked_tensor(torch.complex(VALUES, VALUES), MASK, requires_grad=True) * 1)
    with pytest.raises(RuntimeError, match="a gradient through this view of a masked tensor would be lost"):
        base[0].mul_(2)


def test_a_copied_view_with_gaps_takes_tracked_writes() -> None:
    """As in torch; not where elements share a place, whose gradients torch loses."""
    for x in (VALUES[:, ::2], mt.masked_tensor(VALUES, MASK)[:, ::2]):
        base, u = copy.deepcopy(x), torch.tensor(3.0, dtype=VALUES.dtype, requires_grad=True)
        assert base.stride() == x.stride(), "the copy has the gaps of its original"
        base[0, 0] = u
        base[:2].mul_(2)
        (mt.filled(base, 0.0) if type(base) is mt.MaskedTensor else base).sum().backward()
        assert u.grad == 2
    expanded = copy.deepcopy(mt.masked_tensor(VALUES[:, :1], MASK[:, :1]).expand(3, 4))
    with pytest.raises(RuntimeError, match="its base has several elements at one place of its memory"):
        expanded[:, 0].mul_(torch.ones(3, dtype=VALUES.dtype, requires_grad=True))


@pytest.mark.parametrize("size", [(3, 3), (2, 4), (4, 2), (3, 2, 2)])
def test_a_copied_view_refuses_tracked_writes_where_elements_share_a_place(size: tuple[int, ...]) -> None:
    """Whatever its strides: the places are counted."""
    for strides in itertools.product((1, 2, 3, 4, 9), repeat=len(size)):
        places = torch.arange(60).as_strided(size, strides).flatten().tolist()
        x = mt.as_masked_tensor(torch.rand(60).as_strided(size, strides), torch.ones(size, dtype=torch.bool))
        base, factor = copy.deepcopy(x), torch.ones((), requires_grad=True)
        assert base.stride() == strides
        if len(set(places)) < len(places):
            with pytest.raises(RuntimeError, match="several elements at one place"):
                base[0].mul_(factor)
    base = copy.deepcopy(mt.masked_tensor(torch.ones(size), torch.ones(size, dtype=torch.bool)))
    base[0].mul_(factor)
    assert base.requires_grad


def test_what_a_pickle_takes_apart_is_written_apart() -> None:
    """A plain pickle keeps no shared memory: what is written into one of two copies is not seen by the other."""
    x = mt.masked_tensor(VALUES, MASK)
    view = x[0]
    view.fill_(1.0)
    a, b = pickle.loads(pickle.dumps([x, view]))
    b.copy_(mt.as_masked_tensor(torch.zeros_like(VALUES[0]), torch.zeros_like(MASK[0])))
    assert a.tolist() == x.tolist()


@pytest.mark.parametrize("how", ["deepcopy", "save"])
def test_packed_tensors_that_store_nothing_find_each_other_in_a_copy(how: str) -> None:
    x = mt.masked_tensor(torch.zeros(2, 3), torch.zeros(2, 3, dtype=torch.bool)).packed()
    if how == "deepcopy":
        a, b = copy.deepcopy([x, x[0]])
    else:
        torch.save([x, x[0]], file := io.BytesIO())
        file.seek(0)
        a, b = torch.load(file, weights_only=True)
    b[1] = 5.0
    assert a.tolist() == [[None, 5.0, None], [None, None, None]]


def test_views_of_packed_tensors_are_tensors_of_their_own() -> None:
    x = mt.masked_tensor([[1.0, 2.0, None], [4.0, None, None]]).packed()
    for view in (x.view(2, 3), x.view_as(x), x.reshape(2, 3), x.expand(2, 3), x[...]):
        assert view is not x
    y = x.t()
    y[0] = 3.0  # they become strided, and have the strides of what they are
    copied = y.contiguous()
    assert (y.stride(), copied.stride()) == ((1, 3), (2, 1))
    y.fill_(7.0)
    assert copied.tolist() == [[3.0, 3.0], [2.0, None], [None, None]]


def test_a_view_outlives_the_name_of_its_base() -> None:
    """As in torch, a view holds its base: what is written through one of them has a gradient in the others."""

    def gradient(x: torch.Tensor, held: bool) -> torch.Tensor:
        base = x.new_zeros(3, 4)
        base[1:] = x[:2] * 3
        scores = base.view(12)  # as attention in overlapping blocks is written
        if not held:
            del base
        last = scores[4:]
        scores[:8] = scores[:8] + 1
        last[2:] = last[2:] + x.view(12)[6:]
        (scores.square().sum() + last.sum()).backward()
        return x.grad

    plain = gradient(VALUES.clone().requires_grad_(), held=False)
    whole = gradient(mt.masked_tensor(VALUES, torch.ones_like(MASK), requires_grad=True), held=False)
    torch.testing.assert_close(whole.filled(0), plain)
    free, held = (gradient(mt.masked_tensor(VALUES, MASK, requires_grad=True), held) for held in (False, True))
    torch.testing.assert_close(free.filled(torch.nan), held.filled(torch.nan), equal_nan=True)
    assert free.filled(0).any()


# ------------------------------------------------------------------------------------------------- plain targets


@pytest.mark.parametrize(
    "write",
    [
        lambda p, m: p.copy_(m),
        lambda p, m: p.add_(m),
        lambda p, m: p.__iadd__(m),
        lambda p, m: p.__setitem__(slice(None), m),
        lambda p, m: p.__setitem__(0, m[0]),
        lambda p, m: p.__setitem__(p > 100, m[m.filled(0) > 100]),
        lambda p, m: p.index_put_((torch.tensor([0]),), m[:1]),
        lambda p, m: p.index_add_(0, torch.tensor([0]), m[:1]),
        lambda p, m: p.scatter_(0, torch.zeros(3, 4, dtype=torch.int64), m),
        lambda p, m: p.masked_scatter_(p > 0, m),
        lambda p, m: mt.masked_fill_(p, m > 0, 1.0),
        lambda p, m: p.index_copy_(0, torch.tensor([0]), m[:1]),
        lambda p, m: torch.mul(m, 2, out=p),
        lambda p, m: torch.cat([m], out=p),
        lambda p, m: p.view(-1)[:4].mul_(m[0]),
    ],
)
def test_a_plain_tensor_never_receives_a_masked_one(write) -> None:
    plain = VALUES.clone()
    with pytest.raises(MaskedWriteError, match="filled"):
        write(plain, example())
    assert torch.equal(plain, VALUES)


def test_a_masked_condition_of_a_plain_target() -> None:
    """An assignment writes where it is valid and True; torch 2.14 and later make ``masked_fill_`` of it."""
    x, plain, assigned = example(), VALUES.clone(), VALUES.clone()
    assigned[x > 3] = 0.0
    assert torch.equal(assigned, torch.where((x > 3).filled(False), 0.0, VALUES))
    if torch.__version__ >= "2.14":
        assert torch.equal(plain.masked_fill_(x > 3, 0.0), assigned)
        return
    with pytest.raises(MaskedWriteError, match="filled"):
        plain.masked_fill_(x > 3, 0.0)


# --------------------------------------------------------------------------------------------------- hard masks


def test_a_hard_mask_keeps_padding_padding() -> None:
    x = example()
    view = x[1]
    assert x.harden_mask() is x
    x[0] = 5.0
    view.fill_(6.0)
    x.view(-1)[5:7] = mt.masked_tensor(torch.tensor([1.0, 2.0], dtype=torch.float64), torch.tensor([True, False]))
    assert x.tolist() == [[5, None, 5, 5], [None, 1, None, None], [9, 10, None, 12]]
    x.soften_mask()
    x[0] = 7.0
    assert x.tolist()[0] == [7, 7, 7, 7]


def test_a_hard_mask_under_autograd() -> None:
    x, w = example(), torch.ones(4, dtype=torch.float64, requires_grad=True)
    x.harden_mask()
    x[0] = w
    x.sum().backward()
    assert w.grad.tolist() == [1, 0, 1, 1]


# ----------------------------------------------------------------------------------------------------- compiled


def _locally(write):
    def function(x: MaskedTensor) -> MaskedTensor:
        y = x * 1
        write(y)
        return y * y

    return function


COMPILED = {
    "setitem": lambda y: y.__setitem__(0, 5.0),
    "augmented": lambda y: y[:, 1:].add_(1),
    "view": lambda y: y.view(-1)[1:3].fill_(4),
    "index": lambda y: y.__setitem__(torch.tensor([1]), 7.0),
    "zero_": lambda y: y.t().zero_(),
}


@pytest.mark.parametrize("write", COMPILED)
def test_compiled_writes(write: str) -> None:
    torch._dynamo.reset()
    function = _locally(COMPILED[write])
    expected, result = function(example()), torch.compile(function, fullgraph=True, backend="aot_eager")(example())
    assert result.tolist() == expected.tolist()


def test_compiled_writes_into_an_input() -> None:
    torch._dynamo.reset()
    x = example()
    torch.compile(lambda x: x.add_(1), fullgraph=True, backend="aot_eager")(x)
    assert x.tolist() == (example() + 1).tolist()
    assert x.sum().item() == (example() + 1).sum().item(), "what is known of the payload still holds"
    with pytest.raises(RuntimeError, match="a compiled function cannot change the validity of its input in place"):
        torch.compile(lambda x: x[0].copy_(torch.ones(4)), fullgraph=True, backend="aot_eager")(x)


def test_tensors_whose_views_are_gone_may_be_swapped() -> None:
    """Converting a module swaps its parameters, of which its forward may have taken views."""
    x, y = mt.masked_tensor([1.0, None]), mt.masked_tensor([3.0, 4.0])
    view = x[:1]
    with pytest.raises(RuntimeError, match="weakref"):  # torch's own: a view knows its base by the object
        torch.utils.swap_tensors(x, y)
    del view
    torch.utils.swap_tensors(x, y)
    assert (x.tolist(), y.tolist()) == ([3.0, 4.0], [1.0, None])
    module = torch.nn.Module()
    module.weight = torch.nn.Parameter(mt.masked_tensor([1.0, None]))  # type: ignore[arg-type]
    (module.weight[:1] * 2).sum().backward()  # type: ignore[index, union-attr]
    module.double()
    assert module.weight.dtype is torch.float64
    assert module.weight.tolist() == [1.0, None]  # type: ignore[operator]

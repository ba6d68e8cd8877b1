"""What Python and its libraries ask of an object."""

import copy
import gc
import io
import itertools
import pickle
import re
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import masked_tensor as mt
from masked_tensor import MaskedValueError, UnsupportedOpError
from masked_tensor.engine.tensor import ENGINE, pair_of

NAN = float("nan")


def example(requires_grad: bool = False) -> mt.MaskedTensor:
    return mt.masked_tensor([1.0, 2.0, 3.0], [True, False, True], requires_grad)


class Holey(nn.Module):
    """A module with a masked parameter and a masked buffer."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(example())
        self.register_buffer("scale", mt.masked_tensor([1.0, 1.0, 2.0], [True, True, False]))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return (self.weight * x).sum()


def save_load(x: object) -> object:
    file = io.BytesIO()
    torch.save(x, file)
    file.seek(0)
    return torch.load(file, weights_only=True)


COPIES = {
    "pickle": lambda x: pickle.loads(pickle.dumps(x)),
    "deepcopy": copy.deepcopy,
    "save": save_load,
    "copy": copy.copy,
}


@pytest.mark.parametrize("how", COPIES)
def test_copies(how: str) -> None:
    x = example(requires_grad=True)
    y = COPIES[how](x)
    assert y.tolist() == x.tolist()
    assert y.requires_grad
    assert y.is_leaf
    parameter = COPIES[how](nn.Parameter(example(), requires_grad=False))
    assert isinstance(parameter, nn.Parameter)
    assert not parameter.requires_grad


@pytest.mark.parametrize("how", ["pickle", "deepcopy", "save"])
def test_broadcast_masks_stay_compact_in_a_copy(how: str) -> None:
    x = mt.masked_tensor(torch.ones(100, 50), torch.rand(100, 1) < 0.5)
    assert pair_of(COPIES[how](x)).mask.stride() == pair_of(x).mask.stride()
    assert len(pickle.dumps(x)) < 100 * 50 * 4 + 3000


@pytest.mark.parametrize("how", COPIES)
def test_a_tensor_that_left_its_graph_is_copied_without_it(how: str) -> None:
    x = mt.masked_tensor([1.0, None], requires_grad=True)
    y = x * 2
    y.sum()  # y now holds the plain data that its tracked uses share
    y.detach_()
    y.label = "kept"
    z = COPIES[how](y)
    assert z.tolist() == [2.0, None]
    assert not z.requires_grad
    assert z.label == "kept"


def test_a_tensor_that_left_its_graph_does_not_keep_it_alive() -> None:
    x = mt.masked_tensor([1.0, None], requires_grad=True)
    y = x * 2
    y.sum()
    leaf = weakref.ref(x)
    del x
    assert leaf() is not None
    y.detach_()
    gc.collect()
    assert leaf() is None


@pytest.mark.parametrize("how", COPIES)
def test_what_the_engine_keeps_on_a_tensor_is_not_copied(how: str) -> None:
    x = mt.masked_tensor([[1.0, None], [3.0, 4.0]]).harden_mask()
    tracked = mt.masked_tensor([[1.0, None], [3.0, 4.0]], requires_grad=True) * 2
    tracked.sum()
    tracked.detach_()
    for tensor in (x, x.t(), tracked, tracked.data):
        tensor.__tensor_flatten__()
        tensor.label = "mine"
        assert set(tensor.__dict__) <= {*ENGINE, "label"}  # the engine's list is complete
        made = COPIES[how](tensor)
        assert made.tolist() == tensor.tolist()
        assert not set(made.__dict__) & {"_graph_entry", "_history"}
        assert made.label == "mine"


def test_deepcopy_is_deep() -> None:
    x = example(requires_grad=True)
    (x * 2).sum().backward()
    x.label = ["a"]
    pair = copy.deepcopy([x, x])
    assert pair[0] is pair[1]
    with torch.no_grad():
        pair[0].fill_(9)
    pair[0].label.append("b")
    assert x.tolist() == [1.0, None, 3.0]
    assert x.label == ["a"]
    assert pair[0].grad.tolist() == [2.0, None, 2.0]
    assert pair[0].grad is not x.grad


def test_copies_of_a_tensor_inside_a_graph_are_refused() -> None:
    for how in COPIES.values():
        with pytest.raises(RuntimeError, match="part of a graph"):
            how(example(requires_grad=True) * 2)


def test_state_dict_round_trip() -> None:
    source, target = Holey(), Holey()
    with torch.no_grad():
        source.weight.mul_(5)
    target.load_state_dict(save_load(source.state_dict()))
    assert target.weight.tolist() == [5.0, None, 15.0]
    assert target.scale.tolist() == [1.0, 1.0, None]


@pytest.mark.parametrize("optimizer", [torch.optim.SGD, torch.optim.Adam, torch.optim.RMSprop, torch.optim.Adagrad])
def test_a_masked_parameter_takes_steps(optimizer: type[torch.optim.Optimizer]) -> None:
    torch.manual_seed(0)
    module = Holey()
    steps = optimizer(module.parameters(), lr=0.1)
    losses = []
    for _ in range(3):
        steps.zero_grad()
        loss = module(torch.tensor([1.0, NAN, 1.0]))
        loss.backward()
        steps.step()
        losses.append(loss.item())
    assert losses[2] < losses[1] < losses[0]
    assert module.weight.tolist()[1] is None
    assert module.weight.get_data().isfinite().all()


def test_modules_move_and_cast() -> None:
    module = Holey().half()
    assert module.weight.dtype is torch.float16
    assert isinstance(module.weight, nn.Parameter)
    assert module.weight.tolist() == [1.0, None, 3.0]
    assert module.to(torch.float64).scale.tolist() == [1.0, 1.0, None]
    assert copy.deepcopy(module).weight.dtype is torch.float64


def test_to_and_friends_keep_the_mask() -> None:
    x = example()
    for y in (x.half(), x.double(), x.cpu(), x.to("cpu", torch.bfloat16), x.type(torch.float64), x.clone(), x.int()):
        assert y.tolist() == [1, None, 3]
    assert x.to("meta").get_mask().device.type == "meta"


def test_container_protocol() -> None:
    x = mt.masked_tensor([[1.0, 2.0], [3.0, 4.0]], [[True, False], [True, True]])
    assert len(x) == 2
    assert [row.tolist() for row in x] == [[1.0, None], [3.0, 4.0]]
    assert 1.0 in x
    assert 2.0 not in x
    assert len({x, x, x.clone()}) == 2
    assert x.tolist() == [[1.0, None], [3.0, 4.0]]
    assert {"filled", "compressed", "get_mask", "sum"} <= set(dir(x))


def test_numbers() -> None:
    x = example()
    assert (x[0].item(), float(x[0]), int(x[2]), complex(x[0]), bool(x[0])) == (1.0, 1.0, 3, 1 + 0j, True)
    assert [10, 20][mt.masked_tensor(1)] == 20
    for ask in (lambda v: v.item(), float, int, bool, complex):
        with pytest.raises(MaskedValueError):
            ask(x[1])
    for ask in (bool, lambda v: v.item()):
        with pytest.raises(RuntimeError):
            ask(x)
    with pytest.raises(TypeError):
        [10, 20][mt.masked_tensor(1.0)]


def test_format() -> None:
    x = example()
    assert f"{x[0]:.2f} {x[1]:.2f} {x[2]:6.1f}" == "1.00 --    3.0"
    assert f"{x}" == repr(x)


def test_functions_of_numpy_that_call_methods_name_ours() -> None:
    whole, part = mt.masked_tensor([[1.0, 2.0]]), mt.masked_tensor([[1.0, None]])
    for name in ("mean", "sum", "std", "any"):
        for x in (whole, part):
            with pytest.raises(TypeError, match=rf"numpy\.{name}\(\) does not .*; use x\.{name}\(\) or x\.to_numpy_ma"):
                getattr(np, name)(x)
    assert np.concatenate((whole, whole)).tolist() == [[1.0, 2.0]] * 2
    assert np.shape(part) == (1, 2)
    with pytest.raises(mt.MaskedValueError, match="select_valid"):
        np.concatenate((part, part))


def test_numpy_and_dlpack_only_without_masked_entries() -> None:
    whole = mt.masked_tensor([1.0, 2.0])
    assert whole.numpy().tolist() == [1.0, 2.0]
    assert np.asarray(whole).tolist() == [1.0, 2.0]
    assert np.asarray(whole, dtype=np.float64).dtype == np.float64
    assert torch.from_dlpack(whole).tolist() == [1.0, 2.0]
    for leave in (lambda v: v.numpy(), np.asarray, torch.from_dlpack):
        with pytest.raises(MaskedValueError, match="would drop the mask"):
            leave(example())
    with pytest.raises(RuntimeError, match="requires grad"):
        mt.masked_tensor([1.0], requires_grad=True).numpy()


def test_elementwise_python_functions_are_refused() -> None:
    x = example()
    for name in ("apply_", "map_"):
        with pytest.raises(UnsupportedOpError, match="compressed"):
            getattr(x, name)(x, lambda v: v)
    assert x.tolist() == [1.0, None, 3.0]


def test_shared_memory() -> None:
    x = example()
    assert not x.is_shared()
    assert x.share_memory_() is x
    assert x.is_shared()
    assert pair_of(x).mask.is_shared()
    assert x.tolist() == [1.0, None, 3.0]


def test_data_is_the_detached_tensor_and_can_be_replaced() -> None:
    x = example(requires_grad=True)
    assert not x.data.requires_grad
    x.data.mul_(2)
    assert x.tolist() == [2.0, None, 6.0]
    x.data = mt.masked_tensor([7.0, 8.0, 9.0], [False, True, True])
    assert x.tolist() == [None, 8.0, 9.0]
    assert (x * 1).tolist() == [None, 8.0, 9.0]
    x.data = torch.ones(3)
    assert x.tolist() == [1.0, 1.0, 1.0]
    with pytest.raises(RuntimeError, match="same shape"):
        x.data = torch.ones(2)


LEAVES = torch.linspace(0.5, 2, 6, dtype=torch.float64).view(2, 3)
MADE: dict[str, Callable[[Tensor], Tensor]] = {
    "a leaf": lambda x: x,
    "a result": lambda x: x * 2,
    "a view": lambda x: (x * 2).view(2, 3),
    "a part": lambda x: torch.cat([x, x])[1:3],
}
SAVED: dict[str, Callable[[Tensor], Tensor]] = {  # by entry: k itself, or the result, is saved for the derivative
    "square": lambda k: k * k,
    "sin": torch.sin,
    "exp": torch.exp,
    "sqrt": torch.sqrt,
    "quotient": lambda k: 1 / k,
    "relu": lambda k: k.relu() * k,
}
MIXED: dict[str, Callable[[Tensor], Tensor]] = {
    "softmax": lambda k: k.softmax(-1) ** 2,
    "matmul": lambda k: k @ k.mT,
    "norm": lambda k: k.norm(dim=-1),
    "prod": lambda k: k.prod(-1),
    "cumsum": lambda k: (k * k).cumsum(0),
    "rows": lambda k: k[0] * k[1],
    "layer_norm": lambda k: nn.functional.layer_norm(k, (3,)),
}
WRITTEN: dict[str, Callable[[Tensor], object]] = {  # what k.data is, written in each way
    "a number": lambda data: data.__setitem__(0, 3.0),
    "a row": lambda data: data.__setitem__(0, torch.tensor([7.0, 8.0, 9.0], dtype=torch.float64)),
    "a column": lambda data: data[:, 0].mul_(5),
    "zeros": lambda data: data.zero_(),
    "a copy": lambda data: data.copy_(torch.arange(1.0, 7.0).view(2, 3)),
    "some": lambda data: data.masked_fill_(torch.eye(2, 3, dtype=torch.bool), 6.0),
    "what is out": lambda data: torch.mul(data, 3, out=data),
    "another alias": lambda data: (data.data.mul_(2), data.detach().mul_(3)),
}


def derivative(x: Tensor, made: str, saved: str, write: Callable[[Tensor], object] | None) -> Tensor:
    """The gradient at ``x``, with a ``write`` to what was made between forward and backward."""
    x.requires_grad_()
    k = MADE[made](x)
    y = (SAVED | MIXED)[saved](k)
    if write is not None:
        write(k)
    (gradient,) = torch.autograd.grad(y.sum(), x)
    return mt.filled(gradient, 0) if mt.is_masked_tensor(gradient) else gradient


@pytest.mark.parametrize("written", WRITTEN)
@pytest.mark.parametrize("saved", [*SAVED, *MIXED])
@pytest.mark.parametrize("packed", [False, True], ids=["strided", "packed"])
def test_a_write_into_data_between_forward_and_backward_is_allowed(saved: str, written: str, packed: bool) -> None:
    """As in torch, which does not notice: the derivative reads what is there then, or what an op kept a copy of.

    What autograd saved of a packed tensor is no part of the padded memory that such a write makes: it may raise.
    """

    def write(k: Tensor) -> None:
        WRITTEN[written](k.data)
        k.data[:, 2] -= 1  # once more, of what is strided by now

    masks = [torch.ones(2, 3, dtype=torch.bool)]
    if saved in SAVED:
        masks.append(torch.tensor([[True, False, True], [False, True, True]]))
    for mask, made in itertools.product(masks, MADE if saved in SAVED or not packed else ["a result"]):
        x = mt.masked_tensor(LEAVES, mask)
        try:
            got = derivative(x.packed() if packed else x, made, saved, write)
        except RuntimeError as error:
            if not packed or not re.search("modified (by an )?inplace", str(error)):
                raise
            continue
        after, before = (derivative(LEAVES.clone(), made, saved, w) * mask for w in (write, None))
        if saved == "square" or (saved in SAVED and mask.all()):
            assert torch.equal(got, after), made
        else:
            assert torch.allclose(got, after) or torch.allclose(got, before), made


@pytest.mark.parametrize("saved", [*SAVED, *MIXED])
@pytest.mark.parametrize("packed", [False, True], ids=["strided", "packed"])
def test_data_assigned_between_forward_and_backward_are_read_or_refused(saved: str, packed: bool) -> None:
    """Torch reads the new values, in what is MIXED in part; where ours has saved the old ones, backward says so."""

    def assign(k: Tensor) -> None:
        k.data = torch.full((2, 3), 7.0, dtype=torch.float64)

    refused, mask = 0, torch.ones(2, 3, dtype=torch.bool)
    if saved in SAVED:
        mask = torch.tensor([[True, False, True], [False, True, True]])
    for made in MADE:
        x = mt.masked_tensor(LEAVES, mask)
        try:
            found = derivative(x.packed() if packed else x, made, saved, assign)
        except RuntimeError as error:
            if not re.search("modified (by an )?inplace", str(error)):
                raise
            refused += 1
        else:
            wanted = derivative(LEAVES.clone(), made, saved, assign if saved in SAVED else None)
            assert torch.allclose(found, wanted * mask)
    assert refused == 4 or saved not in ("square", "sin")


class Assigned(torch.autograd.Function):
    """What solvers of differential equations write: into a scratch tensor, past the count of versions."""

    @staticmethod
    def forward(ctx: Any, scratch: Tensor, value: Tensor, index: Any) -> Tensor:
        ctx.index = index
        scratch.data[index] = value
        return scratch

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, Tensor, None]:
        return grads[0], grads[0][ctx.index], None


def steps(x: Tensor, weight: Tensor) -> Tensor:
    """Each step reads all that came before, and the scratch is written after it was saved."""
    k = torch.empty(*x.shape, 3, dtype=x.dtype)
    k = Assigned.apply(k, (x * weight).tanh(), (..., 0))
    for i in range(1, 3):
        k = Assigned.apply(k, ((x + (k[..., :i] * weight).sum(-1)) * weight).tanh(), (..., i))
    return (k * torch.arange(1.0, 4.0)).sum(-1)


@pytest.mark.parametrize("lengths", [(3, 1), (2, 2), (3, 0)])
def test_a_scratch_tensor_that_is_written_after_it_was_saved(lengths: tuple[int, ...]) -> None:
    rows = [torch.randn(n, dtype=torch.float64) for n in lengths]
    weights = [torch.tensor(0.7, dtype=torch.float64, requires_grad=True) for _ in range(2)]
    with mt.masked_factories():
        padded = steps(mt.from_sequences(rows), weights[0])
    alone = [steps(row, weights[1]) for row in rows]
    for got, row in zip(padded, alone, strict=True):
        torch.testing.assert_close(got[: len(row)].filled(torch.nan), row)
    padded.square().sum().backward()
    torch.cat(alone).square().sum().backward()
    torch.testing.assert_close(weights[0].grad, weights[1].grad)


@pytest.mark.parametrize(("method", "error"), [("rk4", 1e-12), ("dopri5", 1e-6)])
def test_solvers_of_differential_equations_are_differentiated(method: str, error: float) -> None:
    """Fixed steps are those of each row alone; dopri5 chooses its steps by the whole batch, and meets its tolerance."""
    odeint = pytest.importorskip("torchdiffeq").odeint
    rows = [torch.linspace(-1, 1, 6, dtype=torch.float64).view(3, 2), torch.ones(1, 2, dtype=torch.float64)]
    layer, times = nn.Linear(2, 2).double(), torch.tensor([0.0, 0.5, 1.0], dtype=torch.float64)

    def solved(start: Tensor) -> Tensor:
        path: Tensor = odeint(lambda t, y: layer(y).tanh(), start, times, method=method, rtol=1e-9, atol=1e-9)
        return path

    with mt.masked_factories():
        padded = solved(mt.from_sequences(rows))
    alone = [solved(row) for row in rows]
    for i, row in enumerate(alone):
        torch.testing.assert_close(padded[:, i, : row.shape[1]].filled(torch.nan), row, rtol=error, atol=error)
    ours = torch.autograd.grad(padded.square().sum(), list(layer.parameters()))
    expected = torch.autograd.grad(sum(row.square().sum() for row in alone), list(layer.parameters()))
    torch.testing.assert_close(ours, expected, rtol=error, atol=error)


@pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")  # the loader's own way
@pytest.mark.parametrize("workers", [0, 1])
def test_datasets_and_loaders(workers: int) -> None:
    x = mt.masked_tensor(torch.arange(8.0).view(4, 2), [True, False])
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x), batch_size=2, num_workers=workers)
    assert [batch[0].tolist() for batch in loader] == [[[0.0, None], [2.0, None]], [[4.0, None], [6.0, None]]]
    for mixed in ([torch.ones(2), x[0]], [x[0], torch.ones(2)]):
        (batch,) = torch.utils.data.DataLoader(mixed, batch_size=2, num_workers=workers)  # type: ignore[arg-type]
        assert sorted(batch.tolist(), key=str) == [[0.0, None], [1.0, 1.0]]
    (batch,) = torch.utils.data.DataLoader(torch.ones(2, 2), batch_size=2, num_workers=workers)  # type: ignore[arg-type]
    assert type(batch) is torch.Tensor


def test_inference_mode() -> None:
    with torch.inference_mode():
        x = example()
        assert (x.filled(0).tolist(), x.compressed().tolist(), x.count().item()) == ([1, 0, 3], [1, 3], 2)
        assert "valid=2/3" in repr(x)

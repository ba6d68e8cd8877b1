"""Where the package reads Python frames: each place has a program here that fails when torch or Python changes.

Each program runs as it stands, and again with the place blind, when it must fail.
"""

import ast
import types
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import masked_tensor as mt
from masked_tensor import compat, settings
from masked_tensor.api.batches import batch
from masked_tensor.api.losses import masked_losses, numel_warning
from masked_tensor.api.make import create
from masked_tensor.api.python import protocols
from masked_tensor.engine import torch_keys
from masked_tensor.engine.boundary import user_functions
from masked_tensor.functional.losses import torch_losses
from masked_tensor.shared import feature_joins

PACKAGE = Path(mt.__file__).parent


def differentiate_masked() -> None:
    """A traced torch.func runs an op on a masked tensor that it has wrapped, with its own level off the stack."""
    torch._dynamo.reset()
    compiled = torch.compile(lambda x: torch.func.grad(lambda x: x.mean())(x), backend="eager")
    with pytest.raises(Exception, match="transform cannot differentiate"):
        compiled(mt.masked_tensor([1.0, 2.0, None]))


class Zeroed(torch.autograd.Function):
    """Writes its argument."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.mark_dirty(x)
        return x.zero_()


def write_view_in_function() -> None:
    """A Function of the user's writes a view: its arguments are found in its frame."""
    x = mt.masked_tensor([1.0, None], requires_grad=True) * 1
    with pytest.raises(RuntimeError, match="the gradient of Zeroed"):
        Zeroed.apply(x[:1])


def raise_in_graph() -> None:
    """A graph that raises leaves what was entered in it: the function that runs it is found by its frame."""

    @torch.compile(backend="eager")
    def pick(x: Tensor, index: Tensor) -> Tensor:
        with mt.meaning(padding="tensor"):
            return x[index] + 1

    torch._dynamo.reset()
    before = settings.STACK.get()
    try:
        pick(torch.ones(2), torch.tensor([1]))
        with pytest.raises(IndexError):
            pick(torch.ones(2), torch.tensor([5]))
        assert settings.in_force() is settings.NOTHING
    finally:
        settings.STACK.set(before)


def ask_for_memory() -> None:
    """torch asks which tensors share memory, and is told that there is none; anybody else gets an error."""
    x = mt.masked_tensor([1.0, None])
    assert eval("x.data_ptr()", {"__name__": "torch.somewhere", "x": x}) == 0
    with pytest.raises(mt.UnsupportedOpError):
        x.data_ptr()


def keep_leaf_gradient() -> None:
    """The gradient that nobody else holds becomes that of a leaf as it is: no alias is made of it."""
    x = mt.masked_tensor([1.0, None], requires_grad=True)
    (x * 3).sum().backward()
    grad: Any = x.grad
    assert grad._alias.family is None


def ask_for_size() -> None:
    """``numel()`` warns the user, but neither torch nor the package."""
    x = mt.masked_tensor([1.0, None])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        torch.nn.utils.parameters_to_vector([x])
        repr(x)
        with pytest.raises(mt.MaskedSizeWarning):
            x.numel()


def go_back_from_nothing() -> None:
    """The warning of masked losses names the line of the user, who calls torch."""
    x = mt.masked_tensor([1.0, None], requires_grad=True)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        x[1:].sum().backward()
    assert [warning.filename for warning in seen] == [__file__]


def join_features() -> None:
    """The warning of features that are joined to padding names the line of the user, who calls torch."""
    x = mt.from_lengths(torch.ones(2, 3, 2), [3, 1])
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        torch.hstack([x.mT, torch.ones(2, 1, 3)])
    assert [warning.filename for warning in seen] == [__file__]


def take_nan_of_a_column() -> None:
    """The warning of NaN in a column of floats names the line of the user."""
    pandas = pytest.importorskip("pandas")
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        frame = pandas.DataFrame({"age": [1.0, float("nan")]})
        mt.masked_tensor(frame)
        mt.collate([{"x": frame["age"]}])
        mt.pad_sequence([frame])
    assert [warning.filename for warning in seen] == [__file__] * 3


def copy_of_a_result() -> None:
    """The warning of a copy outside of the graph names the line of the user."""
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        mt.masked_tensor(torch.ones(2, requires_grad=True), [True, False])
    assert [warning.filename for warning in seen] == [__file__]


def take_an_empty_row() -> None:
    """The warning of an attention mask with an empty row names the line of the user."""
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        mt.from_attention_mask(torch.ones(2, 3), torch.tensor([[1, 1, 0], [0, 0, 0]]))
    assert [warning.filename for warning in seen] == [__file__]


def compare_other_shapes() -> None:
    """The warning of a target of another shape names the line of the user, who calls a function or a module."""
    for x in (mt.masked_tensor([1.0, None]), torch.ones(2)):
        for loss in (torch.nn.MSELoss(reduction="none"), torch.nn.L1Loss(), torch.nn.functional.l1_loss):
            with warnings.catch_warnings(record=True) as seen:
                warnings.simplefilter("always")
                result = loss(x, torch.ones(2, 1))
            assert [warning.filename for warning in seen] == [__file__]
            assert result.shape == ((2, 2) if loss.__class__ is torch.nn.MSELoss else ())


Program = Callable[[], None]
#: The function that reads frames: a program, and a name of a module and what makes the place blind.
READERS: dict[str, tuple[Program, Any, str, Any]] = {
    "wrapped_by_transform": (differentiate_masked, compat, "_LEVELS", frozenset()),
    "running_function": (write_view_in_function, user_functions, "_arguments", lambda frame: ()),
    "_enter_traced": (raise_in_graph, settings, "is_running", lambda frame: True),
    "over": (raise_in_graph, settings, "is_running", lambda frame: True),
    "called_from_outside": (ask_for_memory, protocols, "called_from_outside", lambda: True),
    "asked_for_leaf_gradient": (keep_leaf_gradient, torch_keys, "graph", types.ModuleType("moved")),
    "size": (ask_for_size, numel_warning, "OUR_FILES", "nowhere"),
    "_warn": (join_features, feature_joins, "line_of_user", lambda: 1),
    "masked_tensor": (copy_of_a_result, create, "line_of_user", lambda: 1),
    "warn_of_nan": (take_nan_of_a_column, create, "line_of_user", lambda: 1),
    "_as_bool": (take_an_empty_row, batch, "line_of_user", lambda: 1),
    "_say": (go_back_from_nothing, masked_losses, "line_of_user", lambda: 1),
    "_of_one_shape": (compare_other_shapes, torch_losses, "line_of_user", lambda: 1),
}
OTHERS = {"_called_from_package"}  #: of api/make/factories.py, a precaution: no program is known that needs it


ASKING = {"_getframe", "currentframe", "first_caller", "line_of_user", "is_running"}


def readers(path: Path) -> set[str]:
    """The functions of a file that ask for a frame: the innermost ones."""
    functions = [n for n in ast.walk(ast.parse(path.read_text())) if isinstance(n, ast.FunctionDef)]
    asking = [f for f in functions if any({getattr(n, "attr", ""), getattr(n, "id", "")} & ASKING for n in ast.walk(f))]
    return {f.name for f in asking if not any(g is not f and g in ast.walk(f) for g in asking)} - ASKING


def test_every_place_that_reads_frames_has_a_program() -> None:
    assert {name for path in PACKAGE.rglob("*.py") for name in readers(path)} == READERS.keys() | OTHERS


@pytest.mark.parametrize("name", READERS)
def test_frames_are_as_the_reader_takes_them(name: str) -> None:
    READERS[name][0]()


@pytest.mark.parametrize("name", READERS)
def test_a_blind_reader_is_noticed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    program, module, attribute, blind = READERS[name]
    monkeypatch.setattr(module, attribute, blind)
    with pytest.raises((Exception, pytest.fail.Exception)):
        program()

"""With nothing masked, a call gives what torch gives: calls of torch's own test files that once gave something else.

``tests.shadow`` runs whole files so; these are the calls in which it found a fault.
"""

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

import masked_tensor as mt

Wrap = Callable[[Tensor], Any]
NONE = torch.empty(0, dtype=torch.int64)
INT32 = torch.tensor([0, 2], dtype=torch.int32)


def numbers(*shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
    torch.manual_seed(0)
    return torch.randn(shape, dtype=dtype).requires_grad_(dtype.is_floating_point or dtype.is_complex)


def foreach(name: str) -> Callable[..., Any]:
    return getattr(torch, f"_foreach_{name}")  # type: ignore[no-any-return]


CALLS: dict[str, tuple[list[Tensor], Callable[..., Any]]] = {
    "bucketize, values in half": (
        [torch.arange(9.0).bfloat16(), torch.linspace(0, 9, 10)],
        lambda x, y: torch.bucketize(x, y, right=True),
    ),
    "searchsorted, integers in floats": ([torch.arange(4.0).double(), torch.arange(5).int()], torch.searchsorted),
    "searchsorted, floats in integers": ([torch.arange(4), torch.tensor([0.5, -1.0, 9.0])], torch.searchsorted),
    "the greatest of complex numbers in double": (
        [numbers(3, 3, dtype=torch.complex64)],
        lambda x: torch.linalg.vector_norm(x, torch.inf, dtype=torch.complex128),
    ),
    "pinv with a tolerance of fewer dimensions": (
        [torch.full((2,), 0.1), numbers(3, 2, 4, 4)],
        lambda tolerance, x: torch.linalg.pinv(x, tolerance),
    ),
    "lstsq of batches of two sizes": (
        [numbers(1, 4, 4), numbers(3, 4, 2)],
        lambda x, y: tuple(torch.linalg.lstsq(x, y, driver="gelsd")),
    ),
    "einsum of one operand": ([numbers(2, 3)], lambda x: torch.einsum("ab->ba", x)),
    "a norm of bools in double": (
        [numbers(3, 3) > 0],
        lambda x: torch.linalg.vector_norm(x, 0, dtype=torch.float64),
    ),
    "the least in double, by rows": (
        [numbers(3, 3)],
        lambda x: torch.linalg.vector_norm(x, -torch.inf, 1, dtype=torch.float64),
    ),
    **{
        f"_foreach_{name}, {kind}": (
            [numbers(3), numbers(3)],
            lambda x, y, name=name, number=number: foreach(name)([x], [y] if number is None else number),
        )
        for name in ("minimum", "maximum", "clamp_min", "clamp_max")
        for kind, number in (("ties", None), ("a number", 0.5), ("numbers", [1.5]))
    },
    "_foreach_maximum of integers and a number": ([torch.arange(3)], lambda x: torch._foreach_maximum([x], 1.5)),
    "_foreach_maximum_": ([torch.arange(3.0)], lambda x: torch._foreach_maximum_([x.clone()], 1.5)),
    "_foreach_minimum_ of integers and a fraction": ([torch.arange(3)], lambda x: torch._foreach_minimum_([x], 1.5)),
    **{
        f"_foreach_{name} by a tensor of numbers": (
            [*torch.rand(3, 2), torch.tensor([2.0])],
            lambda x, y, z, n, name=name: foreach(name)([x], [y], [z], n),
        )
        for name in ("addcmul", "addcdiv")
    },
    "multilabel_soft_margin_loss of two dtypes": (
        [numbers(4, 3, dtype=torch.float64), torch.rand(4, 3)],
        F.multilabel_soft_margin_loss,
    ),
    **{
        f"{name} into another dtype than it says": (
            [torch.ones(3, 4), torch.zeros(4), torch.zeros(3, 4)],
            lambda x, y, z, name=name: getattr(torch, name)(
                x, 0, dtype=torch.float64, out=z if name in ("cumsum", "cumprod") else y
            ),
        )
        for name in ("sum", "prod", "mean", "cumsum", "cumprod", "nansum")
    },
    **{
        f"{name} of {kind}": ([x.requires_grad_(x.is_floating_point())], getattr(torch, name))
        for name in ("median", "nanmedian")
        for kind, x in {
            "ties": torch.tensor([1.0, 2.0, 2.0, 9.0]),
            "one value": torch.ones(2, 3, dtype=torch.bfloat16),
            "infinities": torch.tensor([1.0, torch.inf, torch.inf]),
            "NaN": torch.tensor([1.0, torch.nan, torch.nan]),
            "integers": torch.tensor([1, 2, 2, 9]),
        }.items()
    },
    **{
        f"{name} of a strided tensor": ([torch.ones(2, 2)], lambda x, name=name: getattr(x, name)())
        for name in ("coalesce", "values", "indices", "crow_indices")
    },
    "max_unpool3d to a size of two dimensions": (
        [torch.ones(1, 1, 1, 1, 1), torch.zeros(1, 1, 1, 1, 1, dtype=torch.int64)],
        lambda x, i: torch._C._nn.max_unpool3d(x, i, (2, 2), 1, 0),
    ),
    "any of nothing": ([torch.ones(2, 0, 4)], lambda x: x.any(1)),
    "all of nothing": ([torch.ones(2, 0, 4)], lambda x: x.all(1)),
    **{
        f"index_reduce {name} by int32": ([numbers(3, 4), INT32, numbers(2, 4)], call)
        for name, call in {
            "mean": lambda x, i, y: x.index_reduce(0, i, y, "mean"),
            "prod": lambda x, i, y: x.index_reduce(0, i, y, "prod"),
            "sum": lambda x, i, y: x.index_add(0, i, y),
        }.items()
    },
    "index_add of float16 by int32": (
        [torch.ones(3, 4).half(), INT32, torch.ones(2, 4).half()],
        lambda x, i, y: x.index_add(0, i, y),
    ),
    "index_reduce of integers by int32": (
        [torch.ones(3, 4).long(), INT32, torch.ones(2, 4).long()],
        lambda x, i, y: x.index_reduce(0, i, y, "mean"),
    ),
    "scatter by nothing": ([torch.ones(2, 2), NONE, torch.ones(2, 2)], lambda x, i, y: x.scatter(0, i, y)),
    "scatter_add by nothing": ([torch.ones(2, 2), NONE, torch.ones(2, 2)], lambda x, i, y: x.scatter_add(0, i, y)),
    **{
        f"scatter_reduce {name} by nothing": (
            [torch.ones(2, 2), NONE, torch.ones(2, 2)],
            lambda x, i, y, name=name: x.scatter_reduce(0, i, y, name, include_self=name == "mean"),
        )
        for name in ("mean", "prod", "amax")
    },
    **{
        f"ctc_loss with {name}": (
            [numbers(5, 3, 5).detach().log_softmax(-1), torch.ones(3, 2, dtype=torch.int64), *lengths],
            F.ctc_loss,
        )
        for name, lengths in {
            "lengths of floats": (torch.full((3,), 5.0), torch.full((3,), 2)),
            "numbers of labels as floats": (torch.full((3,), 5), torch.full((3,), 2.0)),
            "a negative length": (torch.tensor([5, -1, 5]), torch.full((3,), 2)),
            "a negative number of labels": (torch.full((3,), 5), torch.tensor([2, -2, 2])),
        }.items()
    },
}


def outcome(name: str, wrap: Wrap, which: int) -> Any:
    """Results, their strides and the gradients (zeros where there is none); of an error its kind."""
    given, call = CALLS[name]
    leaves = [x.detach().clone().requires_grad_(x.requires_grad) for x in given]
    operands = [wrap(x) if which in (i, -1) else x for i, x in enumerate(leaves)]
    try:
        found = call(*operands)
    except (RuntimeError, IndexError, TypeError) as error:
        return type(error)
    found = [x for x in (found if isinstance(found, (list, tuple)) else [found]) if x is not None]
    tracked = [x for x in found if x.requires_grad]
    if tracked:
        torch.autograd.backward(tracked, [torch.ones_like(x) for x in tracked])
    gradients = [torch.zeros_like(x) if x.grad is None else x.grad for x in leaves]
    data = [x.get_data() if mt.is_masked_tensor(x) else x for x in (*found, *gradients)]
    return [x.detach() for x in data], [x.stride() for x in data]


@pytest.mark.filterwarnings("ignore:index_reduce")
@pytest.mark.parametrize("name", CALLS)
def test_with_nothing_masked_a_call_gives_torchs_result(name: str) -> None:
    expected = outcome(name, lambda x: x, -1)

    def wrapped(x: Tensor) -> Tensor:
        return mt.as_masked_tensor(x, torch.ones(x.shape, dtype=torch.bool))

    for which in (-1, 0):  # all operands, and the first alone
        found = outcome(name, wrapped, which)
        if isinstance(expected, type):
            assert isinstance(found, type)
            assert issubclass(found, expected)
        else:
            torch.testing.assert_close(found, expected, equal_nan=True)

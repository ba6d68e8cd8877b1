"""``_foreach_`` ops: torch's own loop over their lists runs, and the ops on the elements have entries of their own.

torch's loops of ``_foreach_minimum`` and ``_foreach_maximum`` clamp, where the derivative at a tie is another one.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor

from ..compat import OpOverload, operator_names
from ..errors import must_be_plain

LOOPS = frozenset(name for name in operator_names() if name.startswith("aten::_foreach_"))
_EXTREMA = {"minimum": torch.minimum, "maximum": torch.maximum}


def own_loop(op: OpOverload) -> Callable[..., Any] | None:
    """The loop that is run instead of torch's, if there is one."""
    name, _, overload = op.name().removeprefix("aten::_foreach_").partition(".")
    if name.removesuffix("_") in ("addcmul", "addcdiv") and overload == "Tensor":
        return partial(_with_numbers, getattr(torch.ops.aten, f"_foreach_{name}").ScalarList)
    extremum = _EXTREMA.get(name.removesuffix("_"))
    if extremum is None or overload not in ("List", "Scalar", "ScalarList"):
        return None

    def loop(tensors: Sequence[Tensor], others: Any) -> list[Tensor]:
        others = [others] * len(tensors) if overload == "Scalar" else others
        return [extremum(x, _as_tensor(other, x)) for x, other in zip(tensors, others, strict=True)]

    def write(tensors: Sequence[Tensor], others: Any) -> None:
        kept = [x.clone() for x in tensors]  # for the derivative, which asks for the operands
        for x, result in zip(tensors, loop(kept, others), strict=True):
            if not torch.can_cast(result.dtype, x.dtype):
                raise RuntimeError(f"result type {result.dtype} can't be cast to the desired output type {x.dtype}")
            x.copy_(result)

    return write if name.endswith("_") else loop


def _with_numbers(op: OpOverload, *args: Any, scalars: Tensor | None = None) -> Any:
    """``_foreach_addcmul`` and ``_foreach_addcdiv`` with a tensor of numbers, which torch reads from memory."""
    *lists, given = (*args, scalars) if scalars is not None else args
    numbers = given.tolist()
    if None in numbers:
        raise must_be_plain(op.name(), "scalars")
    return op(*lists, numbers)


def _as_tensor(value: Any, x: Tensor) -> Tensor:
    if isinstance(value, Tensor):
        return value
    return torch.full((), value, dtype=torch.result_type(x, value), device=x.device)

"""Which kernel of a GPU serves which op, and which are compiled at a call."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial, wraps
from typing import Any

import torch
import triton
from torch import Tensor

from ..softmax import twice
from ..table import Kernel
from . import (
    cross_entropy,
    losses,
    reduce,
    reduce_backward,
    softmax,
    standardize,
    standardize_backward,
    variance,
)


def _kernel(forward: Any, backward: Any, serves: Any, *constant: int, twice: Any = None) -> Kernel:
    """``constant``: the results that have no gradient."""
    return Kernel(
        where_they_lie(forward),
        None if backward is None else where_they_lie(backward),
        serves,
        twice,
        constant=(lambda *_: constant) if constant else None,
        opaque=True,
    )


def where_they_lie(function: Callable[..., Any]) -> Callable[..., Any]:
    """Kernels run on the device that is current: it becomes that of the tensors."""

    @wraps(function)
    def run(first: Any, *arguments: Any) -> Any:
        data = first if isinstance(first, Tensor) else next(t for t in first if t is not None)
        if not data.is_cuda or data.device.index == torch.cuda.current_device():
            return function(first, *arguments)
        with torch.cuda.device(data.device):
            return function(first, *arguments)

    return run


ENTRIES: dict[str, Kernel] = {
    "softmax": _kernel(softmax.forward, softmax.backward, softmax.serves, twice=twice),
    "variance": replace(
        _kernel(variance.forward, variance.backward, variance.serves), constant=lambda *given: (1, 3)[: 1 + given[-1]]
    ),
    "standardize": _kernel(standardize.forward, standardize_backward.backward, standardize.serves, 2),
    "loss": _kernel(losses.forward, losses.backward, losses.serves),
    "class_loss": _kernel(cross_entropy.forward, cross_entropy.backward, cross_entropy.serves),
}
for _name in reduce.REDUCTIONS:
    ENTRIES[_name] = _kernel(
        partial(reduce.forward, _name),
        partial(reduce_backward.backward, _name),
        partial(reduce.serves, _name),
        *((1,) if _name == "mean" else ()),
        twice=reduce_backward.twice if _name in reduce.LINEAR else None,
    )
for _name in reduce.LOGICAL:
    ENTRIES[_name] = _kernel(partial(reduce.logical, _name), None, partial(reduce.serves_logical, _name))


@contextmanager
def compiled(lines: list[str]) -> Iterator[None]:
    """While it lasts, a line for each kernel that Triton compiles: at its first call for a dtype and a layout."""
    knobs = getattr(getattr(triton, "knobs", None), "runtime", None)
    if knobs is None:  # an older Triton does not tell
        yield
        return
    before = knobs.jit_post_compile_hook

    def tell(**call: Any) -> Any:
        found = call["fn"]
        lines.append(f"{found.module.rpartition('.')[2]}.{found.name.rpartition('.')[2]}: compiled, at its first call")
        return None if before is None else before(**call)

    knobs.jit_post_compile_hook = tell
    try:
        yield
    finally:
        knobs.jit_post_compile_hook = before

"""The functions of ``torch.masked``, given a masked tensor: the functional form of that name runs instead.

torch's own divide by the size of the tensor, because they take no mask from it.
"""

from collections.abc import Callable
from typing import Any

from torch import Tensor

from .. import functional
from ..engine.tensor import MaskedTensor
from ..patches.places import TORCH_MASKED, rebind, wrap_when_imported


def _median(input: MaskedTensor, dim: int = -1, **kwargs: Any) -> Any:
    """As torch.masked's: along the last dimension, and without indices."""
    return functional.median(input, dim, **kwargs)[0]


def _normalize(input: MaskedTensor, ord: float, dim: int, **kwargs: Any) -> Any:
    return functional.normalize(input, ord, dim, **kwargs)


_FORMS: dict[str, Callable[..., Any]] = {"median": _median, "normalize": _normalize}  # which torch calls otherwise


def _run_form(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    form = _FORMS.get(function.__name__) or getattr(functional, function.__name__)

    def run(*args: Any, **kwargs: Any) -> Tensor:
        given = (*args, *kwargs.values())
        result: Tensor = (form if any(type(a) is MaskedTensor for a in given) else function)(*args, **kwargs)
        return result

    return run


wrap_when_imported(TORCH_MASKED, _run_form)
rebind(TORCH_MASKED)

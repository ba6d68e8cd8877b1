"""tensordict: what stores tensors as plain memory refuses masked ones, and names the way."""

from typing import Any

from .. import MaskedTensor, MaskedWriteError
from ..extend.libraries import replace
from .places import PLAIN_STORES
from .wrapping import Function


def _refuse(store: Function) -> Function:
    def stored(self: Any, *args: Any, **kwargs: Any) -> Any:
        for name, x in self.items(include_nested=True, leaves_only=True):
            if type(x) is MaskedTensor:
                keys = (name,) if isinstance(name, str) else name
                data, mask = (", ".join(map(repr, (*keys, part))) for part in ("data", "mask"))
                raise MaskedWriteError(
                    f"{store.__name__}() keeps tensors as plain memory, which has no place for the mask of "
                    f"{'.'.join(keys)!r}: store td[{data}] = x.filled(0) and td[{mask}] = x.mask in its place, and "
                    f"read masked_tensor.as_masked_tensor(td[{data}], td[{mask}]); torch.save(td, file) keeps masked "
                    "tensors"
                )
        return store(self, *args, **kwargs)

    return stored


replace(PLAIN_STORES, _refuse)

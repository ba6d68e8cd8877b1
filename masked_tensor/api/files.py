"""safetensors files with holes: a masked tensor is two plain entries, data and mask, that any reader understands."""

import json
from collections.abc import Mapping
from importlib import import_module
from os import PathLike
from typing import Any

import torch
from torch import Tensor

from .. import layouts, masks
from ..engine.tensor import MaskedTensor, pair_of
from ..select import zero_masked
from .create import masked_tensor

KEY = "masked_tensor"  #: of the file's metadata: which entry is the mask of which


def save_file(
    tensors: Mapping[str, Tensor], filename: str | PathLike[str], metadata: Mapping[str, str] | None = None
) -> None:
    """``safetensors.torch.save_file`` for a ``state_dict`` that holds masked tensors, too.

    A masked tensor ``weight`` becomes the entries ``weight``, 0 in the holes, and ``weight.mask``, which is as small as
    the mask is in memory.  ``metadata`` says under ``"masked_tensor"`` which belong together.  Raises ImportError
    without safetensors, ValueError for a sparse masked tensor and for a name that is taken.

        >>> save_file(model.state_dict(), "model.safetensors")  # doctest: +SKIP
        >>> model.load_state_dict(load_file("model.safetensors"))  # doctest: +SKIP
    """
    entries: dict[str, Tensor] = {}
    belongs = {}
    for name, x in tensors.items():
        if type(x) is not MaskedTensor:
            entries[name] = x
            continue
        if layouts.is_sparse(x):
            raise ValueError(f"safetensors has no sparse tensors: save {name!r} as x.to_dense()")
        belongs[name] = f"{name}.mask"
        if belongs[name] in tensors:
            raise ValueError(f"the mask of {name!r} would be {belongs[name]!r}, which is another tensor's name")
        pair = pair_of(x)
        entries[name] = zero_masked(pair).detach().contiguous()
        mask = masks.compact(pair.mask)  # which others may have, too: a file wants memory of its own for each
        entries[belongs[name]] = mask.clone(memory_format=torch.contiguous_format)
    known = {**(metadata or {}), **({KEY: json.dumps(belongs)} if belongs else {})}
    _library("safetensors.torch").save_file(entries, filename, known or None)


def load_file(filename: str | PathLike[str], device: str | torch.device = "cpu") -> dict[str, Tensor]:
    """The tensors of a safetensors file, with the masked ones that :func:`save_file` wrote.

    >>> load_file("model.safetensors")  # doctest: +SKIP
    {'weight': masked_tensor([1.0000, --], valid=1/2)}
    """
    with _library("safetensors").safe_open(filename, framework="pt", device=str(device)) as file:
        belongs = json.loads((file.metadata() or {}).get(KEY, "{}"))
        names = set(file.keys()) - set(belongs.values())
        loaded = {name: file.get_tensor(name) for name in sorted(names)}
        return loaded | {name: masked_tensor(loaded[name], file.get_tensor(mask)) for name, mask in belongs.items()}


def _library(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError as reason:
        raise ImportError("save_file() and load_file() need safetensors: pip install safetensors") from reason

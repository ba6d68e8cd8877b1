"""safetensors files of masked tensors: each is two plain entries, data and mask, that any reader understands."""

import json
from collections.abc import Mapping
from importlib import import_module
from os import PathLike
from typing import Any

import torch
from torch import Tensor

from ... import layouts, masks
from ...engine.tensor import MaskedTensor, pair_of
from ...select import zero_masked
from ..create import masked_tensor

KEY = "masked_tensor"  #: of the file's metadata: which entry is the mask of which


def save_file(
    tensors: Mapping[str, Tensor], filename: str | PathLike[str], metadata: Mapping[str, str] | None = None
) -> None:
    """Writes a ``state_dict`` that may hold masked tensors into a safetensors file.

    A masked tensor ``weight`` becomes two entries: ``weight``, 0 where it is masked, and ``weight.mask``, which is as
    small as the mask is in memory. The file's metadata says under ``"masked_tensor"`` which belong together. Any reader
    of safetensors reads both.

    Args:
        tensors (dict): Names and tensors, plain or masked, of any shape and dtype.
        filename (str): The path of the file.
        metadata (dict, optional): Texts that the file keeps by name.

    Raises:
        ImportError: safetensors is not installed.
        ValueError: A masked tensor is sparse, or the name of its mask is that of another tensor.

    Example:
        >>> weights = {"weight": mt.masked_tensor([1.0, None])}
        >>> mt.save_file(weights, "model.safetensors")  # doctest: +SKIP

    References:
        ``safetensors.torch.save_file``.
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
    """The tensors of a safetensors file, masked where :func:`save_file` wrote masked ones.

    Args:
        filename (str): The path of the file.
        device (str, optional): Where the tensors are put.

    Returns:
        dict: Names and tensors, plain or masked, of the shapes and dtypes that were saved.

    Raises:
        ImportError: safetensors is not installed.
        FileNotFoundError: There is no such file.
        TypeError: The file's mask of a tensor is not bool.
        ValueError: The file's mask of a tensor does not fit its data, or the file's metadata do not name its masks.
        RuntimeError: A sparse tensor breaks the rules of its layout.

    Example:
        >>> mt.load_file("model.safetensors")  # doctest: +SKIP
        {'weight': masked_tensor([1.0000, --], valid=1/2)}

    References:
        ``safetensors.torch.load_file``.
    """
    with _library("safetensors").safe_open(filename, framework="pt", device=str(device)) as file:
        belongs = _masks_of((file.metadata() or {}).get(KEY, "{}"), set(file.keys()), filename)
        names = set(file.keys()) - set(belongs.values())
        loaded = {name: file.get_tensor(name) for name in sorted(names)}
        return loaded | {name: masked_tensor(loaded[name], file.get_tensor(mask)) for name, mask in belongs.items()}


def _masks_of(text: str, names: set[str], filename: str | PathLike[str]) -> dict[str, str]:
    """Which entry is the mask of which, as the file says it."""
    try:
        belongs = json.loads(text)
        known = names.issuperset((*belongs, *belongs.values()))
    except (ValueError, TypeError, AttributeError):
        known = False
    if not known:
        raise ValueError(f"the metadata {KEY!r} of {filename} do not name its masks, got {text!r}: the file is damaged")
    return dict(belongs)


def _library(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError as reason:
        raise ImportError("save_file() and load_file() need safetensors: pip install safetensors") from reason

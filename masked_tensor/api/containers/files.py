"""safetensors files of masked tensors: each is stored as two plain entries, data and mask."""

import ctypes
import json
import os
import tempfile
from collections.abc import Iterable, Mapping
from importlib import import_module
from os import PathLike
from typing import Any
from zlib import crc32

import torch
from torch import Tensor

from ... import layouts, masks
from ...engine.tensor import MaskedTensor, pair_of
from ...select import zero_masked
from ...shared.names import names_arguments
from ..make.create import masked_tensor

KEY = "masked_tensor"  #: of the file's metadata: which entry is the mask of which
SUMS = (
    "masked_tensor.crc32"  #: the same: of each entry a checksum of its dtype, shape and bytes; of ``KEY``, of its text
)


@names_arguments
def save_file(
    tensors: Mapping[str, Tensor], filename: str | PathLike[str], metadata: Mapping[str, str] | None = None
) -> None:
    """Save a ``state_dict`` that may contain masked tensors to a safetensors file.

    A masked tensor ``weight`` becomes two entries: ``weight``, which is 0 where it is masked, and ``weight.mask``, as
    small as the mask is in memory. The metadata list these pairs under ``"masked_tensor"`` and hold a checksum of each
    entry, which :func:`load_file` verifies. Any safetensors reader can read both entries.

    The file is written under a temporary name and then renamed, so that an error, a full disk or an interrupt leaves
    the old file unchanged.

    Args:
        tensors (dict): Tensors by name, plain or masked, of any shape and dtype.
        filename (str): The path of the file.
        metadata (dict, optional): Strings by name to store in the file.

    Raises:
        ImportError: safetensors is not installed.
        TypeError: ``tensors`` is not a dict of tensors.
        ValueError: A masked tensor is sparse.
        ValueError: The name of a mask is also the name of another tensor.

    Example:
        >>> weights = {"weight": mt.masked_tensor([1.0, None])}
        >>> mt.save_file(weights, "model.safetensors")  # doctest: +SKIP

    See also:
        :func:`load_file`.

    References:
        ``safetensors.torch.save_file``.
    """
    entries: dict[str, Tensor] = {}
    belongs = {}
    for name, x in tensors.items():
        if not isinstance(x, Tensor):
            raise TypeError(f"save_file() expects a dict of tensors, got {type(x).__name__} for {name!r}")
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
        mask = masks.compact(pair.mask)  # which others may share: a file needs separate memory for each
        entries[belongs[name]] = mask.clone(memory_format=torch.contiguous_format)
    library = _library("safetensors.torch")
    known = {KEY: json.dumps(belongs)} if belongs else {}
    known[SUMS] = json.dumps(_sums_of(entries.items(), known.get(KEY, "")))
    path = os.path.realpath(filename)
    with tempfile.TemporaryDirectory(prefix=".saving-", dir=os.path.dirname(path)) as folder:
        beside = os.path.join(folder, os.path.basename(path))
        library.save_file(entries, beside, {**(metadata or {}), **known})
        with open(beside, "rb+") as file:
            os.fsync(file.fileno())
        os.replace(beside, path)


@names_arguments
def load_file(filename: str | PathLike[str], device: str | torch.device = "cpu") -> dict[str, Tensor]:
    """The tensors of a safetensors file, masked where :func:`save_file` saved masked ones.

    Files without checksums are accepted.

    Args:
        filename (str): The path of the file.
        device (str, optional): The device of the tensors. Default: ``"cpu"``.

    Returns:
        dict: Tensors by name, plain or masked, of the saved shapes and dtypes.

    Raises:
        FileNotFoundError: There is no such file.
        ImportError: safetensors is not installed.
        TypeError: The mask of a tensor in the file is not bool.
        ValueError: The mask of a tensor in the file does not fit its data.
        ValueError: The metadata of the file do not name its masks.
        ValueError: A tensor does not match its checksum.
        RuntimeError: A sparse tensor violates the invariants of its layout.

    Example:
        >>> mt.load_file("model.safetensors")  # doctest: +SKIP
        {'weight': masked_tensor([1.0000, --], valid=1/2)}

    See also:
        :func:`save_file`.

    References:
        ``safetensors.torch.load_file``.
    """
    with _library("safetensors").safe_open(filename, framework="pt", device="cpu") as file:
        metadata, names = file.metadata() or {}, set(file.keys())
        text = metadata.get(KEY, "")
        belongs = _masks_of(text or "{}", names, filename)
        loaded = {name: file.get_tensor(name) for name in sorted(names)}
    if SUMS in metadata and metadata[SUMS] != json.dumps(_sums_of(loaded.items(), text)):
        raise ValueError(f"{filename} is damaged: its tensors are not those of its checksums; save it again")
    there = {name: x.to(device) for name, x in loaded.items()}
    plain = {name: there[name] for name in sorted(names - set(belongs.values()))}
    return plain | {name: masked_tensor(plain[name], there[mask]) for name, mask in belongs.items()}


def _sums_of(entries: Iterable[tuple[str, Tensor]], text: str) -> dict[str, int]:
    """A checksum of each entry, by name, and of the text that says which is the mask of which."""
    return {KEY: crc32(text.encode())} | {name: _sum_of(x) for name, x in sorted(entries)}


def _sum_of(x: Tensor) -> int:
    start = crc32(f"{x.dtype} {tuple(x.shape)}".encode())
    if x.layout is not torch.strided or x.is_meta or not x.numel():
        return start
    memory = x.detach().cpu().contiguous()
    return crc32((ctypes.c_char * (memory.numel() * memory.itemsize)).from_address(memory.data_ptr()), start)


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

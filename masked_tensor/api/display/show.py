"""How a masked tensor looks: torch's own number format, ``--`` for masked entries, and how many entries are valid.

Widths, precision and scientific notation are decided by the valid values alone, so nothing under the mask shows.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from ... import layouts, masks
from ...compat import PRINT_OPTS, Formatter, default_device, is_wrapped
from ...engine.tensor import MaskedTensor, add_members, pair_of
from ...layouts import meshes
from ...pair import Pair

MASKED = "--"
PLAIN = (Tensor, torch.nn.Parameter)
Cell = Callable[[Any, bool], str]  # (value, valid) -> text


def text(x: MaskedTensor, *, tensor_contents: str | None = None) -> str:
    """``repr(x)``.  Never reads a value while the tensor is being traced, transformed, or on the meta device."""
    inside = x._packed
    traced = inside is not None and type(inside.values) not in PLAIN  # it unpacks only under the modes of its tracer
    pair = Pair(inside.values, inside.grid.index) if inside is not None and traced else pair_of(x)
    name = "Parameter containing:\nmasked_tensor" if isinstance(x, torch.nn.Parameter) else "masked_tensor"
    indent = len("masked_tensor(")
    readable = can_read(pair)
    body = tensor_contents or (_body(pair, indent) if readable else _local_pair(pair, indent))
    return f"{name}({', '.join([body, *facts(x, pair, readable)])})"


def _local_pair(pair: Pair, indent: int) -> str:
    """The local part of a tensor on a mesh: nothing is sent, as other ranks may not print."""
    part = meshes.local_parts(pair.data, pair.mask) if meshes.is_distributed(pair.data) else None
    if part is None or not can_read(Pair(*part)):
        return "..."
    return f"local={_body(Pair(*part), indent + len('local='))}"


def can_read(pair: Pair) -> bool:
    """Whether the pair holds real numbers."""
    return type(pair.data) in PLAIN and not (pair.data.is_meta or is_wrapped(pair.data))


def facts(x: MaskedTensor, pair: Pair, readable: bool) -> list[str]:
    """What stands behind the values: how many are valid, and what is not as one would expect."""
    found = []
    if not readable or x.numel() == 0 or layouts.is_sparse(x):
        found.append(f"size={tuple(x.shape)}")
    if readable:
        found.append(f"valid={int(masks.count(layouts.values(pair.mask)))}/{x.numel()}")
    default = x.dtype in (torch.get_default_dtype(), torch.int64, torch.bool) and x.numel() > 0
    if not default or not readable:
        found.append(f"dtype={x.dtype}")
    if x.device.type not in ("cpu", default_device()) or not readable:
        found.append(f"device='{x.device}'")
    if meshes.is_distributed(pair.data):
        data: Any = pair.data
        found += [f"placements={data.placements}", f"device_mesh={data.device_mesh}"]
    if x.layout is not torch.strided:
        found.append(f"layout={x.layout}")
    if x.grad_fn is not None:
        found.append(f"grad_fn=<{type(x.grad_fn).__name__}>")
    elif x.requires_grad:
        found.append("requires_grad=True")
    return found


def _body(pair: Pair, indent: int) -> str:
    if layouts.is_sparse(pair.data):  # the stored values; what is not stored is masked
        return _body(Pair(layouts.values(pair.data.detach()), layouts.values(pair.mask)), indent)
    pair = Pair(pair.data.detach().cpu(), pair.mask.cpu())
    if pair.data.numel() == 0:
        return "[]"
    edge = PRINT_OPTS.edgeitems if pair.data.numel() > PRINT_OPTS.threshold else 0
    return _lines(pair, indent, edge, cell(pair, edge))


def cell(pair: Pair, edge: int) -> Cell:
    """How one entry is written; entries that stand below each other are padded to one width."""
    valid = _edges(pair.data, edge)[_edges(pair.mask, edge)].resolve_conj().resolve_neg()
    write = _format_complex(valid) if valid.is_complex() else _format(valid)
    stacked = pair.data.dim() > 1
    width = max((len(write(v)) for v in valid.tolist()), default=0) if stacked else 0
    return lambda value, ok: (write(value) if ok else MASKED).rjust(max(width, len(MASKED) if stacked else 0))


def _format(valid: Tensor) -> Callable[[Any], str]:
    """torch's formatter for these values; floats always show their decimals, as what is hidden need not be whole."""
    formatter = Formatter(valid.float() if valid.dtype.itemsize == 1 and valid.is_floating_point() else valid)
    if formatter.int_mode and valid.is_floating_point() and not formatter.sci_mode:
        formatter.int_mode, formatter.max_width = False, 0
        formatter.max_width = max(map(len, map(formatter.format, valid.tolist())), default=0)
    return formatter.format


def _format_complex(valid: Tensor) -> Callable[[complex], str]:
    real, imag = _format(valid.real), _format(valid.imag)

    def write(z: complex) -> str:
        part = imag(z.imag).lstrip()
        return real(z.real) + (part if part.startswith("-") else f"+{part}") + "j"

    return write


def _edges(x: Tensor, edge: int) -> Tensor:
    """What is shown of ``x``: the first and last ``edge`` entries along every dimension, or all for 0."""
    for dim, size in enumerate(x.shape):
        if edge and size > 2 * edge:
            x = torch.cat([x.narrow(dim, 0, edge), x.narrow(dim, size - edge, edge)], dim)
    return x


def numbers(x: Tensor) -> Any:
    """The values as Python's, nested as the dimensions are."""
    return (x.float() if x.dtype.itemsize == 1 and x.is_floating_point() else x).tolist()


def _lines(pair: Pair, indent: int, edge: int, cell: Cell) -> str:
    """The nested brackets, with ``...`` where a dimension is cut to its edges."""
    data, mask = pair.data, pair.mask
    if data.dim() == 0:
        return cell(numbers(data), bool(mask))
    size = len(data)
    cut = edge and size > 2 * edge
    shown = [*range(edge), *range(size - edge, size)] if cut else list(range(size))
    if data.dim() == 1:
        parts = [cell(v, m) for v, m in zip(numbers(data[shown]), mask[shown].tolist(), strict=True)]
    else:
        parts = [_lines(Pair(data[i], mask[i]), indent + 1, edge, cell) for i in shown]
    if cut:
        parts.insert(edge, "...")
    if data.dim() > 1:
        return "[" + f",{chr(10) * (data.dim() - 1)}{' ' * (indent + 1)}".join(parts) + "]"
    room = max(1, (PRINT_OPTS.linewidth - indent) // (max(map(len, parts)) + 2)) if parts else 1
    rows = [", ".join(parts[i : i + room]) for i in range(0, len(parts), room)]
    return "[" + f",\n{' ' * (indent + 1)}".join(rows) + "]"


add_members(__repr__=text)

"""Packed sequences: the valid steps of a padded batch gathered, longest row first, and recurrent kernels run on them.

torch's packed kernels are one matrix product per step on the CPU, its plain ones are fused.  So on the CPU the packed
batch is cut where rows end, and each piece, which has no padding, goes through the plain kernel.  Each piece also
costs time: where the rows are padded on the right and little would be saved, the padded batch goes through it at once.
"""

from dataclasses import dataclass
from itertools import groupby
from typing import Any

import torch
from torch import Tensor

from ... import pair, settings
from ...compat import OpOverloadPacket
from ...kernels.devices import is_host
from ...kernels.precision import rounds_noticeably
from ...pair import Pair


@dataclass(frozen=True, slots=True)
class Packing:
    """Where the valid steps of a ``(T, B)`` batch go in a packed sequence without empty rows."""

    steps: Tensor  #: flat indices ``t * B + b`` of the valid steps, in packed order
    batch_sizes: Tensor  #: on the host, as the packed kernels want it
    rows: Tensor  #: the rows that have any valid step, longest first
    lengths: Tensor  #: their numbers of valid steps, on the host


@dataclass(frozen=True, slots=True)
class Net:
    """The settings of a recurrent net, in the order of the aten ops."""

    has_biases: bool
    layers: int
    dropout: float
    train: bool
    bidirectional: bool

    def as_arguments(self) -> tuple[bool, int, float, bool, bool]:
        """As arguments."""
        return self.has_biases, self.layers, self.dropout, self.train, self.bidirectional


def packing_of_mask(valid: Tensor, lengths: Tensor) -> Packing:
    """The packing of the valid steps of ``valid``, ``(T, B)``, of which rows have those numbers, on the host."""
    rows, sizes, lengths = _longest_first(lengths)
    rows = rows.to(valid.device)
    first = (~valid).to(torch.uint8).argsort(dim=0, stable=True)  # the valid steps of a row come first
    steps = first[: len(sizes), rows] * valid.shape[1] + rows
    return Packing(steps[_within(lengths, len(sizes), valid.device)], sizes, rows, lengths)


def packing_of_lengths(lengths: list[int], starts: Tensor) -> Packing:
    """The packing of sequences that lie one after the other, of those lengths, each from its place in ``starts``."""
    rows, sizes, counts = _longest_first(torch.tensor(lengths))
    rows = rows.to(starts.device)
    steps = torch.arange(len(sizes), device=starts.device).unsqueeze(1) + starts[rows]
    return Packing(steps[_within(counts, len(sizes), starts.device)], sizes, rows, counts)


def _longest_first(lengths: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The rows that have a step, longest first; how many of them have a step ``t``; how many steps each has."""
    order = lengths.argsort(descending=True, stable=True)
    rows = order[: int((lengths > 0).sum())]
    lengths = lengths[rows]
    longest = int(lengths[0]) if len(rows) else 0
    return rows, (lengths > torch.arange(longest).unsqueeze(1)).sum(1), lengths


def _within(lengths: Tensor, longest: int, device: torch.device) -> Tensor:
    return torch.arange(longest, device=device).unsqueeze(1) < lengths.to(device)


def run_all_rows(
    op: OpOverloadPacket, x: Tensor, way: Packing, initial: list[Tensor], weights: list[Tensor], net: Net
) -> list[Tensor]:
    """As :func:`run`, for all rows: the last state of one without a step is its initial one."""
    out, *last = run(op, x, way, [h.index_select(1, way.rows) for h in initial], weights, net)
    return [out, *(h0.to(h.dtype).index_copy(1, way.rows, h) for h, h0 in zip(last, initial, strict=True))]


def run(
    op: OpOverloadPacket, x: Tensor, way: Packing, states: list[Tensor], weights: list[Tensor], net: Net
) -> list[Tensor]:
    """The packed outputs and the last states of lstm, gru, rnn_tanh or rnn_relu on packed steps ``x``."""
    if not is_host(x.device):
        begin = states if len(states) > 1 else states[0]
        return list(op.data(x, way.batch_sizes, begin, weights, *net.as_arguments()))
    directions = 2 if net.bidirectional else 1
    each = len(weights) // (net.layers * directions)
    turn = _reversal(way) if net.bidirectional else way.steps
    lasts = []
    for layer in range(net.layers):
        outs = []
        for direction in range(directions):
            k = layer * directions + direction
            begin, part = [h[k : k + 1] for h in states], weights[k * each : (k + 1) * each]
            out, last = _sequence(op, x.index_select(0, turn) if direction else x, way, begin, part, net)
            outs.append(out.index_select(0, turn) if direction else out)
            lasts.append(last)
        x = torch.cat(outs, 1) if directions > 1 else outs[0]
        if net.dropout > 0 and net.train and layer < net.layers - 1:
            x = torch.dropout(x, net.dropout, True)
    return [x, *(torch.cat(parts) for parts in zip(*lasts, strict=True))]


def _reversal(way: Packing) -> Tensor:
    """The packed steps of each row in reverse order."""
    starts = way.batch_sizes.cumsum(0) - way.batch_sizes
    step = torch.arange(len(starts)).repeat_interleave(way.batch_sizes)
    row = torch.arange(len(step)) - starts[step]
    return starts[way.lengths[row] - 1 - step] + row


def _sequence(
    op: OpOverloadPacket, x: Tensor, way: Packing, state: list[Tensor], weights: list[Tensor], net: Net
) -> tuple[Tensor, list[Tensor]]:
    """One layer in one direction, piece by piece; a row's state is set aside when it ends."""
    outs: list[Tensor] = []
    ended: list[list[Tensor]] = []
    runs = [(rows, sum(1 for _ in same)) for rows, same in groupby(way.batch_sizes.tolist())]
    # split, whose gradient is one cat: that of a slice is as large as all of x, for every piece
    for (rows, steps), piece in zip(runs, x.split([rows * steps for rows, steps in runs]), strict=True):
        parts = [h.split([rows, h.shape[1] - rows], 1) for h in state]
        ended.append([rest for _, rest in parts])
        begin: Any = [h.contiguous() for h, _ in parts]
        begin = begin if len(begin) > 1 else begin[0]
        piece = piece.view(steps, rows, x.shape[1])
        out, *state = op.input(piece, begin, weights, net.has_biases, 1, 0.0, net.train, False, False)
        outs.append(out.flatten(0, 1))
    last = [torch.cat(h, 1) for h in zip(state, *reversed(ended), strict=True)]
    return torch.cat(outs), last


#: Of these nets the states stay bounded over padded steps, and so their gradients 0.
_BOUNDED = ("lstm", "gru", "rnn_tanh")
_SATURATED = 1e4  #: a sigmoid of this is 1, of its negative 0, exactly, and so are their derivatives


def is_padded_better(op: OpOverloadPacket, valid: Tensor, lengths: Tensor, weights: list[Tensor], net: Net) -> bool:
    """Whether :func:`run_padded` serves for the ``valid`` steps, ``(T, B)``, and costs less than pieces.

    Reads one number if the sizes are such.
    """
    name, dtype = op.__name__, weights[0].dtype
    if name not in _BOUNDED or net.bidirectional or not is_host(valid.device) or rounds_noticeably(dtype):
        return False  # most processors emulate half precision
    return saves_time(name, dtype, valid.shape[0], lengths.tolist(), weights) and bool((valid[1:] <= valid[:-1]).all())


def saves_time(name: str, dtype: torch.dtype, steps: int, lengths: list[int], weights: list[Tensor]) -> bool:
    """Whether one call over padded rows costs less than a call for each length: of the steps that nobody needs."""
    cost = settings.NET_COSTS["fused" if name == "lstm" and dtype is torch.float32 else name]
    size = weights[0].numel() + weights[1].numel()
    calls = (len(set(lengths) - {0}) - 1) * (cost.call + cost.call_weight * size)
    later = (steps - max(lengths)) * (cost.step + cost.step_weight * size)
    more = steps * len(lengths) - sum(lengths)
    return more * (cost.row * weights[0].shape[0] + cost.row_weight * size) + later <= calls


def run_padded(
    op: OpOverloadPacket, x: Tensor, valid: Tensor, lengths: Tensor, initial: list[Tensor], weights: list[Tensor],
    net: Net,
) -> list[Tensor]:  # fmt: skip
    """The outputs ``(T, B, D)`` and the last states of rows whose valid steps come first; for one direction.

    The last output of a row is its last valid step's.  An LSTM is told by one more feature which steps are masked: its
    gates keep the cell as it is, and the output is 0.  The outputs of others at masked steps are nobody's.
    """
    ends = (lengths - 1).clamp_min(0) * valid.shape[1] + torch.arange(valid.shape[1])
    present, cells = (lengths > 0).unsqueeze(1), len(initial) > 1
    each, lasts = len(weights) // net.layers, []
    gone = (~valid).unsqueeze(2).to(x.dtype) if cells else None
    for layer in range(net.layers):
        begin, part = [h[layer : layer + 1].contiguous() for h in initial], weights[layer * each : (layer + 1) * each]
        if gone is not None:
            x, part[0] = torch.cat([x, gone], 2), torch.cat([part[0], _keep_cell(part[0])], 1)
        x, *last = op.input(x, begin if cells else begin[0], part, net.has_biases, 1, 0.0, net.train, False, False)
        last[0] = torch.where(present, x.flatten(0, 1).index_select(0, ends), begin[0])
        lasts.append(last)
        if net.dropout > 0 and net.train and layer < net.layers - 1:
            x = torch.dropout(x, net.dropout, True)
    return [x, *(torch.cat(parts) for parts in zip(*lasts, strict=True))]


def _keep_cell(weight: Tensor) -> Tensor:
    """The weights of a feature that closes the input and the output gate, and opens the forget gate."""
    gates = torch.tensor([-_SATURATED, _SATURATED, 0.0, -_SATURATED], dtype=weight.dtype)
    return gates.repeat_interleave(weight.shape[0] // 4).unsqueeze(1)


def states_of(hx: Any) -> list[Pair]:
    """The states of a recurrent net: a list for lstm, one for the others."""
    return [pair.as_pair(h) for h in (hx if isinstance(hx, list | tuple) else [hx])]

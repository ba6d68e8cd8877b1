"""Recurrent nets: a masked step carries the state and its output is masked; the last state follows the last valid step.

The reverse direction also runs over the valid steps; a row without any returns its initial state.  A step is valid if
any of its features is (all of them, with ``meaning(product="all")``).  Masked features count as 0, and so does a masked
initial state.

The valid steps of each row are gathered into a packed sequence, wherever they are, so no masked step is computed unless
the padded batch costs less as it is.  This needs the lengths on the host, so B integers are read (as
``pack_padded_sequence`` does), unless the mask cannot vary along time.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor

from .. import masks, pair
from ..compat import OpOverload, in_dual_level, is_wrapped
from ..errors import masked_scalar, masked_state
from ..op import Op
from ..packing import recurrent as packed
from ..pair import Pair, Payload
from ..select import zero_masked, zeroed_result
from ..settings import current
from ..shared import product_validity
from ..shared.rows import sequences
from ..shared.rows.sequences import Net, Packing, states_of

Operand = Pair | Tensor


def recurrent(
    op: OpOverload, x: Operand, hx: Any, params: list[Operand], has_biases: bool, num_layers: int, dropout: float,
    train: bool, bidirectional: bool, batch_first: bool,
) -> tuple[Pair, ...]:  # fmt: skip
    """lstm, gru, rnn_tanh, rnn_relu over a padded batch (``hx``: a list for lstm)."""
    x, states = pair.as_pair(x), states_of(hx)
    if x.data.dim() != 3:
        raise RuntimeError(f"{op.name()}: expected a 3-D input (steps, batch, features), got {x.data.dim()}-D")
    net = Net(has_biases, num_layers, dropout, train, bidirectional)
    weights: list[Any] = [zero_masked(p) if type(p) is Pair else p for p in params]
    valid = product_validity.is_present(x.mask, 2)
    if batch_first:
        valid = valid.transpose(0, 1)
    if in_dual_level() or (is_wrapped(valid) and not masks.is_constant(valid, 0)):
        return _step_by_step(op, x, valid, states, weights, net, batch_first)
    lengths = None if masks.is_constant(valid, 0) else masks.count(valid, 0).cpu()
    if lengths is not None and not lengths.any():
        lengths = None
    padded = lengths is not None and sequences.is_padded_better(op.overloadpacket, valid, lengths, weights, net)
    data = zero_masked(x) if lengths is None or padded or not masks.is_constant(x.mask, 2) else x.data
    if batch_first:
        data = data.transpose(0, 1)
    initial = [zero_masked(h) for h in states]
    present = masks.any(valid, 0).unsqueeze(1)
    if lengths is None:  # a row is valid as a whole or not at all: the plain kernel, and nothing to gather
        out, *last = op(data, _initial_states(hx, initial), weights, *net.as_arguments(), False)
        last = [torch.where(present, h, h0) for h, h0 in zip(last, initial, strict=True)]
    elif padded:
        out, *last = sequences.run_padded(op.overloadpacket, data, valid, lengths, initial, weights, net)
    else:
        way = sequences.packing_of_mask(valid, lengths)
        out, *last = _run_packed(op, way, data, initial, weights, net)
    mask = valid.unsqueeze(2).expand(out.shape)
    if batch_first:
        out, mask = out.transpose(0, 1), mask.transpose(0, 1)
    ends = [
        Pair(h, masks.expand_to(masks.compact(s.mask) | present, h.shape)) for h, s in zip(last, states, strict=True)
    ]
    if padded and len(initial) == 1:
        return zeroed_result(out, mask), *ends
    return Pair(out, mask, Payload.ANY if lengths is None else Payload.ZERO), *ends


def _step_by_step(
    op: OpOverload, x: Pair, valid: Tensor, states: list[Pair], weights: list[Tensor], net: Net, batch_first: bool
) -> tuple[Pair, ...]:
    """For transforms: under ``vmap`` no length can be read, and torch's kernels have no derivative in forward mode."""
    data = zero_masked(x).transpose(0, 1) if batch_first else zero_masked(x)
    here = valid.unsqueeze(2)
    out, *last = _run_steps(
        _CELLS[op.overloadpacket.__name__], data, here, [zero_masked(h) for h in states], weights, net
    )
    mask = here.expand(out.shape)
    if batch_first:
        out, mask = out.transpose(0, 1), mask.transpose(0, 1)
    present = masks.any(valid, 0).unsqueeze(1)
    ends = [Pair(h, (s.mask | present).expand(h.shape)) for h, s in zip(last, states, strict=True)]
    return Pair(out, mask, Payload.ZERO), *ends


def _run_steps(
    cell: Callable[..., tuple[Tensor, ...]], x: Tensor, valid: Tensor, initial: list[Tensor], weights: list[Tensor],
    net: Net,
) -> list[Tensor]:  # fmt: skip
    """The outputs ``(T, B, D)``, 0 at masked steps, and the last states: a masked step carries them."""
    directions = 2 if net.bidirectional else 1
    each = len(weights) // (net.layers * directions)
    lasts = []
    for layer in range(net.layers):
        outs = []
        for direction in range(directions):
            k = layer * directions + direction
            part = weights[k * each : (k + 1) * each]
            biases = part[2:4] if net.has_biases else [None, None]
            inputs = torch.nn.functional.linear(x, part[0], biases[0]).unbind(0)
            state, out = tuple(h[k] for h in initial), []
            for t in range(len(inputs))[:: -1 if direction else 1]:
                new = cell(inputs[t], state, part[1], biases[1], *part[4 if net.has_biases else 2 :])
                state = tuple(torch.where(valid[t], a, b) for a, b in zip(new, state, strict=True))
                out.append(torch.where(valid[t], new[0], 0))
            outs.append(torch.stack(out[:: -1 if direction else 1]))
            lasts.append(state)
        x = torch.cat(outs, 2)
        if net.dropout > 0 and net.train and layer < net.layers - 1:
            x = torch.dropout(x, net.dropout, True)
    return [x, *(torch.stack(parts) for parts in zip(*lasts, strict=True))]


def _lstm_cell(
    x: Tensor, state: tuple[Tensor, ...], weight: Tensor, bias: Tensor | None, *projection: Tensor
) -> tuple[Tensor, ...]:
    i, f, g, o = (x + torch.nn.functional.linear(state[0], weight, bias)).chunk(4, 1)
    c = f.sigmoid() * state[1] + i.sigmoid() * g.tanh()
    h = o.sigmoid() * c.tanh()
    return h @ projection[0].mT if projection else h, c


def _gru_cell(x: Tensor, state: tuple[Tensor, ...], weight: Tensor, bias: Tensor | None) -> tuple[Tensor]:
    (r, z, n), (hr, hz, hn) = x.chunk(3, 1), torch.nn.functional.linear(state[0], weight, bias).chunk(3, 1)
    n = (n + (r + hr).sigmoid() * hn).tanh()
    return (n + (z + hz).sigmoid() * (state[0] - n),)


def _plain_cell(
    x: Tensor, state: tuple[Tensor, ...], weight: Tensor, bias: Tensor | None, activation: Any
) -> tuple[Tensor]:
    return (activation(x + torch.nn.functional.linear(state[0], weight, bias)),)


_CELLS: dict[str, Callable[..., tuple[Tensor, ...]]] = {
    "lstm": _lstm_cell,
    "gru": _gru_cell,
    "rnn_tanh": partial(_plain_cell, activation=torch.tanh),
    "rnn_relu": partial(_plain_cell, activation=torch.relu),
}


def _run_packed(
    op: OpOverload, way: Packing, data: Tensor, initial: list[Tensor], weights: list[Tensor], net: Net
) -> list[Tensor]:
    """The outputs ``(T, B, D)`` and the last states, without a padded step."""
    steps = data.flatten(0, 1).index_select(0, way.steps)
    out, *ends = sequences.run_all_rows(op.overloadpacket, steps, way, initial, weights, net)
    spread = out.new_zeros(data.shape[0] * data.shape[1], out.shape[1]).index_copy(0, way.steps, out)
    return [spread.view(*data.shape[:2], out.shape[1]), *ends]


def _initial_states(hx: Any, states: list[Tensor]) -> Any:
    return states if isinstance(hx, list | tuple) else states[0]


def recurrent_data(
    op: OpOverload, x: Operand, batch_sizes: Operand, hx: Any, params: list[Operand], *settings: Any
) -> tuple[Pair, ...]:
    """The same over a packed sequence, which may have masked steps."""
    batch_sizes = _known(batch_sizes, f"{op.overloadpacket.__name__}() at the batch sizes")
    padded, _ = pad_packed(x, batch_sizes, False, 0.0, -1)
    batch_second = (*settings, False)
    out, *last = recurrent(op.overloadpacket.input, padded, hx, params, *batch_second)
    index = _packed_index(batch_sizes, out.data.device)
    mask = masks.compact(out.mask.flatten(0, 1)[:, :1]).index_select(0, index)
    data = out.data.flatten(0, 1).index_select(0, index)
    return Pair(data, mask.expand(data.shape), out.payload), *last


def _packed_index(batch_sizes: Tensor, device: torch.device) -> Tensor:
    """The flat indices ``t * B + b`` of a packed sequence's steps; ``batch_sizes`` lives on the host."""
    present = torch.arange(int(batch_sizes[0])) < batch_sizes.unsqueeze(1)
    return present.flatten().nonzero().squeeze(1).to(device)


def pack_padded(op: OpOverload, x: Operand, lengths: Operand, batch_first: bool) -> tuple[Pair, Tensor]:
    """``pack_padded_sequence``: the steps within ``lengths``, with their validity."""
    x = pair.as_pair(x)
    data, batch_sizes = op(x.data, _known(lengths, "pack_padded_sequence()"), batch_first)
    mask = x.mask.transpose(0, 1) if batch_first else x.mask
    small = _compact_mask(mask[: len(batch_sizes)], 2).flatten(0, 1)
    packed = small.index_select(0, _packed_index(batch_sizes, small.device))
    return Pair(data, packed.expand(data.shape), x.payload), batch_sizes


def _known(numbers: Operand, action: str) -> Tensor:
    """Lengths or batch sizes, none of which may be masked."""
    if type(numbers) is not Pair:
        return numbers
    if not numbers.mask.all():
        raise masked_scalar(action)
    return numbers.data


def _compact_mask(mask: Tensor, keep: int) -> Tensor:
    """The mask with its constant dims narrowed, save the first ``keep``."""
    small = masks.compact(mask)
    return small.expand(*mask.shape[:keep], *small.shape[keep:])


def pad_packed(
    x: Operand, batch_sizes: Operand, batch_first: bool, padding_value: float, total_length: int
) -> tuple[Pair, Tensor]:
    """``pad_packed_sequence``: what it pads is masked."""
    x, batch_sizes = pair.as_pair(x), _known(batch_sizes, "pad_packed_sequence() at the batch sizes")
    data, lengths = torch.ops.aten._pad_packed_sequence(x.data, batch_sizes, False, padding_value, total_length)
    small = _compact_mask(x.mask, 1)
    blank = torch.zeros(data.shape[0] * data.shape[1], *small.shape[1:], dtype=torch.bool, device=small.device)
    index = _packed_index(batch_sizes, small.device)
    mask = blank.index_copy(0, index, small).view(*data.shape[:2], *small.shape[1:]).expand(data.shape)
    payload = x.payload if padding_value == 0 else Payload.ANY
    if batch_first:
        data, mask = data.transpose(0, 1), mask.transpose(0, 1)
    return Pair(data, mask, payload), lengths


def cell(op: OpOverload, x: Operand, hx: Any, *params: Operand | None) -> Any:
    """lstm_cell, gru_cell, rnn_tanh_cell, rnn_relu_cell: one step."""
    weights = [zero_masked(pair.as_pair(p)) if p is not None else None for p in params]
    x, states = pair.as_pair(x), states_of(hx)
    initial = [zero_masked(h) for h in states]
    new = op(zero_masked(x), _initial_states(hx, initial), *weights)
    present = product_validity.is_present(x.mask, -1, True)
    if current().strict and any((s.mask & ~present).any() for s in states):
        raise masked_state(op.name())
    after = [
        Pair(torch.where(present, h, h0), masks.expand_to(masks.compact(s.mask) | present, h.shape))
        for h, h0, s in zip(new if isinstance(new, tuple) else [new], initial, states, strict=True)
    ]
    return tuple(after) if isinstance(new, tuple) else after[0]


_NETS = ("lstm", "gru", "rnn_tanh", "rnn_relu")

OPS = [
    *(Op(f"{name}.input", recurrent, generic=True, packed=packed.recurrent) for name in _NETS),
    *(Op(f"{name}.data", recurrent_data, generic=True) for name in _NETS),
    *(Op(f"{name}_cell", cell, generic=True) for name in _NETS),
    Op("_pack_padded_sequence", pack_padded, generic=True),
    Op("_pad_packed_sequence", pad_packed),
]

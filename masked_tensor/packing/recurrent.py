"""Recurrent nets over packed batches: the sequences step by step, the longest first, with no padded step."""

from typing import Any

from .. import masks
from ..op import NoRule, Rule, StorageRule, Takes
from ..pair import Pair
from ..select import zero_masked
from ..shared.rows import sequences
from ..shared.rows.sequences import Net, states_of
from .packed import Packed, pack_values
from .views import features_last


def _recurrent(rule: Rule, op: Any) -> Rule:
    def on_packed(x: Packed, hx: Any, params: Any, *settings: Any) -> tuple[Packed | Pair, ...]:
        *given, batch_first = settings
        steps = ((0,), (1,)) if batch_first else ((1,), (0,))
        if len(x.order) != 3 or x.order[:2] != steps or not x.values.shape[0]:
            raise NoRule
        y = features_last(x, [2])
        weights = [zero_masked(w) if type(w) is Pair else w for w in params]
        states = states_of(hx)
        way, back = y.grid.turns
        initial = [zero_masked(h) for h in states]
        steps_first = y.values.index_select(0, way.steps)
        out, *last = sequences.run_all_rows(op.overloadpacket, steps_first, way, initial, weights, Net(*given))
        present = (y.grid.lengths > 0).unsqueeze(1)
        ends = [
            Pair(h, masks.expand_to(masks.compact(s.mask) | present, h.shape))
            for h, s in zip(last, states, strict=True)
        ]
        return pack_values(out.index_select(0, back), y), *ends

    return on_packed


#: lstm, gru, rnn_tanh, rnn_relu
recurrent = StorageRule(
    "step by step", _recurrent, Takes(whole=("input",), masked=("hx", "params"), within="input", mixes=True)
)

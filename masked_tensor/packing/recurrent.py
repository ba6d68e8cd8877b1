"""Recurrent nets over packed rows: the sequences step by step, the longest first, and no step that is not there."""

from typing import Any

from .. import masks
from ..op import Form, NoForm, Rule, Takes
from ..pair import Pair
from ..select import zeroed
from ..shared import sequences
from ..shared.recurrence import states_of
from ..shared.sequences import Net
from .packed import Packed, made
from .views import arranged


def _recurrent(rule: Rule, op: Any) -> Rule:
    def form(x: Packed, hx: Any, params: Any, *settings: Any) -> tuple[Packed | Pair, ...]:
        *given, batch_first = settings
        steps = ((0,), (1,)) if batch_first else ((1,), (0,))
        if len(x.order) != 3 or x.order[:2] != steps or not x.values.shape[0]:
            raise NoForm
        y = arranged(x, [2])
        weights = [zeroed(w) if type(w) is Pair else w for w in params]
        states = states_of(hx)
        way, back = y.rows.turns
        initial = [zeroed(h) for h in states]
        steps_first = y.values.index_select(0, way.steps)
        out, *last = sequences.carried(op.overloadpacket, steps_first, way, initial, weights, Net(*given))
        present = (y.rows.lengths > 0).unsqueeze(1)
        ends = [Pair(h, masks.fit(masks.compact(s.mask) | present, h.shape)) for h, s in zip(last, states, strict=True)]
        return made(out.index_select(0, back), y), *ends

    return form


#: lstm, gru, rnn_tanh, rnn_relu
recurrent = Form("step by step", _recurrent, Takes(whole=("input",), masked=("hx", "params")))

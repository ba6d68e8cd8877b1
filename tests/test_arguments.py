"""The law of arguments: whichever of them is masked, a form for packed or sparse tensors serves the call or declines.

A packed call equals the padded one.  A sparse call equals the strided one, or raises the one error that names the way
out.  A rule never meets what it does not know: no TypeError, no AttributeError.
"""

import os
from collections import Counter
from collections.abc import Callable

import pytest
import torch

import masked_tensor as mt
from masked_tensor.engine.table import ENTRIES
from masked_tensor.packing.kinds import elementwise
from masked_tensor.rules import pointwise

from .helpers import argument_cases, database, sparse_cases
from .helpers.argument_cases import Call, judge, packed_arguments, sparse_arguments, strided
from .sweep import SKIPPED

ALL = bool(os.environ.get("MASKED_TENSOR_ARGUMENTS"))
pytestmark = pytest.mark.filterwarnings("ignore")  # those of the samples


@pytest.fixture(scope="module")
def calls() -> list[Call]:
    """Of the database all that a form of its own serves, and some of what is elementwise; or everything."""
    served = [e.op for e in ENTRIES.values() if e.packed or e.sparse is not None]
    own = {op.name.partition(".")[0] for op in served if op.rule is not pointwise.elementwise}
    names = sorted(n for n in database.ENTRIES if n not in SKIPPED)
    return argument_cases.calls([n for k, n in enumerate(names) if ALL or k % 10 == 0 or n.rpartition(".")[2] in own])


def test_packed_calls(calls: list[Call], record_property: Callable[[str, object], None]) -> None:
    counts: Counter[str] = Counter()
    broken = []
    for call in calls:
        if not call.entry.packed:
            continue
        for what, leaves in packed_arguments(call):
            expected = call.run(strided(leaves))
            try:
                counts[judge(call, call.run(leaves), expected)] += 1
            except AssertionError as error:
                broken.append(f"{call.entry.overload.name()}, {what}: {error}")
    assert not broken, f"{len(broken)} broken\n" + "\n".join(broken)
    assert counts["refused"] == 0
    record_property("law of arguments", dict(counts))


def test_sparse_calls(calls: list[Call], record_property: Callable[[str, object], None]) -> None:
    counts: Counter[str] = Counter()
    broken = []
    for call in calls:
        if call.entry.sparse is None:
            continue
        for what, leaves, dense in sparse_arguments(call):
            try:
                counts[judge(call, call.run(leaves), call.run(dense), sparse_cases.seen)] += 1
            except AssertionError as error:
                broken.append(f"{call.entry.overload.name()}, {what}: {error}")
    assert not broken, f"{len(broken)} broken\n" + "\n".join(broken)
    assert counts["equal"]
    assert counts["refused"]
    record_property("law of arguments", dict(counts))


def test_a_tensor_given_by_keyword_is_no_operand() -> None:
    """Nobody would bring it to what the others store."""
    lib = torch.library.Library("test_arguments", "DEF")
    lib.define("plus(Tensor x, *, Tensor y) -> Tensor")

    @mt.extend.register_rule("test_arguments::plus", packed=elementwise)
    def plus(x: mt.extend.Pair, *, y: torch.Tensor) -> mt.extend.Pair:
        return mt.extend.Pair(x.data + y, x.mask)

    x, y = mt.from_lengths(torch.ones(2, 3), [1, 3]), torch.arange(6.0).view(2, 3)
    assert torch.ops.test_arguments.plus(x.packed(), y=y).tolist() == [[1.0, None, None], [4.0, 5.0, 6.0]]

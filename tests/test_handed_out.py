"""What leaves as a plain tensor is the caller's: dense, writable, and no write into it reaches a masked tensor.

In compiled code, too: a program that is handed tensors and writes into them gives what it gives in eager code.
"""

import itertools
import os
import random
import re
import warnings
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
import torch

import masked_tensor as mt

from .helpers.handed_calls import (
    KINDS,
    PLACES,
    PROGRAMS,
    STORAGES,
    WRITES,
    Case,
    break_between,
    check_own,
    forms,
    members,
)

NUMBER = int(os.environ.get("MASKED_TENSOR_HANDED", "1"))  #: compiled programs of each call
MEMBERS, FORMS = members(), forms()
#: The members, and the functions that are no functional forms, that hand out plain tensors.
HANDING = [
    "x.mask", "x.get_mask()", "x.filled()", "x.to_tensor()", "x.compressed()", "x.count()", "x.new_tensor()",
    "x.lengths()", "x.unpad()", "x.to_nested()", "x.to_packed_sequence()", "x.indices()", "compressed(x)", "count(x)",
    "filled(x)", "get_mask(x)", "lengths(x)", "lengths_to_mask(x)", "select_valid(x)", "to_nested(x)",
    "to_packed_sequence(x)", "unpad(x)", "rolling(x).count()",
]  # fmt: skip


def drawn(call: str) -> Iterator[tuple[Case, str]]:
    """Programs of a call, and a backend: one of each kind, storage and program, in an order of their own."""
    draw, give = random.Random(call), (MEMBERS | FORMS)[call]
    found = list(itertools.product(KINDS, STORAGES, PROGRAMS, ("eager", "aot_eager")))
    for kind, storage, program, backend in draw.sample(found, len(found)):
        place = draw.choice([*PLACES]) if call in MEMBERS else "an input"
        yield Case(call, give, kind, storage, place, program, draw.choice([*WRITES])), backend


def outcome(case: Case, compiled: Any = None) -> Any:
    """What the program gives, or the error."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return case.run(compiled)
    except Exception as error:  # which one it may be is what the law says
        return error


def hands_out(case: Case) -> bool:
    found = outcome(case)
    return not isinstance(found, Exception) and len(found[0]) > 0


def test_the_calls_are_all_that_hand_out() -> None:
    """What is new, and hands out plain tensors, is under the laws below."""
    assert {call for call in MEMBERS if any(hands_out(case) for case, _ in list(drawn(call))[:12])} == set(HANDING)


@pytest.mark.parametrize("call", [*HANDING, *FORMS])
def test_what_is_handed_out_is_memory_of_its_own(call: str) -> None:
    checked = 0
    for case, _ in drawn(call):
        if case.program is not break_between and hands_out(case):
            check_own(*case.run())
            checked += 1
        if checked == 3 * NUMBER:
            break
    assert checked


@pytest.mark.parametrize("call", [*HANDING, *(FORMS if NUMBER > 1 else random.Random(0).sample([*FORMS], 3))])
def test_compiled_programs_are_handed_the_same(call: str, record_property: Any) -> None:
    counts: Counter[str] = Counter()
    for case, backend in drawn(call):
        expected = outcome(case)
        if NUMBER == 1 and (isinstance(expected, Exception) or not expected[0]):
            continue
        torch.compiler.reset()
        found = outcome(case, torch.compile(case.function(), backend=backend))
        if isinstance(expected, Exception):
            assert isinstance(found, Exception), f"{case}, {backend}: no {expected!r}"
            counts["both raise"] += 1
        elif isinstance(found, Exception):
            assert re.search(r"x\.mask|get_mask\(\)|\.clone\(\)", str(found)), f"{case}, {backend}: {found!r}"
            counts["refused"] += 1
        else:
            message = lambda m, what=f"{case}, {backend}": f"{what}: {m}"  # noqa: E731
            torch.testing.assert_close(found[0], expected[0], equal_nan=True, msg=message)
            check_own(*found)
            counts["equal"] += 1
        if counts.total() == NUMBER:
            break
    for name, number in counts.items():
        record_property("law", (f"programs that are handed tensors, {name}", call, number))
    assert counts["equal"]


# ------------------------------------------------------------------------------------------------------------ examples


def test_a_mask_of_lengths_is_written_entry_by_entry() -> None:
    mask = mt.from_lengths(torch.ones(2, 3, 4), [3, 1]).mask
    mask[..., 0] = False
    assert mask.sum() == 12
    counts = mt.from_lengths(torch.ones(2, 3, 4), [3, 1]).count(0)
    counts[:, 0] = 7
    assert counts.tolist() == [[7, 2, 2, 2], [7, 1, 1, 1], [7, 1, 1, 1]]


def test_a_sequence_is_written_alone() -> None:
    padded = mt.from_lengths(torch.ones(2, 3), [3, 1])
    for x in (padded, padded.packed()):
        for sequence in x.unpad():
            sequence.zero_()
        assert x.sum().item() == 4


def split(x: torch.Tensor, r: torch.Tensor) -> tuple[torch.Tensor, ...]:
    shown, hidden = x.mask, x.mask
    shown &= r
    hidden &= ~r
    return shown.sum(), hidden.sum(), x.mask, x.mask


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
def test_two_masks_that_are_read_are_two(backend: str) -> None:
    x, r = mt.from_lengths(torch.ones(2, 4), [4, 4]), torch.tensor([[True] + [False] * 3, [False] * 4])
    shown, hidden, a, b = torch.compile(split, backend=backend, fullgraph=True)(x, r)
    assert (shown, hidden) == split(x, r)[:2] == (1, 7)
    a.zero_()
    assert b.all()
    assert x.mask.all()


@pytest.mark.parametrize("function", [mt.lengths, mt.unpad, mt.to_nested, mt.to_packed_sequence])
def test_what_a_graph_cannot_know_is_refused_by_name(function: Any) -> None:
    padded = mt.from_lengths(torch.ones(2, 3), [3, 1])
    for x in (padded, padded.packed()):
        torch.compiler.reset()
        with pytest.raises(torch._dynamo.exc.Unsupported, match=rf"{function.__name__}\(\) reads .* x\.get_mask\(\)"):
            torch.compile(lambda x: function(x), backend="eager", fullgraph=True)(x)

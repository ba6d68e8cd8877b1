"""A batch of sequences with gaps gives what each sequence gives alone: whatever is called, however it is stored.

Every functional form, window, scan and statistic, every module and loss: padded and packed, on both sides, eager and
compiled, results and gradients, with garbage in the gaps and in the padding.

``MASKED_TENSOR_RAGGED=40 python -m pytest tests/test_ragged_law.py`` draws that many batches for each call.
"""

import os
import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from zlib import crc32

import pytest
import torch
from torch import Tensor

import masked_tensor as mt
from masked_tensor.errors import MaskedValueError

from .helpers import ragged_calls
from .helpers.ragged_calls import FEATURES, Call

DRAWS = int(os.environ.get("MASKED_TENSOR_RAGGED", "0"))  # of each call; 0: two of each name
COMPILED = DRAWS or 0.02  # how often a call is compiled, too: that share of the names, or one draw of each call
CALLS = ragged_calls.calls()
PARTS = 8
GARBAGE = (float("nan"), float("inf"), -float("inf"), 1e30)
FORMS = ("padded", "padded", "packed", "packed", "mask=")
LENGTHS = ([5, 2, 0, 7], [7, 3, 4, 1], [6, 0, 1], [4, 4], [5])
pytestmark = pytest.mark.filterwarnings("ignore")  # of losses without a valid entry, and torch's own


@dataclass(frozen=True)
class Sequences:
    """Sequences ``(n, 6)``, their masks, and how they make a batch."""

    data: list[Tensor]
    masks: list[Tensor]
    lengths: list[int]
    form: str
    side: str
    garbage: float

    def leaves(self, clean: bool = False) -> list[Tensor]:
        found = []
        for data, mask in zip(self.data, self.masks, strict=True):
            found.append(torch.where(mask, data, 0 if clean else self.garbage).requires_grad_())
        return found

    def batch(self, leaves: list[Tensor]) -> mt.MaskedTensor:
        """With garbage wherever something is masked."""
        parts = [mt.as_masked_tensor(d, m) for d, m in zip(leaves, self.masks, strict=True)]
        if self.form == "packed":
            return mt.from_sequences(parts, padding_side=self.side, packed=True)
        time = max(self.lengths)
        rows, valid = [], []
        for data, mask, n in zip(leaves, self.masks, self.lengths, strict=True):
            at = (0, 0, time - n, 0) if self.side == "left" else (0, 0, 0, time - n)
            rows.append(torch.nn.functional.pad(data, at, value=self.garbage))
            valid.append(torch.nn.functional.pad(mask, at))
        return mt.as_masked_tensor(torch.stack(rows, 1).transpose(0, 1), torch.stack(valid))  # batch behind time

    def said(self, call: Call) -> dict[str, Any]:
        """What a padded batch is called with."""
        if call.said != "lengths" or self.form == "packed":
            return {}
        return {"lengths": self.lengths, "padding_side": self.side}


def drawn(rng: random.Random, call: Call) -> Sequences:
    """Gaps of whole steps and of single features, also at the ends; sequences of which all or nothing is valid."""
    lengths = [n and max(n, call.least) for n in rng.choice(LENGTHS)]
    generator = torch.Generator().manual_seed(rng.randrange(2**31))
    data, masks = [], []
    for n in lengths:
        share, whole = rng.choice([0.0, 0.3, 0.6, 1.0]), rng.random() < 0.4
        mask = torch.rand(n, 1 if whole else FEATURES, generator=generator) >= share
        steps = torch.rand(n, 1, generator=generator) >= rng.choice([0.0, 0.0, 0.4])
        data.append(torch.randn(n, FEATURES, generator=generator, dtype=torch.float64))
        masks.append((mask & steps).expand(n, FEATURES))
    forms = [form for form in FORMS if form != "mask=" or call.said == "mask"]
    return Sequences(
        data, masks, lengths, rng.choice(forms), call.side or rng.choice(["right", "left"]), rng.choice(GARBAGE)
    )


def alone(call: Call, parts: list[Tensor], masks: list[Tensor]) -> list[Any] | None:
    """What one sequence gives, a batch of one; None if it is too short. An empty one is a step of nothing."""
    data, mask = torch.cat(parts), torch.cat(masks)
    if not len(data):
        data, mask = data.new_zeros(1, FEATURES), mask.new_zeros(1, FEATURES)
    try:
        return call(
            mt.as_masked_tensor(data[None], mask[None]), **({"lengths": "full"} if call.said == "lengths" else {})
        )
    except (RuntimeError, ValueError):
        return None


def total(results: list[Any]) -> Tensor:
    """Of all that is valid and has a gradient."""
    shown = (r.filled(0) if type(r) is mt.MaskedTensor else r for r in results)
    return sum((r.sin().sum() for r in shown if r.requires_grad), torch.zeros((), requires_grad=True))


def same(got: Any, wanted: Any, what: str) -> None:
    if type(wanted) is mt.MaskedTensor:
        valid = wanted.get_mask()
        if type(got) is mt.MaskedTensor:
            assert got.get_mask().equal(valid), f"{what}: valid is {got.get_mask()} instead of {valid}"
            got = got.filled(0)
        wanted = wanted.filled(0)
        got = torch.where(valid, got, torch.zeros_like(wanted))
    assert type(got) is not mt.MaskedTensor, what
    torch.testing.assert_close(got, wanted, rtol=1e-8, atol=1e-8, equal_nan=True, msg=lambda m: f"{what}: {m}")


def check(call: Call, parts: Sequences, run: Callable[..., Any], what: str, counts: Counter[str]) -> None:
    """Raises AssertionError if the batch gives something else than its sequences."""
    leaves = parts.leaves()
    batch = parts.batch(leaves)
    if parts.form == "packed":
        assert batch.is_packed
    try:
        results = run(batch, **parts.said(call))
    except MaskedValueError:  # the documented refusal: of a batch of which nothing is valid, a value was asked
        counts["refused"] += 1
        return
    assert len(results) == len(call.kinds), f"{what}: {len(results)} results"
    own = parts.leaves(clean=True)
    single = [alone(call, [d], [m]) for d, m in zip(own, parts.masks, strict=True)]
    together = alone(call, own, parts.masks) if call.joined or "all" in call.kinds else None
    seen: list[Any] = []
    for k, (result, kind) in enumerate(zip(results, call.kinds, strict=True)):
        counts["stayed packed"] += type(result) is mt.MaskedTensor and result.is_packed
        wide = result.unpacked() if type(result) is mt.MaskedTensor and result.is_packed else result
        if kind == "all":
            if together is not None:
                same(wide, together[k], what)
                seen.append(together[k])
                counts[f"of all, {parts.form}"] += 1
            continue
        begin = 0
        for i, n in enumerate(parts.lengths):
            row = wide[i]
            if call.joined and together is not None:
                wanted = together[k][:, begin : begin + n]
                begin += n
            elif single[i] is None or (n == 0 and kind == "steps"):
                if type(row) is mt.MaskedTensor:
                    assert not (row.filled(0).any() if call.zero else row.get_mask().any()), f"{what}: sequence {i}"
                continue
            else:
                wanted = single[i][k]
            if kind == "steps":
                size = wanted.shape[1]
                at = len(row) - size if parts.side == "left" and not call.front else 0
                if type(row) is mt.MaskedTensor:
                    shown = row.get_mask().clone()
                    shown[at : at + size] = False
                    nothing = call.zero and not row[shown].any()
                    assert nothing or not shown.any(), f"{what}: something is valid behind the end of sequence {i}"
                row = row[at : at + size]
            if k in call.places and parts.side == "left":
                row = row - (max(parts.lengths) - n)
            same(row, wanted[0], f"{what}, sequence {i} of {parts.lengths}")
            seen.append(wanted)
            counts[f"{kind}, {parts.form}"] += 1
    compare_gradients(call, results, seen, leaves, own, what)


def compare_gradients(
    call: Call, results: list[Any], seen: list[Any], leaves: list[Tensor], own: list[Tensor], what: str
) -> None:
    """Of the results of the batch, and of all that was compared with them."""
    if not any(r.requires_grad for r in results):
        return
    found = torch.autograd.grad(total(results), (*leaves, *call.parameters), allow_unused=True)
    wanted = torch.autograd.grad(total(seen), (*own, *call.parameters), allow_unused=True)
    for a, b in zip(found, wanted, strict=True):
        a, b = (a if b is None else b.new_zeros(b.shape) if a is None else a), b
        if a is not None:
            b = torch.zeros_like(a) if b is None else b
            torch.testing.assert_close(
                a, b, rtol=1e-7, atol=1e-7, equal_nan=True, msg=lambda m: f"{what}, gradient: {m}"
            )


@pytest.mark.parametrize("part", range(PARTS))
def test_a_batch_is_each_sequence_alone(part: int, record_property: Callable[[str, object], None]) -> None:
    counts: Counter[str] = Counter()
    for name in sorted(CALLS)[part::PARTS]:
        before, rng = counts.total(), random.Random(crc32(name.encode()))
        chosen = CALLS[name] * DRAWS if DRAWS else [rng.choice(CALLS[name]) for _ in range(2)]
        for turn, call in enumerate(chosen):
            parts = drawn(rng, call)
            what = f"{name}, call {CALLS[name].index(call)}, {parts.form}, {parts.side}, {parts.garbage}"
            check(call, parts, ragged_calls.plainly(call) if parts.form == "mask=" else call, what, counts)
            if parts.form != "mask=" and (turn < len(CALLS[name]) if DRAWS else rng.random() < COMPILED):
                torch._dynamo.reset()
                compiled = torch.compile(call, backend="aot_eager")
                check(call, parts, compiled, f"{what}, compiled", counts)
                counts["compiled"] += 1
        assert counts.total() > before, f"{name}: nothing was compared"
    record_property("ragged law", dict(counts))


def test_what_is_not_called_exists() -> None:
    """And all windows are called."""
    assert set(ragged_calls.NO_FORM) < set(mt.functional.__all__)
    assert set(ragged_calls.NO_OP) < set(ragged_calls.FAMILY)
    assert set(ragged_calls.NO_MODULE) < set(ragged_calls.database.MODULES)
    windows = {name for name in dir(mt.rolling(mt.masked_tensor([1.0]), 1)) if not name.startswith("_")}
    assert windows == {*ragged_calls.WINDOWS, *ragged_calls.NO_WINDOW}


@pytest.mark.parametrize("fill", [mt.ffill, mt.bfill, mt.interpolate])
def test_a_compiled_fill_of_a_packed_batch_knows_its_lengths(fill: Callable[..., Any]) -> None:
    x = mt.from_sequences([mt.masked_tensor([[1.0], [None], [3.0]]), mt.masked_tensor([[None], [5.0]])], packed=True)
    torch._dynamo.reset()
    found = torch.compile(lambda x: fill(x, 1), backend="aot_eager")(x)
    assert found.is_packed
    assert found.tolist() == fill(x, 1).tolist()

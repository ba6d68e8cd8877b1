"""Ragged series with gaps: a batch, padded with ``lengths=`` or packed with them, gives what each sequence gives alone.

``MASKED_TENSOR_SERIES=5000`` draws that many calls.
"""

import os
import random
from collections import Counter
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import pytest
import torch
from torch import Tensor

import masked_tensor as mt

from .test_series_elsewhere import AREAS, DIRECTIONS, draw_limit, draw_rolling, draw_time

DRAWS = int(os.environ.get("MASKED_TENSOR_SERIES", "200"))
NAN, INF = float("nan"), float("inf")
Call = Callable[..., Any]


def sequences(rng: random.Random, lengths: list[int], shape: tuple[int, ...]) -> list[mt.MaskedTensor]:
    """Sequences with gaps, also at their ends, and garbage in them; a few have no valid step, or no step at all."""
    found = []
    for n in lengths:
        data = torch.tensor([rng.gauss(0, 1) for _ in range(n * 3)], dtype=torch.float64).view(n, 3)
        share = rng.choice([0.0, 0.3, 0.7, 1.0])
        valid = torch.tensor([rng.random() >= share for _ in range(n * 3)], dtype=torch.bool).view(n, 3)
        if rng.random() < 0.3:
            valid = valid[:, :1].expand(n, 3)
        data = torch.where(valid, data, rng.choice([NAN, INF, 1e30]))
        found.append(mt.as_masked_tensor(data, valid) if shape else mt.as_masked_tensor(data[:, 0], valid[:, 0]))
    return found


def draw(rng: random.Random, size: int) -> tuple[Any, Call, int]:
    """A call ``(x, dim, times, **lengths)``, and its step."""
    name = rng.choice(["ffill", "bfill", "interpolate", "interpolate", *["rolling"] * 3, *["time"] * 3])
    if name == "rolling":
        window, said, what, more = draw_rolling(rng, size)
        said["min_periods"] = None if said["min_periods"] is None else min(said["min_periods"], window)
        return (
            (what, window, said, more),
            lambda x, dim, times, **lengths: getattr(mt.rolling(x, window, dim, **said, **lengths), what)(**more),
            said["step"],
        )
    if name == "time":
        _, length, said, what, more = draw_time(rng, size)
        window = rng.choice([length, length / 4, 0.3])

        def roll(x: Any, dim: int, times: Tensor, **lengths: Any) -> Any:
            return getattr(mt.rolling(x, window, dim, index=times.floor(), **said, **lengths), what)(**more)

        return (what, "time", window, said, more), roll, said["step"]
    said = {"limit": draw_limit(rng, size), "limit_area": rng.choice(AREAS)}
    if name == "interpolate":
        said |= {"limit_direction": rng.choice(DIRECTIONS), "method": rng.choice(["linear", "nearest"])}
        if rng.random() < 0.5:
            return (name, "index", said), lambda x, dim, times, **n: mt.interpolate(x, dim, index=times, **said, **n), 1
    return (name, said), lambda x, dim, times, **lengths: getattr(mt, name)(x, dim, **said, **lengths), 1


def times_of(rng: random.Random, lengths: list[int], side: str, time: int) -> tuple[list[Tensor], Tensor]:
    """Rising times of each sequence, and all of them in one tensor, with garbage where there is no step."""
    alone = [torch.tensor([rng.choice([0.25, 0.5, 1, 3]) for _ in range(n)]).cumsum(0).double() - 2 for n in lengths]
    batch = torch.full((len(lengths), max(lengths)), rng.choice([NAN, INF, -INF, 0.0, -1e30]), dtype=torch.float64)
    for row, times in zip(batch, alone, strict=True):
        row[len(row) - len(times) if side == "left" else 0 :][: len(times)] = times
    if rng.random() < 0.2:  # one for all
        shared = max(alone, key=len)
        return [shared[len(shared) - n if side == "left" else 0 :][:n] for n in lengths], shared
    return alone, batch if time else batch.T


def split(result: Any, lengths: list[int], side: str, time: int, what: Any) -> list[Any]:
    """The sequences of a result, batch first; nothing is valid, or counted, behind their ends."""
    found = []
    result = result.unpacked() if type(result) is mt.MaskedTensor else result
    for row, n in zip(result if time else result.transpose(0, 1), lengths, strict=True):
        at = slice(len(row) - n, len(row)) if side == "left" else slice(0, n)
        rest = torch.ones(len(row), dtype=torch.bool)
        rest[at] = False
        shown = row.get_mask() if type(row) is mt.MaskedTensor else row != 0
        assert not shown[rest].any(), what
        found.append(row[at])
    return found


FORMS: dict[str, Callable[[mt.MaskedTensor, dict[str, Any]], tuple[mt.MaskedTensor, dict[str, Any]]]] = {
    "padded": lambda x, said: (x, said),
    "tracked": lambda x, said: (mt.as_masked_tensor(x.get_data().clone().requires_grad_(), x.get_mask()), said),
    "packed": lambda x, said: (x, {}),
    "packed, tracked": lambda x, said: (x.detach().clone().requires_grad_(), {}),
    "packed, and lengths": lambda x, said: (x, said),
    "packed, valid steps only": lambda x, said: (x.unpacked().packed(_grid(x)), said),
}


def _grid(x: mt.MaskedTensor) -> tuple[int, int]:
    return (0, 1) if x._packed is None or x._packed.order[0] == (0,) else (1, 0)


def form_of(
    name: str, parts: list[Any], lengths: list[int], side: str, time: int, said: Any
) -> tuple[mt.MaskedTensor, dict[str, Any]]:
    """The batch in one of the forms, and what is said of it in the call."""
    batch = mt.from_sequences(parts, padding_side=side, batch_first=time == 1, packed=name.startswith("packed"))
    return FORMS[name](batch, {"lengths": said, "padding_side": side})


def test_a_batch_is_each_sequence_alone(record_property: Callable[[str, object], None]) -> None:
    rng, counts = random.Random(0), Counter[str]()
    for _ in range(DRAWS):
        lengths = rng.choice([[5, 1, 0, 9, 4], [1], [3, 3], [12, 7, 2, 1, 6, 12]])
        side, time, shape = rng.choice(["right", "left"]), rng.choice([0, 1, 1]), rng.choice([(), (3,)])
        what, call, step = draw(rng, max(lengths))
        form = rng.choice([*FORMS, "plain"])
        side = "right" if step > 1 and form not in ("packed", "packed, tracked") else side
        parts = sequences(rng, lengths, shape)
        times, index = times_of(rng, lengths, side, time)
        alone = [call(part, 0, t) for part, t in zip(parts, times, strict=True)]
        said = rng.choice([lengths, torch.tensor(lengths)])
        if form == "plain":  # a plain tensor with mask=
            batch, more = form_of("padded", parts, lengths, side, time, said)
            result = call(batch.get_data(), time, index, **more, mask=batch.get_mask())
            result = mt.masked_invalid(result) if what[0] != "count" else result
        else:
            batch, more = form_of(form, parts, lengths, side, time, said)
            result = call(batch, time, index, **more)
        ends = [-(-n // step) for n in lengths]
        if form.startswith("packed") and type(result) is mt.MaskedTensor and batch.is_packed:
            assert result.is_packed, (what, form)
            assert (result if time else result.transpose(0, 1)).lengths().tolist() == ends
            counts["stayed packed"] += 1
        for got, wanted in zip(split(result.detach(), ends, side, time, what), alone, strict=True):
            if type(wanted) is mt.MaskedTensor:
                assert got.get_mask().equal(wanted.get_mask()), (what, form, lengths, side)
                got, wanted = got.filled(0), wanted.filled(0)
            torch.testing.assert_close(got, wanted, rtol=1e-12, atol=1e-12, msg=lambda m, w=(what, form): f"{w}: {m}")
            counts[form] += 1
    assert counts["stayed packed"]
    record_property("ragged series", dict(counts))


def test_so_is_its_gradient(record_property: Callable[[str, object], None]) -> None:
    rng, counts = random.Random(1), Counter[str]()
    while counts.total() < DRAWS // 4:
        lengths, side = rng.choice([[5, 1, 9, 4], [12, 7, 2, 1, 6, 12]]), rng.choice(["right", "left"])
        what, call, step = draw(rng, max(lengths))
        form = rng.choice(["padded", "packed"])
        if what[0] == "count" or (step > 1 and side == "left" and form == "padded"):
            continue
        counts[form] += 1
        parts = sequences(rng, lengths, (3,))
        masks = [part.get_mask() for part in parts]

        def leaves(parts: list[Any] = parts) -> list[Tensor]:
            return [part.get_data().clone().requires_grad_() for part in parts]

        data = leaves()
        times, index = times_of(rng, lengths, side, 1)
        alone = [call(mt.as_masked_tensor(d, m), 0, t).filled(0) for d, m, t in zip(data, masks, times, strict=True)]
        wanted = torch.autograd.grad(sum(r.square().sum() for r in alone), data)
        data = leaves()
        tracked = [mt.as_masked_tensor(d, m) for d, m in zip(data, masks, strict=True)]
        batch, more = form_of(form, tracked, lengths, side, 1, lengths)
        result = call(batch, 1, index, **more).filled(0)
        found = torch.autograd.grad(result.square().sum(), data)
        for a, b in zip(found, wanted, strict=True):
            torch.testing.assert_close(a, b, rtol=1e-10, atol=1e-10, msg=lambda m, what=what: f"{what}: {m}")
    record_property("ragged gradients", dict(counts))


FILLING: dict[str, Call] = {
    "ffill": mt.ffill,
    "bfill": mt.bfill,
    "interpolate": mt.interpolate,
    "rolling": lambda x, dim, **said: mt.rolling(x, 2, dim, min_periods=1, **said).mean(),
    "time": lambda x, dim, **said: mt.rolling(x, 2, dim, index=torch.arange(x.shape[dim]), **said).mean(),
    "left": lambda x, dim, **said: mt.rolling(x, 2, dim, closed="left", **said).mean(),
    "both": lambda x, dim, **said: mt.rolling(x, 2, dim, closed="both", **said).mean(),
    "count": lambda x, dim, **said: mt.rolling(x, 2, dim, **said).count(),
}


@pytest.mark.parametrize("name", FILLING)
def test_what_makes_entries_valid_asks_how_long_sequences_are(name: str) -> None:
    """By the call alone: also where nothing is masked, and after any op. Packed, the valid steps alone are stored."""
    call = FILLING[name]
    x = mt.from_sequences([torch.tensor([1.0, 2.0, 3.0]), mt.masked_tensor([1.0, *[None] * 7, 9.0])])
    wide = x[..., None] * torch.ones(2)
    for t, dim in ((x, 1), (x, -1), (wide, 1), (wide, 0), (wide.transpose(0, 1), 0), (x * 2, 1), (x.packed(), 1)):
        with pytest.raises(ValueError, match="lengths="):
            call(t, dim)
        with pytest.raises(ValueError, match="lengths="), mt.strict():
            call(t, dim)
    with pytest.raises(ValueError, match="lengths="):
        call(x.get_data(), 1, mask=x.get_mask())
    for t in (x, x[0]):
        assert call(t, 0).shape == t.shape  # a table, one series
    fills = name in ("ffill", "bfill", "interpolate")
    for t in (x.get_data(), wide.get_data()):  # of which nothing is masked
        with pytest.warns(UserWarning, match="fills nothing") if fills else nullcontext():
            assert call(t, 1).shape == t.shape
    whole = call(x, 1, lengths="full")
    assert whole.shape == x.shape
    stored = call(x.packed(), 1, lengths="full")
    assert torch.equal(mt.filled(stored, -1), mt.filled(whole, -1))


def test_the_mean_of_a_filled_batch() -> None:
    """One value and nine steps: the padding of the short sequence, filled, would count eight times."""
    x = mt.from_sequences([torch.tensor([1.0, 2.0, 3.0]), mt.masked_tensor([1.0, *[None] * 7, 9.0])])
    for form in (x, x.packed()):
        filled = mt.interpolate(form, 1, lengths=[3, 9])
        assert filled.count(1).tolist() == [3, 9]
        assert filled.mean(1).tolist() == [2.0, 5.0]
        assert mt.ffill(form, 1, lengths=[3, 9]).count() == 12
    assert mt.rolling(x, 2, 1).mean().count() == 2  # whole windows alone: none is made of padding


def test_lengths_in_compiled_code() -> None:
    x, valid = torch.tensor([[1.0, 0.0, 0.0], [1.0, 0.0, 3.0]]), torch.tensor([[1, 0, 0], [1, 0, 1]]).bool()
    compiled = torch.compile(lambda x, m, n: mt.interpolate(x, 1, mask=m, lengths=n, fill_value=-1), backend="eager",
                             fullgraph=True)  # fmt: skip
    assert compiled(x, valid, torch.tensor([2, 3])).tolist() == [[1, 1, -1], [1, 2, 3]]

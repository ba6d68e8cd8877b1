"""A write is one step: interrupts at every place inside of it, threads that read meanwhile, and writes that fail."""

import os
import random
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
import torch

import masked_tensor as mt
from masked_tensor import layouts, settings
from masked_tensor.engine.tensor import pair_of
from masked_tensor.settings import DEFAULT, current

from .helpers.interrupts import run_interrupted

#: At so many places of a third of the writes, each, an interrupt comes; 0: at all of them, of all.
PLACES = int(os.environ.get("MASKED_TENSOR_INTERRUPTS", "1"))
SECONDS = 0.1 if PLACES else 3.0  #: so long a thread reads while another writes
SHAPE = (3, 4)
NAN = float("nan")


def batch(start: float, rows: tuple[int, ...] = (4, 2, 3)) -> mt.MaskedTensor:
    """A padded batch, with something under its mask."""
    mask = torch.arange(4) < torch.tensor(rows)[:, None]
    data = torch.arange(start, start + 12).view(SHAPE)
    return mt.masked_tensor(torch.where(mask, data, NAN), mask)


def alone() -> tuple[mt.MaskedTensor, ...]:
    return (batch(1.0),)


def clean() -> tuple[mt.MaskedTensor, ...]:
    return (batch(1.0).nan_to_num(0) * 1,)  # known to be 0 under the mask


def written() -> tuple[mt.MaskedTensor, ...]:
    x = batch(1.0)
    views = x[1], x.t(), x[:, 1:3]
    x[0, 1] = None
    return x, *views


def base() -> tuple[mt.MaskedTensor, ...]:
    x = batch(1.0)
    return x, x[1], x.t(), x[:, 1:3]


def view() -> tuple[mt.MaskedTensor, ...]:
    x = mt.masked_tensor(torch.cat([batch(1.0).get_data(), torch.full((1, 4), 7.0)]), torch.ones(4, 4) > 0)
    return x[:3], x, x[1], x[3]


def packed() -> tuple[mt.MaskedTensor, ...]:
    return (batch(1.0).packed(),)


def packed_with_gap() -> tuple[mt.MaskedTensor, ...]:
    return (batch(1.0).packed(lengths=[4, 3, 3]),)


def packed_base() -> tuple[mt.MaskedTensor, ...]:
    x = batch(1.0).packed()
    return x, x[1], x.t(), x[:, 1:3], x.detach()


def packed_view() -> tuple[mt.MaskedTensor, ...]:
    x = batch(1.0).packed()
    return x.t().t(), x, x[1]


def packed_alias() -> tuple[mt.MaskedTensor, ...]:
    x = batch(1.0).packed()
    return x, x.detach()


def sparse() -> tuple[mt.MaskedTensor, ...]:
    return (batch(1.0).to_sparse(),)


MADE: dict[str, Callable[[], tuple[mt.MaskedTensor, ...]]] = {
    made.__name__: made
    for made in (
        *(alone, clean, base, written, view, packed, packed_with_gap, packed_base, packed_view, packed_alias),
        sparse,
    )
}
OTHER = batch(100.0, (2, 4, 3))
CHOSEN = torch.tensor([[True, False, True, False]]).expand(SHAPE)
AT = torch.tensor([[1, 0, 3, 2]]).expand(SHAPE)


def put(key: Any, value: Any) -> Callable[[Any], object]:
    return lambda x: x.__setitem__(key, value)


WRITES: dict[str, Callable[[Any], object]] = {
    "row to None": put(0, None),
    "entry to None": put((1, 1), None),
    "row to a number": put(1, 50.0),
    "row to a masked row": put(0, OTHER[0]),
    "column to a masked column": put((slice(None), 2), OTHER[:, 2]),
    "rows to plain rows": put(slice(0, 2), torch.full((2, 4), 60.0)),
    "condition to None": put(CHOSEN, None),
    "condition to a number": put(CHOSEN, 70.0),
    "indices to None": put([0, 2], None),
    "indices to masked rows": put([0, 2], OTHER[:2]),
    "copy_": lambda x: x.copy_(OTHER),
    "copy_ of packed": lambda x: x.copy_(OTHER.packed()),
    "copy_ of plain": lambda x: x.copy_(torch.full(SHAPE, 80.0)),
    "fill_": lambda x: x.fill_(90.0),
    "zero_": lambda x: x.zero_(),
    "add_": lambda x: x.add_(1),
    "mul_ of masked": lambda x: x.mul_(OTHER),
    "masked_fill_": lambda x: x.masked_fill_(CHOSEN, 75.0),
    "index_put_": lambda x: x.index_put_((torch.tensor([0, 1]),), OTHER[1:]),
    "scatter_": lambda x: x.scatter_(1, AT, OTHER),
    "masked_scatter_": lambda x: x.masked_scatter_(CHOSEN, OTHER),
    "out=": lambda x: torch.add(OTHER, 1, out=x),
    "foreach": lambda x: torch._foreach_mul_([x], [OTHER]),
    "data": lambda x: setattr(x, "data", OTHER.clone()),
}


def some_of(x: mt.MaskedTensor) -> mt.MaskedTensor:
    """A sparse tensor of the pattern of ``x`` that is masked in part."""
    data = x.get_data()
    mask = torch.sparse_coo_tensor(data.indices(), data.values() > 5, data.shape, check_invariants=False)
    return mt.masked_tensor(data, mask)


PATTERNED = {  # what sparse tensors take in place, within their pattern
    "zero_": lambda x: x.zero_(),
    "fill_": lambda x: x.fill_(3.0),
    "mul_ of a number": lambda x: x.mul_(2),
    "mul_ of masked": lambda x: x.mul_(some_of(x)),
}


def entries(x: Any) -> list[Any]:
    dense = x.to_dense() if x.layout is not torch.strided else x
    return [repr(v) for v in dense.reshape(-1).tolist()]


def promise_holds(x: Any) -> bool:
    """Whether what is known of the masked-out data is so: sums and products rely on it."""
    pair = pair_of(x)
    return pair.payload.value != "zero" or not bool((pair.data.to_dense()[~pair.mask.to_dense()] != 0).any())


def same(x: Any, y: Any) -> bool:
    return entries(x) == entries(y)


def agree(made: str, tensors: tuple[Any, ...]) -> bool:
    """Whether views and base hold the same."""
    if made in ("base", "written"):
        x, row, turned, columns = tensors
        return same(x[1], row) and same(x.t(), turned) and same(x[:, 1:3], columns)
    if made == "view":
        part, x, row, last = tensors
        return same(x[:3], part) and same(x[1], row) and same(x[3], last)
    if made == "packed_base":
        x, row, turned, columns, alias = tensors
        return same(x[1], row) and same(x.t(), turned) and same(x[:, 1:3], columns) and same(x, alias)
    if made == "packed_view":
        whole, x, row = tensors
        return same(x, whole) and same(x[1], row)
    return made != "packed_alias" or same(*tensors)


CASES = [(m, w, False) for m in MADE if m != "sparse" for w in WRITES]
CASES += [(m, w, True) for m in ("clean", "base", "written", "view") for w in WRITES]
CASES += [("sparse", w, False) for w in PATTERNED]


@pytest.mark.parametrize("made", MADE)
def test_a_law_interrupted_writes_are_old_or_new(made: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(made)
    for kind, name, many in CASES:
        if kind != made or (PLACES and made != "sparse" and rng.random() < 0.67):
            continue
        monkeypatch.setattr(settings, "FEW", 0 if many else 1 << 13)  # large tensors are written in another way
        write = (PATTERNED if made == "sparse" else WRITES)[name]
        old = [entries(x) for x in MADE[made]()]
        done = MADE[made]()
        write(done[0])
        new = [entries(x) for x in done]
        counted = MADE[made]()
        places = run_interrupted(lambda w=write, x=counted[0]: w(x), None)
        for at in range(places) if not PLACES else sorted(rng.sample(range(places), PLACES)):
            tensors = MADE[made]()
            run_interrupted(lambda w=write, x=tensors[0]: w(x), at)
            said = f"{name}, at {at} of {places}{', many' if many else ''}"
            check(made, tensors, old, new, name, said)


def check(made: str, tensors: tuple[Any, ...], old: list[Any], new: list[Any], name: str, said: str) -> None:
    for x, before, after in zip(tensors, old, new, strict=True):
        now = entries(x)
        assert all(v in (a, b) for v, a, b in zip(now, before, after, strict=True)), (said, before, after, now)
        assert promise_holds(x), said
    if name == "data":
        assert same(tensors[0], OTHER) or agree(made, tensors), said
        return
    assert agree(made, tensors), said
    if made == "sparse":
        return
    for value in (-1.0, None):  # and they stay together
        tensors[0][1] = value
        assert agree(made, tensors), said
        assert entries(tensors[0][1]) == [repr(value)] * 4, said


FAILING: dict[str, Callable[[Any], object]] = {
    "no such row": put(9, 1.0),
    "no such row, None": put(9, None),
    "no such row among indices": put([0, 9], 1.0),
    "another shape": put(0, torch.ones(7)),
    "another shape, masked": put(0, mt.masked_tensor([1.0, None, 3.0])),
    "no number": put(0, "a"),
    "a condition of another shape": put(torch.ones(2, 2) > 0, 1.0),
    "copy_ of another shape": lambda x: x.copy_(torch.ones(7)),
    "add_ of another shape": lambda x: x.add_(mt.masked_tensor([1.0, None, 3.0])),
    "complex": lambda x: x.add_(torch.ones(SHAPE, dtype=torch.complex64)),
    "masked_fill_ of another shape": lambda x: x.masked_fill_(torch.ones(2, 2) > 0, 1.0),
    "index_put_ of no such row": lambda x: x.index_put_((torch.tensor([9]),), torch.tensor(1.0)),
    "scatter_ to no such place": lambda x: x.scatter_(1, AT + 9, OTHER),
    "out= of another shape": lambda x: torch.add(OTHER[0], 1, out=x),
    "out= of another dtype": lambda x: torch.add(OTHER, 1j, out=x),
    "out= of which the second has another shape": lambda x: torch.max(OTHER, 0, keepdim=False, out=(x, x)),
    "foreach of another shape": lambda x: torch._foreach_mul_([x], [torch.ones(7)]),
    "data of another shape": lambda x: setattr(x, "data", torch.ones(7)),
}


def state(x: Any) -> tuple[Any, ...]:
    lengths = None
    with suppress(ValueError):  # a view whose steps are no longer in the second dimension
        lengths = mt.lengths(x).tolist() if x.is_packed else None
    return entries(x), x.is_packed, lengths, x._version, x.stride() if x.layout is torch.strided else None


@pytest.mark.parametrize("made", [*MADE, "expanded"])
def test_a_law_failing_writes_change_nothing(made: str) -> None:
    for name, write in FAILING.items():
        if made == "sparse" and name == "complex":  # torch itself takes it there
            continue
        tensors = MADE[made]() if made != "expanded" else (mt.masked_tensor([[1.0], [NAN], [3.0]]).expand(SHAPE),)
        before = [state(x) for x in tensors]
        with pytest.raises((RuntimeError, TypeError, ValueError, IndexError)):
            write(tensors[0])
        assert [state(x) for x in tensors] == before, name
        assert all(promise_holds(x) for x in tensors), name


def test_a_failing_write_of_one_place_of_many_changes_nothing() -> None:
    x = mt.masked_tensor([[1.0], [None], [3.0]]).expand(SHAPE)
    for write in (put(0, OTHER[0]), put(slice(None), OTHER), lambda x: x.copy_(OTHER), lambda x: x.add_(OTHER)):
        with pytest.raises(RuntimeError):
            write(x)
        assert x.tolist() == [[1.0] * 4, [None] * 4, [3.0] * 4]


def test_a_loop_over_a_list_stops_where_a_member_fails_as_torch_does() -> None:
    """Those before it are written; it and those after it are not."""
    for wrong, error in (([1.0] * 4, "dimension"), ([1j] * 3, "cast")):
        plain = [torch.ones(3), torch.ones(3), torch.ones(3)]
        masked = [mt.masked_tensor([1.0, None, 1.0]) for _ in plain]
        others = [torch.full((3,), 2.0), torch.tensor(wrong), torch.full((3,), 2.0)]
        for members in (plain, masked):
            with pytest.raises(RuntimeError, match=error):
                torch._foreach_mul_(members, others)
        assert [x[0].item() for x in plain] == [x[0].item() for x in masked] == [2.0, 1.0, 1.0]
        assert [x.count().item() for x in masked] == [2, 2, 2]


def test_packing_and_lengths_stay_where_a_write_fails() -> None:
    x = mt.from_sequences([mt.masked_tensor([1.0, None]), mt.masked_tensor([2.0, 3.0, None])], packed=True)
    with pytest.raises(IndexError):
        x[9] = 1.0
    assert x.is_packed
    assert mt.lengths(x).tolist() == [2, 3]


THREADED: dict[str, tuple[Callable[[Any], object], Callable[[Any], object]]] = {
    "None": (put(0, None), put(0, 1.0)),
    "a condition": (put(CHOSEN, None), put(CHOSEN, 1.0)),
    "masked rows": (put(0, mt.masked_tensor([2.0, NAN, 2.0, NAN], [True, False, True, False])), put(0, 2.0)),
    "copy_": (
        lambda x: x.copy_(mt.masked_tensor(torch.full(SHAPE, NAN), torch.zeros(SHAPE) > 0)),
        lambda x: x.copy_(torch.full(SHAPE, 2.0)),
    ),
    "out=": (
        lambda x: torch.add(mt.masked_tensor(torch.full(SHAPE, NAN), CHOSEN.logical_not()).nan_to_num(1.0), 1, out=x),
        lambda x: torch.add(torch.full(SHAPE, 1.0), 1, out=x),
    ),
}


@pytest.mark.parametrize("viewed", [False, True])
@pytest.mark.parametrize("name", THREADED)
def test_a_reader_sees_no_value_that_nobody_wrote(name: str, viewed: bool) -> None:
    x = mt.masked_tensor(torch.ones(SHAPE), torch.ones(SHAPE) > 0)
    row = x[0] if viewed else x
    one, other = THREADED[name]
    stop = threading.Event()

    def loop() -> None:
        while not stop.is_set():
            one(x)
            other(x)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    thread = threading.Thread(target=loop)
    thread.start()
    try:
        seen = set()
        end = time.monotonic() + SECONDS
        while time.monotonic() < end:
            seen |= set(x.compressed().tolist()) | {v for v in row.reshape(-1).tolist() if v is not None}
    finally:
        stop.set()
        thread.join()
        sys.setswitchinterval(interval)
    assert seen <= {1.0, 2.0}


@pytest.mark.parametrize("make", [mt.strict, lambda: mt.meaning(product="all")])
def test_an_interrupted_setting_does_not_stay(make: Callable[[], Any]) -> None:
    def use() -> None:
        with make():
            pass

    with make():
        pass  # what is done once
    for at in range(run_interrupted(use, None)):
        setting = make()
        run_interrupted(setting.__enter__, at)
        if not at:
            assert current() is DEFAULT
        if current() is not DEFAULT:  # it was entered before the interrupt came
            setting.__exit__(None, None, None)
        assert current() is DEFAULT
        setting.__enter__()
        run_interrupted(lambda s=setting: s.__exit__(None, None, None), at)
        with suppress(RuntimeError):  # left more often than entered
            setting.__exit__(None, None, None)
        assert current() is DEFAULT


@pytest.mark.parametrize("layout", [torch.sparse_coo, torch.sparse_csr])
def test_while_a_sparse_tensor_is_written_what_is_masked_before_or_after_is_masked(
    layout: torch.layout, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = mt.masked_tensor([[1.0, 2.0, None], [None, 3.0, 4.0]]).to_sparse(layout=layout)
    gaps = mt.masked_invalid((whole - 2).log())  # stores entries that are masked

    def interrupted(*pairs: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(layouts, "overwrite", interrupted)
    for old, new in ((whole, gaps), (gaps, whole), (whole, whole)):
        x = old.clone()
        with pytest.raises(KeyboardInterrupt):
            x.add_(new)
        assert x.to_dense().mask.equal(old.to_dense().mask & new.to_dense().mask)

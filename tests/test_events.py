"""Tables of events become batches by torch's own scatters, as by pandas' ``groupby`` and windows of time."""

from typing import Any

import pytest
import torch
from torch import Tensor

import masked_tensor as mt

np = pytest.importorskip("numpy")
pd = pytest.importorskip("pandas")
PATIENTS, VARIABLES, STEP = 7, 3, 2.0


def table(seed: int) -> Any:
    """Events in the order of time, some without a value, some at one time; one patient has none with a value."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({
        "who": rng.integers(0, PATIENTS, 120),
        "hour": np.round(np.sort(rng.uniform(0, 30, 120)) * 4) / 4,
        "what": rng.integers(0, VARIABLES, 120),
        "value": np.round(rng.normal(50, 20, 120), 1),
    })  # fmt: skip
    frame.loc[rng.random(120) < 0.2, "value"] = np.nan
    frame.loc[frame["who"] == 3, "value"] = np.nan
    return frame


def columns(frame: Any) -> tuple[Tensor, Tensor, Tensor, mt.MaskedTensor]:
    who, hour, what = (torch.tensor(frame[name].to_numpy()) for name in ("who", "hour", "what"))
    return who, hour, what, mt.masked_invalid(frame["value"])


def grid(frame: Any) -> tuple[Tensor, Tensor]:
    """The cell of each event, and the number of steps of each patient."""
    who, hour, what, _ = columns(frame)
    first = torch.full((PATIENTS,), torch.inf, dtype=torch.float64).scatter_reduce(0, who, hour, "amin")
    at = ((hour - first[who]) / STEP).long()
    lengths = torch.zeros(PATIENTS, dtype=torch.long).scatter_reduce(0, who, at + 1, "amax")
    return ((lengths.cumsum(0) - lengths)[who] + at) * VARIABLES + what, lengths


def as_cells(theirs: Any, size: int) -> mt.MaskedTensor:
    found = torch.full((size,), torch.nan, dtype=torch.float64)
    found[torch.tensor(theirs.index.to_numpy())] = torch.tensor(theirs.to_numpy(dtype=float))
    return mt.masked_invalid(found)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("how", ["mean", "sum", "amin", "amax"])
def test_statistics_by_group(how: str, seed: int) -> None:
    frame = table(seed)
    cell, lengths = grid(frame)
    value = columns(frame)[3]
    size = int(lengths.sum()) * VARIABLES
    ours = mt.masked_tensor(torch.zeros(size).double(), False).scatter_reduce(0, cell, value, how, include_self=False)
    group = frame.groupby(cell.numpy())["value"]
    theirs = {"mean": group.mean, "sum": lambda: group.sum(min_count=1), "amin": group.min, "amax": group.max}[how]()
    wanted = as_cells(theirs, size)
    assert ours.get_mask().equal(wanted.get_mask())
    torch.testing.assert_close(ours.filled(0), wanted.filled(0), rtol=4e-16, atol=0)


@pytest.mark.parametrize("seed", range(4))
def test_counts_and_last_values_by_group(seed: int) -> None:
    frame = table(seed)
    cell, lengths = grid(frame)
    value = columns(frame)[3]
    size = int(lengths.sum()) * VARIABLES
    group = frame.groupby(cell.numpy())["value"]
    rows = mt.as_masked_tensor(torch.arange(len(value)), value.get_mask())
    nowhere = mt.masked_tensor(torch.zeros(size).long(), False)
    last = value[nowhere.scatter_reduce(0, cell, rows, "amax", include_self=False)]
    assert torch.equal(last, as_cells(group.last(), size))
    number = torch.zeros(size).scatter_add(0, cell, value.mask.float())
    assert torch.equal(number.double(), as_cells(group.count(), size).filled(0))


@pytest.mark.parametrize("packed", [True, False])
@pytest.mark.parametrize("how", ["mean", "sum", "min", "max", "std", "median", "count"])
def test_windows_of_time_of_each_patient(how: str, packed: bool) -> None:
    frame = table(5)
    who, hour, _, value = columns(frame)
    sizes = [int((who == i).sum()) for i in range(PATIENTS)]
    times = mt.from_sequences([hour[who == i] for i in range(PATIENTS)]).filled(torch.nan)
    batch = mt.from_sequences([value[who == i] for i in range(PATIENTS)], packed=packed)
    said: dict[str, Any] = {} if packed else {"lengths": sizes}
    ours = getattr(mt.rolling(batch, 6.0, 1, index=times, **said), how)()
    for i, n in enumerate(sizes):
        of = frame[frame["who"] == i]
        series = of["value"].set_axis(pd.to_datetime(of["hour"], unit="h"))
        theirs = torch.tensor(getattr(series.rolling("6h"), how)().to_numpy(dtype=float))
        if how == "count":
            assert torch.equal(ours[i, :n].double(), theirs.nan_to_num(0))
            continue
        wanted = mt.masked_invalid(theirs)
        row = ours.unpacked()[i, :n]
        assert row.get_mask().equal(wanted.get_mask())
        torch.testing.assert_close(row.filled(0), wanted.filled(0), rtol=1e-9, atol=1e-9)


def test_the_time_since_the_last_value() -> None:
    """``delta`` of GRU-D, by its definition: of the step before, and what had passed there if nothing was measured."""
    frame = table(1)
    cell, lengths = grid(frame)
    value = columns(frame)[3]
    empty = mt.masked_tensor(torch.zeros(int(lengths.sum()) * VARIABLES).double(), False)
    mean = empty.scatter_reduce(0, cell, value, "mean", include_self=False)
    parts = mean.view(-1, VARIABLES).split(lengths.tolist())
    x = mt.from_sequences(parts, packed=True)
    clock = STEP * torch.arange(x.shape[1]).double()[:, None]
    delta = clock - mt.rolling(mt.ffill(x * 0 + clock, 1), 1, 1, closed="left").sum()
    assert delta.is_packed
    for part, ours in zip(parts, delta.unpad(), strict=True):
        since, mask = torch.zeros(VARIABLES).double(), part.get_mask()
        before = torch.zeros(VARIABLES, dtype=torch.bool)
        for t in range(len(part)):
            if t:
                since = torch.where(mask[t - 1], STEP, STEP + since)
                before = before | mask[t - 1]
            assert ours[t].get_mask().equal(before)
            assert ours[t].filled(0).equal(torch.where(before, since, 0))

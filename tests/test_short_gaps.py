"""Short gaps alone are filled, and rows that count several times are scaled: beside loops and scikit-learn."""

from typing import Any

import numpy as np
import pytest
import torch

import masked_tensor as mt

NAN = float("nan")


def runs(valid: list[bool]) -> list[int]:
    """Of each entry, how many in a row are masked there; 0 of a valid one."""
    sizes, start = [0] * len(valid), 0
    while start < len(valid):
        stop = start
        while stop < len(valid) and not valid[stop]:
            stop += 1
        for i in range(start, stop):
            sizes[i] = stop - start
        start = stop + 1
    return sizes


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("chunk", [8, 1 << 20])
def test_short_gaps_alone_are_filled(seed: int, chunk: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each sequence as it is filled without max_gap, but for the entries of long gaps."""
    monkeypatch.setattr("masked_tensor.settings.WINDOWS", chunk)
    rng = np.random.default_rng(seed)
    lengths = [11, 4, 1, 7]
    side = str(rng.choice(["left", "right"]))
    how: dict[str, Any] = {
        "method": str(rng.choice(["linear", "nearest"])),
        "limit_direction": str(rng.choice(["forward", "backward", "both"])),
        "limit_area": rng.choice([None, "inside", "outside"]),
        "limit": rng.choice([None, 2]),
    }
    index = torch.tensor(rng.random(11).cumsum()) if rng.random() < 0.5 else None
    data = torch.tensor(rng.normal(size=(4, 11, 2)))
    mask = torch.tensor(rng.random((4, 11, 2)) < 0.4)
    time = torch.arange(11)
    exists = torch.stack([time < n if side == "right" else time >= 11 - n for n in lengths])
    mask &= exists[:, :, None]
    hidden = torch.tensor(rng.choice([NAN, float("inf"), 1e30], (4, 11, 2)))
    leaf = torch.where(mask, data, hidden).requires_grad_()
    for gap in (1, 2, np.int64(3), 11):
        x = mt.as_masked_tensor(leaf, mask)
        whole = mt.interpolate(x, 1, lengths=lengths, padding_side=side, index=index, **how)
        found = mt.interpolate(x, 1, lengths=lengths, padding_side=side, index=index, max_gap=gap, **how)
        wanted = whole.mask.clone()
        for row, there in enumerate(exists):
            for column in range(2):
                short = torch.tensor(runs(mask[row, there, column].tolist())) <= gap
                wanted[row, there, column] &= short
        assert found.mask.equal(wanted)
        assert found.filled(0).equal(torch.where(wanted, whole.filled(0), 0.0))
        (one,) = torch.autograd.grad(found.sum(), leaf)
        (other,) = torch.autograd.grad(mt.masked_where(~wanted, whole).sum(), leaf)
        assert one.equal(other)
        stored = mt.as_masked_tensor(leaf.detach(), mask).packed(lengths=lengths, padding_side=side)
        packed = mt.interpolate(stored, 1, index=index, max_gap=gap, **how)
        assert packed.is_packed
        assert packed.mask.equal(wanted)
        assert packed.filled(0).equal(found.detach().filled(0))


def test_edges_empty_series_and_size_one() -> None:
    x = mt.masked_tensor([None, None, 1.0, None, 3.0, None, None, None])
    assert mt.interpolate(x, max_gap=1).tolist() == [None, None, 1.0, 2.0, 3.0, None, None, None]
    assert mt.interpolate(x, max_gap=2, limit_direction="both").tolist()[:2] == [1.0, 1.0]
    assert mt.interpolate(x, max_gap=3).tolist()[-1] == 3.0
    plain = torch.tensor([1.0, NAN, NAN, 4.0, NAN, 6.0])
    assert mt.interpolate(plain, max_gap=1, mask=plain.isfinite(), fill_value=-1).tolist() == [1, -1, -1, 4, 5, 6]
    assert mt.interpolate(x[:0], max_gap=1).shape == (0,)
    assert mt.interpolate(x[:1], max_gap=1).tolist() == [None]
    with pytest.raises(ValueError, match="interpolate: max_gap must be 1 or more, got 0"):
        mt.interpolate(x, max_gap=0)
    for wrong in (1.5, "2", True):
        with pytest.raises(TypeError, match="interpolate: max_gap must be an int"):
            mt.interpolate(x, max_gap=wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize("seed", range(4))
def test_the_scaler_counts_rows_as_scikit_learn_does(seed: int) -> None:
    StandardScaler = pytest.importorskip("sklearn.preprocessing").StandardScaler
    from masked_tensor.sklearn import MaskedStandardScaler

    rng = np.random.default_rng(seed)
    table = np.where(rng.random((30, 3)) < 0.3, NAN, rng.normal(3, 2, (30, 3)))
    weight = rng.random(30) * (rng.random(30) < 0.8)
    ours, theirs = MaskedStandardScaler(dtype=torch.float64), StandardScaler()
    for part in (slice(0, 13), slice(13, None)):
        ours.partial_fit(table[part], sample_weight=weight[part])
        theirs.partial_fit(table[part], sample_weight=weight[part])
    fitted = MaskedStandardScaler().fit(table, sample_weight=weight.tolist())
    for scaler in (ours, fitted):
        np.testing.assert_allclose(scaler.mean_, theirs.mean_)
        np.testing.assert_allclose(scaler.scale_, theirs.scale_)
        np.testing.assert_allclose(scaler.count_, theirs.n_samples_seen_)
    np.testing.assert_allclose(ours.transform(table).filled(NAN).numpy(), theirs.transform(table))
    twice = MaskedStandardScaler().fit(np.concatenate([table, table[:5]]))
    counted = MaskedStandardScaler().fit(table, None, np.where(np.arange(30) < 5, 2, 1))
    np.testing.assert_allclose(twice.scale_, counted.scale_)
    with pytest.raises(ValueError, match="one number for each of 30 rows"):
        MaskedStandardScaler().fit(table, sample_weight=weight[:3])

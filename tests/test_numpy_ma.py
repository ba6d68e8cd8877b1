"""The page on numpy.ma: every public name has a line, and each line says what is true."""

import runpy
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F

import masked_tensor as mt

PAGE = runpy.run_path(str(Path(__file__).parent.parent / "docs" / "numpy_ma.py"))
ROWS = PAGE["rows"]()


def names() -> dict[str, Any]:
    rng = np.random.default_rng(0)
    a = np.ma.array(rng.uniform(0.1, 0.9, (3, 4)), mask=[[0, 1, 0, 0], [0, 0, 0, 0], [1, 1, 0, 0]])
    b = np.ma.array(rng.uniform(0.1, 0.9, (3, 4)), mask=[[0, 0, 1, 0], [0, 0, 0, 0], [0, 1, 0, 0]])
    w = np.ma.array(rng.uniform(0.1, 0.9, 5), mask=[0, 0, 1, 0, 0])
    i, j = (np.ma.array(rng.integers(0, 9, 5), mask=m) for m in ([0, 1, 0, 0, 0], [0, 0, 0, 1, 0]))
    d = rng.random((3, 4)) < 0.5
    x, y, v, k, l = (mt.masked_tensor(array) for array in (a, b, w, i, j))  # noqa: E741 (as on the page)
    said = {"a": a, "b": b, "w": w, "i": i, "j": j, "d": d, "x": x, "y": y, "v": v, "k": k, "l": l}
    return said | {"c": torch.tensor(d), "np": np, "torch": torch, "mt": mt, "F": F}


def array(value: Any) -> Any:
    if isinstance(value, mt.MaskedTensor):
        return value.to_numpy_ma()
    return np.ma.asarray(value.numpy() if isinstance(value, torch.Tensor) else value)


def test_every_public_name_has_one_line() -> None:
    told = [name for name, *_ in ROWS]
    assert len(told) == len(set(told))
    known = set(np.ma.__all__)
    assert known <= set(told)
    assert set(told) - known <= {"alltrue", "sometrue", "product", "in1d", "row_stack"}  # gone from some numpy
    assert sum(ours == "nothing" for _, _, ours, _ in ROWS) <= 10


@pytest.mark.parametrize(("name", "theirs", "ours"), [row[:3] for row in ROWS], ids=[row[0] for row in ROWS])
def test_a_line_says_what_is_true(name: str, theirs: str, ours: str) -> None:
    if ours == "nothing":
        assert not theirs
        return
    here = eval(ours, names())
    if not theirs or name not in np.ma.__all__:
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # numpy's own deprecations
        there = np.ma.asarray(eval(theirs, names()))
    here = array(here)
    assert here.shape == there.shape
    assert (np.ma.getmaskarray(here) == np.ma.getmaskarray(there)).all()
    assert np.allclose(here.filled(0), there.filled(0))

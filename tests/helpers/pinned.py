"""Tests of what was made from the pinned version of torch: they run with no other."""

from pathlib import Path

import pytest
import torch

_CONSTRAINTS = (Path(__file__).parents[2] / "constraints.txt").read_text().splitlines()
_PINNED = next(line.removeprefix("torch==") for line in _CONSTRAINTS if line.startswith("torch=="))
with_pinned = pytest.mark.skipif(not torch.__version__.startswith(_PINNED), reason="made from the pinned torch")

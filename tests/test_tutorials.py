"""Tutorials run: their claims are asserts."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent.parent / "tutorials"


@pytest.mark.skipif(os.environ.get("MASKED_TENSOR_TUTORIALS") == "pages", reason="the build of the pages runs them")
@pytest.mark.parametrize("script", sorted(FOLDER.glob("*.py")), ids=lambda path: path.stem)
def test_tutorial(script: Path) -> None:
    environment = os.environ | {"PYTHONPATH": str(FOLDER.parent), "OMP_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, script], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    told = done.stderr.replace("UserWarning: Sparse invariant checks", "")  # of torch 2.11
    told = told.replace("FutureWarning: `torch.jit.script` is deprecated", "")  # of torch 2.15, where it reads its own
    assert "Warning" not in told
    assert done.stdout.strip(), "a tutorial ends in something to look at"

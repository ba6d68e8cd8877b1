"""The package as it is published: one version, metadata, and what the sdist carries.  ``.ci/package`` builds it."""

import importlib
import re
import subprocess
import sys
from importlib.metadata import metadata
from pathlib import Path

import pytest

import masked_tensor as mt

ROOT = Path(__file__).parent.parent


def test_one_version() -> None:
    assert re.fullmatch(r"\d+\.\d+\.\d+", mt.__version__)
    assert f"version: {mt.__version__}\n" in (ROOT / "CITATION.cff").read_text()
    assert 'attr = "masked_tensor.__version__"' in (ROOT / "pyproject.toml").read_text()
    said = subprocess.run(
        [sys.executable, "-m", "masked_tensor", "--version"], capture_output=True, text=True, check=True
    )
    assert said.stdout == f"masked_tensor {mt.__version__}\n"


def test_the_command_may_be_read_in_part() -> None:
    command = f"{sys.executable} -m masked_tensor | head -n 1"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, check=True)
    assert done.stdout.startswith(f"masked_tensor {mt.__version__}")
    assert not done.stderr


def test_dir_shows_what_is_public() -> None:
    submodules = {"extend", "functional", "plot", "testing"}
    assert set(dir(mt)) == {*mt.__all__, "__version__", *submodules}
    for name in submodules:
        assert getattr(mt, name).__all__
        home = "api.display." if name == "plot" else ""
        assert getattr(mt, name) is importlib.import_module(f"masked_tensor.{home}{name}")


@pytest.mark.parametrize("command", ["help(masked_tensor)", "inspect.getmembers(masked_tensor)"])
def test_help_needs_no_matplotlib(command: str) -> None:
    code = f"import sys; sys.modules['matplotlib'] = None; import inspect, masked_tensor; {command}"
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_submodules_need_no_import_of_their_own() -> None:
    code = "import masked_tensor as mt; print(mt.testing.__name__, mt.extend.__name__, mt.functional.__name__)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["masked_tensor.testing", "masked_tensor.extend", "masked_tensor.functional"]


def test_metadata() -> None:
    try:
        known = metadata("torch-masked-tensor")
    except ModuleNotFoundError:
        pytest.skip("not installed, only imported")
    assert known["License-Expression"] == "BSD-3-Clause"
    assert known["Requires-Python"] == ">=3.10"
    assert [r for r in known.get_all("Requires-Dist") if "extra ==" not in r] == ["torch<2.16,>=2.11"]


def test_another_torch_is_named_on_import() -> None:
    code = "import torch; torch.__version__ = '2.99.0'; import masked_tensor"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert (
        "RuntimeWarning: masked_tensor is made for torch 2.11 to 2.15 and is untested with torch 2.99.0" in done.stderr
    )


def test_the_class_is_where_users_find_it() -> None:
    assert f"{mt.MaskedTensor.__module__}.{mt.MaskedTensor.__qualname__}" == "masked_tensor.MaskedTensor"


def test_the_sdist_carries_what_the_tests_read() -> None:
    manifest = (ROOT / "MANIFEST.in").read_text().split()
    for name in ("tests", "docs", "tutorials", ".ci", "conftest.py", "constraints.txt", "CITATION.cff"):
        assert name in manifest
        assert (ROOT / name).exists()


def test_a_form_is_listed_where_it_is_defined() -> None:
    """What the files of forms decorate is what the package has: no file is left out."""
    home = Path(mt.functional.__file__).parent
    marked = re.compile(r"^@(?:form|as_torch|row)(?:\([^@]*?\))?\ndef (\w+)\(", re.MULTILINE)
    listed = {name for path in home.rglob("*.py") for name in marked.findall(path.read_text())}
    assert sorted(listed) == mt.functional.__all__
    assert set(mt.functional.__all__) < set(mt.__all__)
    assert all(getattr(mt, name) is getattr(mt.functional, name) for name in listed)

"""How functions of other libraries are replaced: each name is there, plain arguments pass as they are, ranks agree."""

import importlib
import importlib.util
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch

import masked_tensor as mt
from masked_tensor.extend.libraries import Place, replace
from masked_tensor.integrations import places as libraries
from masked_tensor.integrations import wrapping
from masked_tensor.patches import imports

from .helpers.braces import listed
from .helpers.ranks import gathered

ROOT = Path(__file__).parent.parent
HOME = str(Path(mt.__file__).parent)


def _models() -> list[Path]:
    spec = find_spec("transformers")
    return sorted(Path(spec.submodule_search_locations[0]).glob("models/*/modeling_*.py")) if spec else []


def _with_a_balancing_loss() -> dict[str, list[str]]:
    """The arguments of each one in the files of transformers."""
    found = {}
    for path in _models():
        text = path.read_text()
        if f"def {libraries.BALANCING_LOSS}(" in text:
            signature = text.split(f"def {libraries.BALANCING_LOSS}(")[1].split(") ->")[0]
            found[path.stem] = re.findall(r"^    (\w+)", signature, re.MULTILINE) or re.findall(r"(\w+):", signature)
    return found


def test_every_balancing_loss_of_transformers_knows_an_attention_mask() -> None:
    """Switch transformers alone has another: of means, which are right by themselves."""
    pytest.importorskip("transformers")
    found = _with_a_balancing_loss()
    assert len(found) >= 30
    others = {name for name, arguments in found.items() if not {"gate_logits", "attention_mask"} <= set(arguments)}
    assert others == {"modeling_switch_transformers"}


@pytest.mark.parametrize("library", sorted({place.module.partition(".")[0] for place in libraries.LIBRARIES}))
def test_the_library_has_every_name(library: str) -> None:
    pytest.importorskip(library)
    for place in libraries.LIBRARIES:
        if place.module.partition(".")[0] == library:
            module = importlib.import_module(place.module)
            owner = getattr(module, place.owner) if place.owner else module
            assert [name for name in place.names if not getattr(owner, name).masks] == []


def test_a_name_that_has_gone_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("torchmetrics_of_tomorrow")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    with pytest.warns(mt.MaskedSizeWarning, match="replaces torchmetrics_of_tomorrow.mean_squared_error, which"):
        replace((Place(module.__name__, "", ("mean_squared_error",)),), lambda function: function)


def test_plain_arguments_pass_two_frames_and_come_as_they_are() -> None:
    """The result is the library's own object, for plain arguments and for others."""
    sent = object()
    run: Any = wrapping.with_masked(lambda function, given: None)(lambda *args, **kwargs: (args, kwargs, sent))
    x = torch.ones(2)
    entered = []

    def note(frame: Any, event: str, _: Any) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(HOME):
            entered.append(frame.f_code.co_name)

    sys.setprofile(note)
    try:
        args, kwargs, same = run(x, [x], k=3)
    finally:
        sys.setprofile(None)
    assert args[0] is x
    assert args[1][0] is x
    assert kwargs == {"k": 3}
    assert same is sent
    assert len(entered) <= 4
    assert entered.count("run") == 1
    assert run(mt.masked_tensor([1.0])) is None


FIRST = """
from torch import ones, zeros
from torch.nn.functional import mse_loss
import masked_tensor as mt
assert mse_loss(mt.masked_tensor([1.0, None, 3.0]), zeros(3), weight=ones(3)) == 5
"""


def test_losses_of_torch_that_were_imported_before() -> None:
    run = subprocess.run([sys.executable, "-W", "ignore", "-c", FIRST], capture_output=True, text=True, cwd=ROOT)
    assert run.returncode == 0, run.stderr


def test_a_library_that_was_imported_before(monkeypatch: pytest.MonkeyPatch) -> None:
    """What its other modules have by name is replaced, too, and what other libraries have is not."""

    def pool(x: Any) -> int:
        return 1

    modules: list[Any] = [
        ModuleType(name) for name in ("library_of_a.pool", "library_of_a.model", "library_of_b.model")
    ]
    for module in modules:
        monkeypatch.setitem(sys.modules, module.__name__, module)
        module.pool = pool
    replace((Place("library_of_a.pool", "", ("pool",)),), wrapping.with_masked(lambda function, given: function(0) + 1))
    x = mt.masked_tensor([1.0, None])
    assert [module.pool(x) for module in modules] == [2, 2, 1]
    assert modules[0].pool is modules[1].pool


def test_a_family_of_modules_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "family_of_a.py").write_text("VALUE = 1")
    (tmp_path / "family_of_b.py").write_text("VALUE = 2")
    monkeypatch.syspath_prepend(tmp_path)
    finder, found = imports.ImportFinder(), []
    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path])
    monkeypatch.setattr(imports, "FINDER", finder)
    importlib.import_module("family_of_a")
    imports.when_each_imported("family_", "of", lambda module: found.append(module.VALUE))
    assert found == [1]
    importlib.import_module("family_of_b")
    assert found == [1, 2]
    assert finder in sys.meta_path
    for name in ("family_of_a", "family_of_b"):
        monkeypatch.delitem(sys.modules, name)


def test_something_is_done_before_a_module_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Which may wait for that very module; a mere search does nothing."""
    (tmp_path / "library_of_c.py").write_text("VALUE = 1")
    monkeypatch.syspath_prepend(tmp_path)
    finder, found = imports.ImportFinder(), list[object]()
    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path])
    monkeypatch.setattr(imports, "FINDER", finder)

    def begin() -> None:
        found.append("library_of_c" in sys.modules)
        imports.when_imported("library_of_c", lambda module: found.append(module.VALUE))

    imports.before_import("library_of_c", begin)
    assert importlib.util.find_spec("library_of_c") is not None
    assert found == []
    importlib.import_module("library_of_c")
    assert found == [False, 1]
    assert finder not in sys.meta_path
    imports.before_import("library_of_c", begin)
    assert found == [False, 1, True, 1]
    monkeypatch.delitem(sys.modules, "library_of_c")


def test_the_page_lists_every_name() -> None:
    text = (ROOT / "docs/importing.md").read_text()
    names = {f"{m}.{o}.{n}".replace("..", ".") for m, o, names in libraries.LIBRARIES for n in names}
    assert len(names) > 200
    assert names - listed(text) == set()
    for name in (libraries.BALANCING_LOSS, libraries.ROUTER_LOSS, libraries.SUMMARY):
        assert f"{name}" in text


@pytest.mark.skipif(not torch.distributed.is_available(), reason="torch was built without torch.distributed")
def test_accelerate_sends_masks_to_other_ranks() -> None:
    """Of an iterable dataset, which the first of two ranks reads; the last batch is not full."""
    pytest.importorskip("accelerate")
    from .helpers.dispatching import batches

    rows = {k: [float(k)] * (1 + k % 3) + [None] * (2 - k % 3) for k in range(10)}
    for rank, found in enumerate(gathered(2, batches)):
        numbers = [k for keys, _ in found["masked"] for k in keys]
        assert set(numbers) == {k for k in range(10) if k // 2 % 2 == rank or k > 7} - {9 - rank}
        assert all(x == [rows[k] for k in keys] for keys, x in found["masked"])
        assert found["plain"] == [(keys, [[float(k)] * 3 for k in keys]) for keys, _ in found["masked"]]

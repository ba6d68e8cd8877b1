"""What importing the package changes in torch is what docs/importing.md says, no more and no less."""

import importlib
import json
import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
import torch

import masked_tensor as mt
from masked_tensor.engine.transforms import install
from masked_tensor.patches import places

from .helpers.braces import braced

ROOT = Path(__file__).parent.parent
STAGES = ("import", "first masked tensor", "first transform", "first setting")
#: Imported before, so that what is put into them shows at once.
MODULES = """
    torch._dynamo torch.distributed._functional_collectives torch.distributed.tensor torch.distributed.fsdp
    torch.distributed.checkpoint torch.distributed.checkpoint.state_dict torch.distributed.checkpoint.default_planner
    torch.distributed.checkpoint._state_dict_stager torch.distributed.pipelining torch.nn.parallel.distributed
    torch.utils.checkpoint torch.utils.data torch.testing torch.func torch.multiprocessing
"""


def table() -> dict[str, set[str]]:
    """The names in the page's tables, by when they are changed."""
    found = defaultdict[str, set[str]](set)
    for section in (ROOT / "docs/importing.md").read_text().split("\n### At ")[1:]:
        when, _, rest = section.partition("\n")
        for line in rest.partition("\n## ")[0].splitlines():
            found[when.removeprefix("the ")] |= braced(line.rpartition(" | ")[2])
    return found


def changed(*modules: str) -> dict[str, Any]:
    run = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "tests.helpers.importing", *modules],
        capture_output=True,
        text=True,
        cwd=ROOT,
    )
    assert run.returncode == 0, run.stderr
    found: dict[str, Any] = json.loads(run.stdout)
    return found


@pytest.fixture(scope="module")
def listed() -> dict[str, set[str]]:
    return table()


def test_every_change_is_listed_and_nothing_else(listed: dict[str, set[str]]) -> None:
    found = changed(*MODULES.split())
    for stage in STAGES:
        seen = found[stage]
        assert seen["gone"] == []
        assert [name for name in seen["finders"] if name.startswith("torch.")] == []  # there is nothing to wait for
        names = {name for name in listed[stage] if name.startswith(("torch.", "multiprocessing."))}
        names -= {"torch.serialization.add_safe_globals", "torch.distributed._functional_collectives"}
        names -= {"torch._higher_order_ops.flex_attention"}  # which are named, and not replaced
        if torch.__version__ >= "2.14":
            names = {name.replace(".var_getattr", ".tp_getattro_impl") for name in names}
        assert set(seen["names"]) == names
        assert set(seen["keys"]) == {name for name in listed[stage] if re.fullmatch(r"[A-Z]\w+", name)}
        assert set(seen["ops"]) == {name for name in listed[stage] if "::" in name}


def test_what_is_waited_for_is_listed(listed: dict[str, set[str]]) -> None:
    found = changed()
    text = (ROOT / "docs/importing.md").read_text()
    assert "first transform" not in found  # it would import torch._dynamo
    for stage in set(STAGES) - {"first transform"}:
        assert set(found[stage]["names"]) <= listed[stage]
        assert bool(found[stage]["finders"]) == ("sys.meta_path" in listed[stage])
        assert [name for name in found[stage]["finders"] if f"`{name}" not in text] == []
    assert "torch.distributed.tensor" in found["first masked tensor"]["finders"]


@pytest.mark.parametrize("place", places.PLACES, ids=lambda place: f"{place.module}.{place.owner}")
def test_torch_has_every_name_that_is_replaced(place: places.Place) -> None:
    mt.masked_tensor([1.0])  # some are replaced for the first one
    module = importlib.import_module(place.module)
    owner = getattr(module, place.owner) if place.owner else module
    for name in place.names:
        function = getattr(owner, name)
        if function.__module__ == "torch.testing._internal.common_utils" and not hasattr(function, "masks"):
            function = torch.testing._internal.common_utils.func_call  # ours, which torch's tests call in their own
        assert function.masks, f"{name} is not replaced"


def test_a_torch_without_a_name_of_the_transforms_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """A test fails above with the name; a program gets a warning with it."""
    monkeypatch.delattr(torch._functorch.eager_transforms, "_unwrap_for_grad")
    absent = places.missing(places.PLACES)
    assert absent == ["torch._functorch.eager_transforms._unwrap_for_grad"]
    monkeypatch.setattr(install, "REPLACED", ((places.UNWRAP_FOR_GRAD, lambda function: function),))
    with pytest.warns(RuntimeWarning, match=r"lacks torch._functorch.eager_transforms._unwrap_for_grad, which torch"):
        install.install()


@pytest.mark.parametrize("name", [places.DYNAMO, places.FLEX_ATTENTION, places.FUNCTIONAL_COLLECTIVES])
def test_torch_has_every_module_that_is_waited_for(name: str) -> None:
    importlib.import_module(name)


TWICE = """
import sys
import masked_tensor as mt
x = mt.masked_tensor([1.0, None])
for name in [name for name in sys.modules if name.partition(".")[0] == "masked_tensor"]:
    del sys.modules[name]
try:
    import masked_tensor
except ImportError as error:
    assert str(error).startswith("masked_tensor was imported before in this process"), error
else:
    raise AssertionError("imported twice")
assert (x + 1).tolist() == [2.0, None]  # what there was still works
"""


def test_a_second_import_says_what_to_do() -> None:
    run = subprocess.run([sys.executable, "-W", "ignore", "-c", TWICE], capture_output=True, text=True, cwd=ROOT)
    assert run.returncode == 0, run.stderr


FIRST_STEPS = """
import sys
import torch
import masked_tensor as mt
from torch.autograd import backward, grad
from torch.nn import functional as F


def new():
    return mt.masked_tensor([[1.0, None], [3.0, 4.0]], requires_grad=True)


def retained():
    h = new() * 2
    h.retain_grad()
    (h.exp() + h.relu()).sum().backward()
    return h.grad


def parameter():
    p, q = torch.nn.Parameter(new().detach()), torch.nn.Linear(2, 2)
    for _ in range(2):
        F.mse_loss(q(p), torch.ones(2, 2)).backward()
    p.square().mean().backward(retain_graph=True)
    torch.nn.utils.clip_grad_norm_([p, *q.parameters()], 1.0)
    return p.grad


def twice():
    x = new()
    (g,) = grad(x.square().mean(), x, create_graph=True)
    g.square().sum().backward()
    return x.grad


def written():
    x = new() * 1
    x[0] = 0.0
    return backward([x.sum(), x[1].mean()])


programs = {
    "mean": lambda: new().mean().backward(),
    "filled": lambda: new().mean().filled(0).backward(),
    "a masked gradient": lambda: new().relu().backward(mt.masked_tensor([[1.0, None], [1.0, 1.0]])),
    "a plain gradient": lambda: new().relu().backward(torch.ones(2, 2)),
    "a masked gradient for a plain result": lambda: new().relu().filled(0).backward(mt.masked_tensor(torch.ones(2, 2))),
    "several roots": lambda: backward([new().mean(), new().exp().sum().filled(0)], [mt.masked_tensor(1.0), None]),
    "retained": retained, "parameter": parameter, "twice": twice, "written": written,
}
for name, run in programs.items():
    run()
    found = {"torch.distributed.tensor", "torch.fx.experimental.symbolic_shapes", "sympy"} & set(sys.modules)
    assert not found, (name, found)
"""


def test_the_first_backward_pass_imports_nothing() -> None:
    run = subprocess.run([sys.executable, "-W", "ignore", "-c", FIRST_STEPS], capture_output=True, text=True, cwd=ROOT)
    assert run.returncode == 0, run.stderr


@pytest.mark.parametrize(
    ("output", "gradient", "text"),
    [
        (lambda x: x.exp(), None, "grad can be implicitly created only for scalar outputs"),
        (lambda x: x.exp(), mt.masked_tensor([1.0]), "Mismatch in shape"),
        (lambda x: x.sum(), mt.masked_tensor(1j), "both grad_output and output are required"),
        (lambda x: x.sum().detach(), None, "does not require grad"),
    ],
)
def test_what_torch_refuses_to_start_with_it_still_refuses(output: Any, gradient: Any, text: str) -> None:
    x = mt.masked_tensor([1.0, None], requires_grad=True)
    with pytest.raises(RuntimeError, match=text):
        output(x).backward(gradient)


LOOKED_FOR = """
import importlib.util, sys
sys.path.insert(0, {folder!r})
from masked_tensor.patches.imports import FINDER, when_imported
found = []
for k in range(2):
    when_imported("waited_for", lambda module, k=k: found.append((k, module.VALUE)))
assert sys.meta_path.count(FINDER) == 1
assert importlib.util.find_spec("waited_for").name == "waited_for"  # a search: nothing is imported
assert importlib.util.find_spec("waited_for") and not found
import waited_for
assert found == [(0, 1), (1, 1)], found
assert "waited_for" not in FINDER.waiting
when_imported("waited_for", lambda module: found.append(module.VALUE))
assert found.pop() == 1
try:
    when_imported("is_not_there", found.append)
    import is_not_there
except ModuleNotFoundError:
    FINDER.stop_waiting("is_not_there")
"""


def test_a_search_for_a_module_is_not_its_import(tmp_path: Path) -> None:
    (tmp_path / "waited_for.py").write_text("VALUE = 1")
    run = subprocess.run(
        [sys.executable, "-c", LOOKED_FOR.format(folder=str(tmp_path))], capture_output=True, text=True, cwd=ROOT
    )
    assert run.returncode == 0, run.stderr


#: How many Python frames of this package a program on plain tensors passes, at most; of what is not named, none.
MOST: dict[str, dict[str, int]] = {
    "import": {"DataLoader": 7, "assert_close": 2},
    "first masked tensor": {
        "DTensor made": 2, "DTensor added": 1, "DTensor gathered": 1, "pad_tensor": 1, "vmap of cross_entropy": 32,
        "vmap of cov": 12, "grad": 15, "step": 3, "checkpoint": 3, "reentrant checkpoint": 6,
    },
    "first setting": {"checkpoint": 10, "reentrant checkpoint": 15},
}  # fmt: skip


@pytest.mark.skipif(not torch.distributed.is_available(), reason="torch was built without torch.distributed")
def test_programs_on_plain_tensors_pass_few_frames() -> None:
    run = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "tests.helpers.plain_frames"], capture_output=True, text=True, cwd=ROOT
    )
    assert run.returncode == 0, run.stderr
    found, most = json.loads(run.stdout), dict[str, int]()
    for stage in MOST:
        most |= MOST[stage]
        assert len(found[stage]) == 12
        for name, functions in found[stage].items():
            assert len(functions) <= most.get(name, 0), f"{stage}: {name}: {functions}"

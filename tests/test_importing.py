"""What importing the package changes in torch is what docs/importing.md says, no more and no less."""

import json
import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent
STAGES = ("import", "first masked tensor", "first setting")
#: Imported before, so that what is put into them shows at once.
MODULES = """
    torch._dynamo torch.distributed._functional_collectives torch.distributed.tensor torch.distributed.fsdp
    torch.distributed.checkpoint torch.distributed.checkpoint.state_dict torch.distributed.checkpoint.default_planner
    torch.distributed.checkpoint._state_dict_stager torch.distributed.pipelining torch.nn.parallel.distributed
    torch.utils.checkpoint torch.utils.data torch.testing torch.func torch.multiprocessing
"""


def table() -> dict[str, set[str]]:
    """The names in the page's table, by when they are changed."""
    found = defaultdict(set)
    for line in (ROOT / "docs/importing.md").read_text().splitlines():
        when, _, rest = line.removeprefix("| ").partition(" | ")
        if when in STAGES:
            found[when] |= set(re.findall(r"(?<!\})`([^`]+)`", rest.partition(" | ")[0]))
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
        assert seen["finders"] == []  # there is nothing to wait for
        names = {name for name in listed[stage] if name.startswith(("torch.", "multiprocessing."))}
        names -= {"torch.serialization.add_safe_globals", "torch.distributed._functional_collectives"}
        assert set(seen["names"]) == names
        assert set(seen["keys"]) == {name for name in listed[stage] if re.fullmatch(r"[A-Z]\w+", name)}
        assert set(seen["ops"]) == {name for name in listed[stage] if "::" in name}


def test_what_is_waited_for_is_listed(listed: dict[str, set[str]]) -> None:
    found = changed()
    text = (ROOT / "docs/importing.md").read_text()
    for stage in STAGES:
        assert set(found[stage]["names"]) <= listed[stage]
        assert bool(found[stage]["finders"]) == ("sys.meta_path" in listed[stage])
        assert [name for name in found[stage]["finders"] if f"`{name}" not in text] == []
    assert "torch.distributed.tensor" in found["first masked tensor"]["finders"]

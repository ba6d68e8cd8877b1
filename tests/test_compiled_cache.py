"""Processes that share inductor's cache on disk: a graph is not handed to one in which it would mean something else.

One process imports what is needed, and each run is a fork of it that has compiled nothing yet.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import masked_tensor as mt
from masked_tensor.engine.compiled import cache_key

RULE = """
import masked_tensor as mt

@mt.extend.register_rule("cache_test::shift")
def shift(x):
    return mt.extend.Pair(x.data + {number}, x.mask)
"""

PROGRAM = """
import contextlib, json, os, runpy, sys, traceback
import torch, torch._inductor.compile_fx
import masked_tensor as mt
from torch._dynamo.utils import counters

torch._inductor.config.fallback_by_default = True  # ops are called one by one: no C++ is compiled

library = torch.library.Library("cache_test", "DEF")
library.define("shift(Tensor x) -> Tensor")
library.impl("shift", lambda x: x + 0, "CompositeExplicitAutograd")

def run(meaning, rule):
    runpy.run_path(rule)
    function = lambda x, w: torch.ops.cache_test.shift(torch.conv1d(x, w))
    x = mt.masked_tensor([[[1.0, 2.0, None, 4.0]]])
    with mt.meaning(convolution=meaning) if meaning else contextlib.nullcontext():
        result = torch.compile(function, fullgraph=True)(x, torch.ones(1, 1, 2))
    return result.tolist()[0][0], counters["aot_autograd"]["autograd_cache_hit"]

for meaning, rule in json.loads(sys.argv[1]):
    if os.fork() == 0:
        try:
            print(json.dumps(run(meaning, rule)), flush=True)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    assert os.wait()[1] == 0
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="runs are forks of one process")
def test_a_cached_graph_serves_only_where_it_means_the_same(tmp_path: Path) -> None:
    rules = {number: tmp_path / f"rule_{number}.py" for number in (0, 10)}
    for number, file in rules.items():
        file.write_text(RULE.format(number=number))
    runs = [("any", rules[0]), (None, rules[0]), (None, rules[10]), ("any", rules[0])]
    command = [sys.executable, "-c", PROGRAM, json.dumps([(meaning, str(rule)) for meaning, rule in runs])]
    cache = {"TORCHINDUCTOR_CACHE_DIR": str(tmp_path / "cache"), "TORCHINDUCTOR_COMPILE_THREADS": "1"}
    done = subprocess.run(command, env=os.environ | cache, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    found = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("[")]
    assert found == [
        [[3.0, 2.0, 4.0], 0],
        [[3.0, None, None], 0],
        [[13.0, None, None], 0],
        [[3.0, 2.0, 4.0], 1],  # the cache does serve
    ]


def test_every_file_of_the_package_decides_whether_a_graph_may_serve() -> None:
    """A graph that another version of the package has made may mean something else."""
    assert cache_key.files() == sorted(Path(mt.__file__).parent.rglob("*.py"))

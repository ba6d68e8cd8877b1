"""All benchmarks: ``python -m benchmarks [name ...]``, or as a file: ``python benchmarks/__main__.py``.

The ratios are to the plain op on the same data without a mask, interleaved in one process; the clock is described in
``timing.py``.  ``--write`` makes the page ``docs/cost.md`` of them.  ``--device cuda`` runs them on a GPU.  Pictures of
how cost grows are drawn by ``python -m benchmarks.growth``.
"""

import argparse
import platform
import sys
import warnings
from importlib import import_module
from importlib.util import find_spec
from itertools import groupby
from pathlib import Path
from typing import Any

import torch

ROOT = Path(__file__).parent.parent
NAMES = ("tiny", "steps", "packed", "pointwise", "reductions", "softmax", "order", "sparse", "ranks", "curves")
COMPILED = ("steps", "packed", "reductions", "softmax")


def main() -> None:
    parser = argparse.ArgumentParser(description="What masked tensors cost, as multiples of the plain op.")
    parser.add_argument("names", nargs="*", choices=[*NAMES, []], help="which of them; all if none is named")
    parser.add_argument("--small", action="store_true", help="small sizes: do they run at all?")
    parser.add_argument("--compiled", action="store_true", help="compiled ones too")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--write", action="store_true", help="write docs/cost.md: the tables of what was run")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    warnings.simplefilter("ignore")
    sys.path.insert(0, str(ROOT))  # run as a file, the folder is no package yet
    from benchmarks import timing

    timing.DEVICE, timing.LEAST = options.device, options.small
    timing.settle()
    sections: list[tuple[str, timing.Line]] = []
    for name in options.names or NAMES:
        if name == "packed" and find_spec("transformers") is None:
            print("\npacked: not run, its models come from transformers (the extra `models`)")
            continue
        module = import_module(f"benchmarks.{name}")
        title = (module.__doc__ or "").partition("\n")[0]
        print(f"\n{title}", flush=True)
        torch.manual_seed(0)
        module.run(options.small)
        if options.compiled and name in COMPILED:
            module.compiled(options.small)
        sections += [(title, line) for line in timing.LINES]
        timing.LINES.clear()
    if options.write:
        page = ROOT / "docs" / ("cost.md" if options.device == "cpu" else f"cost_{options.device}.md")
        before = page.read_text() if page.exists() else ""
        page.write_text(merged(before, written(sections, options.device, options.threads)))


def written(sections: list[tuple[str, Any]], device: str, threads: int) -> str:
    """The page: a table for each benchmark."""
    where = torch.cuda.get_device_name() if device == "cuda" else f"{platform.machine()} CPU, {threads} thread(s)"
    parts = [INTRODUCTION.format(where=where, torch=torch.__version__, python=platform.python_version())]
    for title, group in groupby(sections, lambda pair: pair[0]):
        lines = [line for _, line in group]
        kinds = list(dict.fromkeys(kind for line in lines for kind in line.ratios))
        goal, kept = any(line.target for line in lines), any(line.saved for line in lines)
        head = ["", "plain, ms", *kinds, *["goal"] * goal, *["kept for backward, MiB"] * kept]
        parts += [
            "",
            f"## {title.partition(':')[0].rstrip('.')}",
            "",
            title,
            "",
            table_row(head),
            table_row(["---"] * len(head)),
        ]
        for line in lines:
            cells = [line.title, f"{line.seconds * 1e3:.3g}", *(ratio(line.ratios.get(kind)) for kind in kinds)]
            cells += [line.target] * goal + [", ".join(f"{k} {v:.3g}" for k, v in line.saved.items())] * kept
            parts.append(table_row(cells))
    return "\n".join(parts) + "\n"


def merged(page: str, made: str) -> str:
    """``made``, and behind its introduction also the tables of ``page`` that it has not; in the order of ``page``."""
    old, new = ({table.partition("\n")[0]: table for table in text.split("\n## ")[1:]} for text in (page, made))
    return "\n## ".join([made.partition("\n## ")[0], *(old | new).values()])


def table_row(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def ratio(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"


INTRODUCTION = """# What it costs

Everything here is printed by `python -m benchmarks --compiled --write`, all of it or the tables that one names: what
the plain op takes on the same data without a mask, and the others as multiples of it. All candidates run in turn in one
process; medians over the rounds. On the CPU it is processor time. A number below 1 is faster than the plain op.

Measured on: {where}; torch {torch}, Python {python}.

What to take from it: on large tensors elementwise ops cost what they cost without a mask, and a random mask costs a
reduction a pass over the mask; a mask that is constant along rows (padding) costs next to nothing; on tiny tensors a
call costs some ten microseconds, whatever it does; and padding that is [packed](packed.md) is not computed."""


if __name__ == "__main__":
    main()

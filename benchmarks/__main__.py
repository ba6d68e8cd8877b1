"""All benchmarks: ``python -m benchmarks [name ...]``, or as a file: ``python benchmarks [name ...]``.

The ratios are to the plain op on the same data without a mask, interleaved in one process; the clock is described in
``timing.py``.  ``--write`` keeps them in ``benchmarks/cost.md``, and ``front.py`` takes from there what the pages show.
``--device cuda`` runs them on a GPU.  Pictures of how cost grows are drawn by ``python -m benchmarks.growth``.
"""

import argparse
import os
import platform
import sys
import time
import traceback
import warnings
from dataclasses import replace
from importlib import import_module
from itertools import groupby
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).parent.parent))  # run as a file, the folder is no package yet

from benchmarks import front, timing

ROOT = Path(__file__).parent.parent
NAMES = (
    *(
        "importing",
        "tiny",
        "steps",
        "packed",
        "flat",
        "attention",
        "pointwise",
        "reductions",
        "softmax",
        "order",
        "sparse",
    ),
    *("ranks", "curves", "everyday"),
)
COLUMN = "masked / by hand, 2 threads"
COMPILED = ("steps", "packed", "flat", "reductions", "softmax")


def main() -> None:
    parser = argparse.ArgumentParser(description="What masked tensors cost, as multiples of the plain op.")
    parser.add_argument("names", nargs="*", choices=[*NAMES, []], help="which of them; all if none is named")
    parser.add_argument("--small", action="store_true", help="small sizes: do they run at all?")
    parser.add_argument("--compiled", action="store_true", help="compiled ones too")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--match", default="", help="of everyday: only the lines whose title contains this")
    parser.add_argument("--write", action="store_true", help="keep the tables of what was run in benchmarks/cost.md")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    warnings.simplefilter("ignore")
    timing.DEVICE, timing.LEAST, timing.MATCH = options.device, options.small, options.match
    timing.settle()
    for name in options.names or NAMES:
        module = import_module(f"benchmarks.{name}")
        title = (module.__doc__ or "").partition("\n")[0]
        print(f"\n{title}", flush=True)
        torch.manual_seed(0)
        start = time.perf_counter()
        try:
            module.run(options.small)
            if options.compiled and name in COMPILED:
                module.compiled(options.small)
        except Exception:  # the other tables are measured all the same
            timing.FAILED.append(f"{name}:\n{traceback.format_exc()}")
        print(f"{time.perf_counter() - start:.0f} s", flush=True)
        if options.write and timing.LINES:  # at once: what was measured is not lost with what comes after
            page = ROOT / "benchmarks" / ("cost.md" if options.device == "cpu" else f"cost_{options.device}.md")
            lines = [(title, line) for line in timing.LINES]
            page.write_text(merged(page.read_text(), written(lines, options.device, options.threads)))
            front.main()
        timing.LINES.clear()
    sys.exit("\n".join(["", *timing.FAILED]) if timing.FAILED else 0)


def written(sections: list[tuple[str, timing.Line]], device: str, threads: int) -> str:
    """The full tables, one for each benchmark."""
    where = f"{torch.cuda.get_device_name()}, CUDA {torch.version.cuda}" if device == "cuda" else processor()
    where += f", {threads} thread" + "s" * (threads != 1)
    where += ", a machine with other work on it" * (os.getloadavg()[0] > (os.cpu_count() or 1) * 1.5)
    title, option = (" on a GPU", f" --device {device}") if device != "cpu" else ("", "")
    versions = {"torch": torch.__version__, "python": platform.python_version()}
    parts = [INTRODUCTION.format(title=title, option=option, where=where, **versions)]
    for title, group in groupby(sections, lambda pair: pair[0]):
        lines = folded([line for _, line in group])
        kinds = list(dict.fromkeys(kind for line in lines for kind in line.ratios))
        peak, kept = (any(getattr(line, name) for line in lines) for name in ("peaks", "saved"))
        head = [
            "",
            "plain, ms",
            *kinds,
            *["memory at the peak"] * peak,
            *["kept for backward"] * kept,
        ]
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
            cells += [timing.sizes(found) for found, any_ in ((line.peaks, peak), (line.saved, kept)) if any_]
            parts.append(table_row(cells))
    return "\n".join(parts) + "\n"


def folded(lines: list[timing.Line]) -> list[timing.Line]:
    """The lines, those of two threads as a column of the lines of one thread."""
    two = {line.title: line for line in lines if line.title.endswith(timing.TWO_THREADS)}
    found = []
    for line in lines:
        other = two.get(line.title + timing.TWO_THREADS)
        if line.title not in two:
            more = {COLUMN: other.ratios["masked / by hand"]} if other else {}
            found.append(replace(line, ratios=line.ratios | more))
    return found


def merged(page: str, made: str) -> str:
    """``made``, and behind its introduction also the tables of ``page`` that it has not; in the order of ``page``."""
    old, new = ({table.partition("\n")[0]: table for table in text.split("\n## ")[1:]} for text in (page, made))
    return "\n## ".join([made.partition("\n## ")[0], *(old | new).values()])


def processor() -> str:
    """The CPU by its name, where the system tells."""
    about = Path("/proc/cpuinfo")
    lines = about.read_text().splitlines() if about.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or f"{platform.machine()} CPU"


def table_row(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def ratio(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"


INTRODUCTION = """# All measurements{title}

`python -m benchmarks --compiled{option} --write` measures all of it again; names of tables after it measure those.

- *Plain* is the time of the plain op on the same data, without a mask. The other columns are multiples of it: below 1
  is faster than the plain op.
- *By hand* is plain torch that gives the same numbers, whatever lies under the mask. *On finite data* is the mask as a
  factor, which is right if no NaN and no infinity lies there. *Masked / by hand* is what a masked tensor costs beside
  code by hand.
- *Masked* and *packed* are this package, and so are columns that are named by the kind of their mask (*padded*,
  *random*). Other names are other packages.
- All candidates run in turn in one process, and the numbers are medians over the rounds. On the CPU it is processor
  time.
- *Memory at the peak* is what one call needs beyond what was there before, as torch's allocator counts it. *Kept for
  backward* is what a step saves, each memory once. Both name plain torch's, and the others as multiples of it.

Measured on: {where}; torch {torch}, Python {python}.

Compare ratios, not the times of different tables: each table was measured by itself. The column of two threads is wall
time. Other work on the machine shows most in its small lines."""


if __name__ == "__main__":
    main()

"""``python -m tests.models [names] [--seconds N] [--again] [--page]``: sweeps, keeps what it found, writes the page.

A full sweep takes about an hour on one core.  It may be cut into pieces: what was found stays in ``docs/models.json``,
and the next call goes on from there (``--again``: from the start).  No model type takes more than a minute.
"""

import argparse
import json
import os
import signal
import time
import warnings
from pathlib import Path
from typing import Any

from . import page, text
from .judge import Verdict

FOUND = Path(__file__).parent.parent.parent / "docs" / "models.json"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.models", description=__doc__)
    parser.add_argument("names", nargs="*", help="model types; left out, all")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="stop after so many")
    parser.add_argument("--again", action="store_true", help="judge what is known, too")
    parser.add_argument("--page", action="store_true", help="only write docs/models.md")
    options = parser.parse_args()
    os.environ["TRANSFORMERS_VERBOSITY"] = "error"
    warnings.simplefilter("ignore")
    found: dict[str, dict[str, Any]] = json.loads(FOUND.read_text()) if FOUND.exists() else {}
    if not options.page:
        _sweep(options.names or text.types(), found, options.seconds, options.again or bool(options.names))
    page.write(found, FOUND.with_suffix(".md"))


def _sweep(names: list[str], found: dict[str, dict[str, Any]], seconds: float, again: bool) -> None:
    end = time.monotonic() + seconds
    for name in names:
        if time.monotonic() > end:
            return
        for variant in text.VARIANTS:
            if again or variant not in found.setdefault(name, {}):
                verdict = _in_time(name, variant)
                found.setdefault(name, {})[variant] = [verdict.outcome, verdict.detail]
                print(f"{name:32} {variant:8} {verdict.outcome:12} {verdict.detail}", flush=True)
        FOUND.write_text(json.dumps(dict(sorted(found.items())), indent=0) + "\n")


def _in_time(name: str, variant: str) -> Verdict:
    def late(*_: Any) -> None:
        raise TimeoutError("more than a minute")

    signal.signal(signal.SIGALRM, late)
    signal.alarm(60)
    try:
        return text.verdict(name, variant)
    except TimeoutError as error:
        return Verdict("not built", str(error))
    finally:
        signal.alarm(0)


if __name__ == "__main__":
    main()

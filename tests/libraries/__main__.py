"""``python -m tests.libraries [names]``: runs the cases of what is installed; nothing is downloaded.

What was found stays in ``docs/libraries.json``, so that the page may be made in pieces.  A case has a minute of
processor time.  The exit status is 1 if something is neither as its case says nor declared.
"""

import argparse
import gc
import random
import signal
import sys
import time
import warnings
from collections import Counter
from dataclasses import replace
from importlib.metadata import version
from typing import Any

from . import _images, _sides
from ._case import Case, drawing
from ._page import keep, known
from ._run import cases, files, installed, outcome, verdict


class _Late(BaseException):
    """A case has had its minute: no error of its own."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.libraries", description=__doc__)
    parser.add_argument("names", nargs="*", help="files of tests/libraries, or file:case; left out, all")
    parser.add_argument("--images", action="store_true", help="more of what is given images: padded, missing pixels")
    parser.add_argument("--sides", action="store_true", help="losses of which one side alone is masked")
    parser.add_argument("--within", help="a context for all cases, such as 'meaning(product=\"all\")': what it changes")
    parser.add_argument("--draw", type=int, metavar="N", help="so many cases drawn at random, with --seed; no page")
    parser.add_argument("--seed", type=int, default=0, help="of --draw: of the draw, the weights and the data")
    parser.add_argument("--page", action="store_true", help="only write the page")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    found, wrong, before = {}, [], known()
    chosen = [name.partition(":") for name in options.names or files()]
    if options.within:
        return _changed(chosen, options.within)
    if options.draw:
        return _drawn(options.draw, options.seed)
    if options.images:
        return _of_images(chosen)
    if options.sides:
        return _of_sides(chosen)
    for name, _, one in [] if options.page else chosen:
        if not installed(name):
            print(f"{name:24} not installed")
            continue
        said = {case.name: _in_time(case, name) for case in cases(name).CASES if one in ("", case.name)}
        wrong += [f"{name}:{case}" for case, (result, _) in said.items() if result == "WRONG"]
        earlier = found.get(name, before.get(name, {"cases": {}}))["cases"] | said
        found[name] = {"version": installed(name), "torch": version("torch").partition("+")[0]}
        found[name] |= {k: of for k, of in before.get(name, {}).items() if k in ("images", "sides")}
        found[name]["cases"] = {case.name: earlier[case.name] for case in cases(name).CASES if case.name in earlier}
    keep({name: of for name, of in (known() | found).items() if name in files()})
    print(*(f"WRONG {name}" for name in wrong), sep="\n")
    return bool(wrong)


def _drawn(number: int, seed: int) -> int:
    """Cases of what is installed, drawn at random, beside what the page says of them."""
    drawing.seed = seed
    all_cases = [(name, case) for name in files() if installed(name) for case in cases(name).CASES]
    disagree, page = 0, known()
    for name, case in random.Random(seed).sample(all_cases, min(number, len(all_cases))):
        found = _in_time(case, name)
        said = page[name]["cases"].get(case.name)
        if said is None or said[0] != found[0]:
            disagree += 1
            print(f"    the page says {said}")
    print(f"{disagree} of {number} disagree with the page, seed {seed}")
    return bool(disagree)


def _changed(chosen: list[tuple[str, str, str]], context: str) -> int:
    """Says which cases are exact by default alone, and which in a context alone; of those that name no context."""
    counts: Counter[str] = Counter()
    for name, _, one in chosen:
        for case in cases(name).CASES if installed(name) else []:
            if one in ("", case.name) and not case.within:
                now = verdict(replace(case, within=context))
                change = {(True, False): "lost", (False, True): "gained"}
                said = change.get((case.outcome == "exact", now.outcome == "exact"), "as before")
                counts[said] += 1
                print(f"{said:10} {name}:{case.name} {now.outcome} {now.detail}", flush=True)
    print(dict(counts))
    return 0


def _of_images(chosen: list[tuple[str, str, str]]) -> int:
    found, wrong = known(), []
    for name, _, one in chosen:
        for case in _images.of_images(name) if installed(name) and name in found else []:
            if one in ("", case.name):
                said = _images.verdicts(case)
                found[name].setdefault("images", {})[case.name] = said
                wrong += [f"{name}:{case.name} {off}" for off in [_images.wrong(name, case.name, said)] if off]
                print(f"{name:24} {case.name:32} {'; '.join(' '.join(v) for v in said.values())}", flush=True)
        keep(found)
    print(*(f"WRONG {off}" for off in wrong), sep="\n")
    return bool(wrong)


def _of_sides(chosen: list[tuple[str, str, str]]) -> int:
    found, wrong = known(), []
    for name, _, one in chosen:
        for case in _sides.of_losses(name) if installed(name) and name in found else []:
            if one in ("", case.name):
                said = _sides.verdicts(case)
                found[name].setdefault("sides", {})[case.name] = said
                wrong += _sides.wrong(name, case.name, said)
                print(f"{name:24} {case.name:32} {'; '.join(' '.join(v) for v in said.values())}", flush=True)
        keep(found)
    print(*(f"WRONG {off}" for off in wrong), sep="\n")
    return bool(wrong)


def _in_time(case: Case, name: str) -> tuple[str, str]:
    def late(*_: Any) -> None:
        raise _Late

    start = time.process_time()
    signal.signal(signal.SIGPROF, late)
    signal.setitimer(signal.ITIMER_PROF, 60)
    try:
        said = outcome(case)
    except _Late:
        said = "WRONG", "more than a minute of processor time"
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        gc.collect()
    print(f"{name:24} {case.name:32} {time.process_time() - start:5.1f} s  {said[0]:8} {said[1]}", flush=True)
    return said


if __name__ == "__main__":
    sys.exit(main())

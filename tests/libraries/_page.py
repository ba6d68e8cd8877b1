"""docs/libraries.json, which keeps what was found, and docs/libraries.md, which is made from it."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

from . import _images, _sides
from ._run import cases, files

DOCS = Path(__file__).parent.parent.parent / "docs"
FOUND, PAGE = DOCS / "libraries.json", DOCS / "libraries.md"
HEAD = """# Libraries that were run

Which classes and functions of other libraries work unchanged on masked tensors, and what to write instead of the
others: {cases} cases of {classes} classes and functions of {libraries} libraries, unmodified, with random weights, in
float64.

A masked batch is compared with its rows alone and unpadded, or with the batch without the masked rows. The data under
the mask are NaN, or -100 for integers. The comparison covers values (1e-6), validity, and the gradients of all
parameters and inputs. `python -m tests.libraries [NAME]` runs the cases in `tests/libraries` of the installed libraries
and makes this page. Continuous integration runs the libraries that its extras install. [Models](models.md) of Hugging
Face and timm, and [metrics](metrics.md), have their own pages.

| result | meaning | cases |
|---|---|---:|
| exact | same result as the rows alone | {exact} |
| exact, with | the same, inside the named context | {meaning} |
| raises | an error, which usually says what to write instead | {refused} |
| differs | a different result, for the given reason | {declared} |

## What differs, and what to write instead

| library | class | result | why, and what to write instead |
|---|---|---|---|
{others}

## What is exact

| library | version | class |
|---|---|---|
{same}

"""

Found = dict[str, dict[str, Any]]


def known() -> Found:
    """What was found: by file, the version, and by case the outcome and what was seen."""
    found: Found = json.loads(FOUND.read_text()) if FOUND.exists() else {}
    return found


def keep(found: Found) -> None:
    """Writes what was found, and the page."""
    FOUND.write_text(json.dumps(dict(sorted(found.items())), indent=0) + "\n")
    PAGE.write_text(page(found))


def page(found: Found) -> str:
    """The page for what was found."""
    counts = Counter(result for of in found.values() for result, _ in of["cases"].values())
    known = {k: counts[k] for k in ("exact", "meaning", "refused", "declared")}
    classes = {(name, case.partition(" (")[0]) for name, of in found.items() for case in of["cases"]}
    lines = [line for name in files() if name in found for line in _lines(name, found[name])]
    same, others = ("\n".join(line for exact, line in lines if exact == kind) for kind in (True, False))
    head = HEAD.format(
        cases=sum(known.values()), classes=len(classes), libraries=len(found), same=same, others=others, **known
    )
    return head + _sides.section(found) + "\n" + _images.section(found)


def _lines(name: str, found: dict[str, Any]) -> list[tuple[bool, str]]:
    """One line for all classes that have the same result and the same note, and whether they are exact."""
    module = cases(name)
    groups: dict[tuple[str, str], list[str]] = {}
    for case in module.CASES:
        if case.name in found["cases"]:
            result = found["cases"][case.name][0]
            result = f"exact, with `{case.within}`" if result == "meaning" else _sides.RESULTS.get(result, result)
            groups.setdefault((result, case.note), []).append(f"`{case.name}`")
    return [
        (True, f"| {module.LIBRARY} | {found['version']} | {', '.join(names)} |")
        if (result, note) == ("exact", "")
        else (False, f"| {module.LIBRARY} | {', '.join(names)} | {result} | {note} |")
        for (result, note), names in groups.items()
    ]

"""The part of the page on flat tokens, and the column of the table of all types."""

from collections import Counter

from . import other_page

#: Why a type cannot be flat, where what was seen does not say it.
REASONS: dict[str, str] = {
    "phimoe": "in training, draws random noise for all tokens of its experts at once",
}
COLUMNS = ("exact", "refused", "differs", "fails alone", "not built")
HEAD = """## Flat tokens

The text models after `mt.flat(model)`, which runs them on plain tokens and checks them at the first call
([Flat](flat.md)). The comparison covers values and the gradients of all parameters in float64, in evaluation and in
training without dropout, with padding on the right and on the left (`python -m tests.models --flat`; {count} types).
*Refused*: the first call raises; call these types on the masked batch, as above.

| mode, padding | {columns} |
|---|{lines}
{counted}

| type | what was seen |
|---|---|
{rest}"""
DECODERS = "have different lengths"
SAID = {
    DECODERS: "refused: encoder and decoder tokens have different lengths; use `mt.flat(model.encoder)`",
    "differ by": "refused: does not keep two sequences apart",
}


def column(name: str) -> str:
    """What a type is in all checks, or what the first says that is not exact."""
    found = other_page.known("flat").get(name, {})
    return next((outcome for outcome, _ in found.values() if outcome != "exact"), "exact" if found else "")


def section() -> str:
    """The section on flat tokens."""
    found = other_page.known("flat")
    checks = next(iter(found.values()))
    counted = []
    for check in checks:
        of = Counter(said[check][0] for said in found.values())
        counted.append(f"| {check} | {' | '.join(str(of[c]) for c in COLUMNS)} |")
    rest: dict[str, list[str]] = {}
    for name, said in found.items():
        for outcome, detail in dict.fromkeys(map(tuple, said.values())):
            if outcome in ("refused", "differs"):
                rest.setdefault(_seen(name, outcome, detail), []).append(f"`{name}`")
    return HEAD.format(
        count=len(found),
        columns=" | ".join(COLUMNS),
        lines="---:|" * len(COLUMNS),
        counted="\n".join(counted),
        rest="\n".join(f"| {', '.join(names)} | {seen} |" for seen, names in rest.items()),
    )


def _seen(name: str, outcome: str, detail: str) -> str:
    if name in REASONS:
        return f"{outcome}: {REASONS[name]}"
    said = next((words for part, words in SAID.items() if part in detail and outcome == "refused"), None)
    detail = detail.partition("on flat tokens: ")[2].partition(". Only attention")[0] or detail
    detail = detail.partition("without mt.flat as well, on ")[2].partition(". First call it")[0] or detail
    return said or f"{outcome}: {detail}".replace("`", "'").replace("|", "/")

"""The page: a table of what was found, and every type that is not exact, with the reason."""

from collections import Counter
from importlib.metadata import version
from pathlib import Path
from typing import Any

from . import image_page

# Why a padded batch is not what its rows are; and what to do.
REASONS = {
    "fnet": "mixes a whole row by a Fourier transform: with padding it is a hole",
    "canine": "cuts time into blocks, and reads the last step of each",
    "funnel": "pools time by two; its own mask is off by as much",
    "kimi_linear": "computes a part in float32; of a limit of 1e-06, its padded gradients use 9.5e-07",
    "jetmoe": "cuts its rows by counts that leave holes out",
}

HEAD = """# Models that were run

Models of other packages, unmodified, with random weights: a padded batch of three rows, garbage under the mask, and
**no attention mask given**. *Exact*: at every valid position the output, and for every parameter the gradient, is that
of the rows run alone and unpadded. *Eager*: the library's plain code, in float64 (1e-6); *default*: what it runs by
default (fused attention, grouped experts), in float32 (2e-3). Where a model rounds more than that by itself, as those
do that compute part of float64 in float32, the limit is four times what the plain rows alone differ by if each op
rounds by one unit otherwise, or from float64; the list names these. `python -m tests.models` makes this page;
continuous integration runs a handful of the models.

{versions}

| types | eager | default |
|---|---:|---:|
"""
OUTCOMES = {
    "exact": "exact",
    "helped": "exact with a meaning, a context or a turn that is named below",
    "refused": "refused, by an error",
    "differs": "differs from its rows",
    "fails alone": "fails alone: needs more than tokens, or a larger size",
    "not built": "not built from a tiny configuration",
}


READ = "aten::select.int"  # what the judge reads the rows by
PACKED = """The same batches as packed tensors (`x.packed()`, `python -m tests.models --packed`): {eager} types exact as
eager code, {default} by default; {alone} of these {all} without spreading at any op of the model.{other}"""


def write(found: dict[str, dict[str, Any]], packed: dict[str, dict[str, Any]], path: Path) -> None:
    """Writes the page for what was found, and what was found with packed batches."""
    versions = ", ".join(f"{name} {version(name).partition('+')[0]}" for name in ("transformers", "torch"))
    counts = {v: Counter(f[v][0] for f in found.values() if v in f) for v in ("eager", "default")}
    lines = [f"| {text} | {counts['eager'][o]} | {counts['default'][o]} |" for o, text in OUTCOMES.items()]
    parts = [HEAD.format(versions=versions) + "\n".join(lines), _packed(found, packed)]
    for outcome, title in OUTCOMES.items():
        parts += [f"## {title[0].upper()}{title[1:]}", _listed(found, outcome)]
    path.write_text("\n\n".join([*parts, image_page.section()]))


def _packed(found: dict[str, dict[str, Any]], packed: dict[str, dict[str, Any]]) -> str:
    """The paragraph on packed batches: how many are exact, and each type that is not what it is padded."""
    exact = [(v, spread) for f in packed.values() for v, (outcome, _, spread) in f.items() if outcome == "exact"]
    counts = Counter(v for v, _ in exact)
    alone = sum(set(spread) <= {READ} for _, spread in exact)
    differ = [
        f"`{name}` ({v}: {got[0]}{', ' * bool(got[1])}{got[1]}; padded: {found[name][v][0]}) {REASONS.get(name, '')}"
        for name, verdicts in packed.items()
        for v, got in verdicts.items()
        if v in found.get(name, {}) and got[0] != found[name][v][0]
    ]
    other = f" Other than padded: {'; '.join(differ)}." if differ else ""
    return PACKED.format(**counts, alone=alone, all=len(exact), other=other)


def _listed(found: dict[str, dict[str, Any]], outcome: str) -> str:
    if outcome == "exact":
        names = [n for n, f in found.items() if all(v[0] == "exact" for v in f.values())]
        all_said = [(n, v, said) for n, f in found.items() for v, said in f.items()]
        rounded = [f"`{n}` ({v}: {detail})" for n, v, (got, detail) in all_said if got == outcome and detail]
        within = f" Within what rounding makes: {', '.join(rounded)}." if rounded else ""
        return ", ".join(f"`{n}`" for n in names) + "." + within
    lines = []
    for name, verdicts in found.items():
        for variant, (got, detail) in verdicts.items():
            if got == outcome:
                said = " ".join(detail.replace("`", "'").replace("|", "/").split())
                lines.append(f"| `{name}` | {variant} | {said} | {REASONS.get(name, '')} |")
    return "| type | variant | what was seen | why |\n|---|---|---|---|\n" + "\n".join(lines) if lines else "None."

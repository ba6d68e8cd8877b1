"""The page: what was found, counted, and a table of every type with what was seen and why."""

import re
from collections import Counter
from importlib.metadata import version
from pathlib import Path
from typing import Any

from . import flat_page, head_page, image_page, left_page, other_page

# Why a padded batch is not what its rows are; and what to do.
REASONS = {
    "fnet": "mixes a whole row by a Fourier transform: with padding it is masked",
    "canine": "cuts time into blocks, and reads the last step of each",
    "fastspeech2_conformer": "makes frames out of tokens by durations, in a plain tensor",
    "vits": "splines write into plain tensors; draws random durations",
    "univnet": "draws random noise",
    "dac": "exact up to its quantizer; random weights grow to 1e21 there, and rounding decides which code is nearest",
    "prophetnet": "views its n-gram bias in an order that depends on the padded length; its own mask gives NaN",
    "sew": "pools time by two: a row of odd length loses its last frame",
    "sew-d": "pools time by two: a row of odd length loses its last frame",
    "diffusion_gemma": "counts the positions of its decoder from the padded length",
    "zamba2": "reads the last step of each of its blocks of time",
    "funnel": "pools time by two; its own mask is off by as much",
    "kimi_linear": "computes a part in float32; of a limit of 1e-06, its padded gradients use 9.5e-07",
}

HEAD = """# Models that were run

Which models of Hugging Face and timm give the same results on a masked batch as on each row alone. All models are
unmodified and have random weights. The text models got a padded batch of three rows, with garbage under the mask and
**no attention mask**.

- *Exact*: at every valid position, the output equals that of the rows run alone and unpadded, and so do the gradients
  of all parameters.
- *Eager*: the library's plain code, in float64 (tolerance 1e-6).
- *Default*: the code the library runs by default (fused attention, grouped experts), in float32 (tolerance 2e-3).

Some models themselves round more than that, for example because they compute part of float64 in float32. Their
tolerance is four times the rounding error of the plain rows. This error is the difference to float64, or to a run in
which each op rounds differently by one unit. The table names these models. `python -m tests.models` makes this page;
continuous integration runs a few of the models.

{versions}

| types | eager | default |
|---|---:|---:|
"""
OUTCOMES = {
    "exact": "exact",
    "helped": "helped: exact with the setting, context or call that the table names",
    "refused": "refused: raises an error",
    "differs": "differs: not the same result as the rows alone",
    "fails alone": "fails alone: fails even without masks: it needs more than tokens, or a larger size",
    "not built": "not built: no tiny configuration works",
}
VARIANTS = ("eager", "default")
ALL_HEADS = re.compile(r"(\d+), \1, \1 of \1")
ALL = """The column *heads* has the number of heads that are exact or helped with padding on the right, on the left, and
packed, out of all heads ([below](#heads)). *Flat* is the result after `mt.flat(model)` ([below](#flat-tokens))."""


READ = "aten::select.int"  # what the judge reads the rows by
PACKED = """The same batches as packed tensors (`x.packed()`, `python -m tests.models --packed`) are exact for {eager}
types eager, and for {default} by default. In {alone} of these {all} runs, no op of the model unpacks.{other}"""


Found = dict[str, dict[str, Any]]
SIGNALS = """# Audio models

The same for types that accept a wave (4000, 2400 and 3300 samples) or a spectrogram (48, 28 and 40 frames), with NaN
under the mask (`python -m tests.models --signals`). Types whose feature extractor pads recordings to one length fail
alone here, and so do those that need more than one input. *Left* has the result of exact types with padding on the
left (`mt.to_right`, `python -m tests.models --signals --left`).

| types | eager | default |
|---|---:|---:|
"""


LABELS = """# Encoder-decoders with labels

Tokens and labels have different lengths, and both are padded. The scores at every label and the gradients are compared
with those of the rows alone, and the loss with the mean over all labels (`python -m tests.models --labels`).

| types | eager | default |
|---|---:|---:|
"""


def write(found: Found, packed: Found, signals: Found, labels: Found, path: Path) -> None:
    """Writes the page for what was found, what was found with packed batches, with signals and with labels."""
    versions = ", ".join(f"{name} {version(name).partition('+')[0]}" for name in ("transformers", "torch"))
    parts = [HEAD.format(versions=versions) + _counted(found), _packed(found, packed)]
    parts += ["## All types", ALL, _table(found, heads=True)]
    parts += [SIGNALS.replace("# ", "## ", 1) + _counted(signals), _table(signals, left=True)]
    parts += [LABELS.replace("# ", "## ", 1) + _counted(labels), _table(labels), left_page.section()]
    parts += [flat_page.section(), head_page.section()]
    path.write_text("\n\n".join([*parts, *map(other_page.section, other_page.HEADS), image_page.section()]))


def _counted(found: Found) -> str:
    counts = {v: Counter(f[v][0] for f in found.values() if v in f) for v in VARIANTS}
    return "\n".join(f"| {text} | {counts['eager'][o]} | {counts['default'][o]} |" for o, text in OUTCOMES.items())


def _packed(found: Found, packed: Found) -> str:
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


def _table(found: Found, heads: bool = False, left: bool = False) -> str:
    """The types that are exact in every column, by name; a line for each other: what was seen, and why."""
    variants, more = [*VARIANTS, *["left"] * left], ["flat", "heads"] * heads
    titles = ["type", *variants, *more, "what was seen"]
    exact, lines = [], [f"| {' | '.join(titles)} |", "|" + "---|" * len(titles)]
    for name, verdicts in sorted(found.items(), key=lambda item: item[0].lower()):
        outcomes = [verdicts[v][0] if v in verdicts else "" for v in variants]
        outcomes += [flat_page.column(name), head_page.column(name)] * heads
        seen = _seen(verdicts, REASONS.get(name, ""))
        if not seen and all(outcome == "exact" or ALL_HEADS.fullmatch(outcome) for outcome in outcomes):
            exact.append(f"`{name}`")
        else:
            lines.append(f"| `{name}` | {' | '.join(outcomes)} | {seen} |")
    return f"Exact in every column ({len(exact)} types): {', '.join(exact)}.\n\nAll others:\n\n" + "\n".join(lines)


def _seen(verdicts: dict[str, Any], reason: str) -> str:
    """The details of the variants, once where they are alike, and the reason."""
    said = {v: " ".join(detail.replace("`", "'").replace("|", "/").split()) for v, (_, detail) in verdicts.items()}
    alike = len(set(said.values())) == 1
    details = [said["eager"]] if alike and "eager" in said else [f"{v}: {text}" for v, text in said.items() if text]
    return "; ".join(filter(None, [*details, reason]))

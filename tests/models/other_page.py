"""The parts of the page on the time series and images of transformers."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

from . import others

DOCS = Path(__file__).parent.parent.parent / "docs"
HEADS = {
    "series": """## Time series

Each class of `transformers` that accepts a series, tiny, random weights, float64 (1e-6; steps in float32 are made in
float64); `python -m tests.models --series`. *Whole* and *beside* are those of image models, below, with the loss where
there is one: what is to be predicted is masked like its series. *Past* is no law: the first third of two series is
missing, against the mask that the model itself takes, all outputs; *helped*: with that mask beside the masked series.
A map leaves out what is missing, and the model reads a 0, before it is scaled or after.

Two things to know. TimesFM reads its padding as a feature, too: give `past_values_padding` with a masked series. In
TimesFM 2.5 the statistics of a series stay unknown once a whole patch is missing, and its states, still valid, are
made from those flags alone: give it `filled(0)` and its padding. Autoformer, in eval mode, mixes the rows of any
batch, plain ones too.""",
    "vision": """## Hugging Face's image models

Each type that classifies images, or that AutoModel makes of images, tiny, random weights, float64 (1e-6; float32, 1e-3,
where its code cannot do float64); `python -m tests.models --vision`. *Whole* and *beside* are those of image
models, below, and so are *pixels* and *half*, an image half as wide that is padded, of {half} types.
`vit_mae` draws a number for each place of the batch: rows behind another row draw others. Types that take images of
one size have no padded ones. Where *half* differs, the table says why: give such a model one image at a time, or
batches of images of one size. *Helped* are types that take a `pixel_mask`, by which they scale positions: give it
beside the masked images, `x.get_mask()[:, 0].long()`. (Plain images go through batch norm in eval mode by its formula:
torch's own backward misreads gradients of transposed strides, in `cvt` for one.)""",
}
_POSITIONS = "it resizes its table of positions to the padded size"
_WINDOWS = "alone it pads its last windows with zeros, and attends to them"
#: Why a padded image is not what it is alone.
REASONS = {
    **dict.fromkeys(("dinov2", "dinov2_with_registers", "dpt", "pixio", "timesformer", "tipsv2_vision_model", "vitdet",
                     "yolos"), _POSITIONS),
    "dinov3_vit": "its positions go from -1 to 1 over the padded size",
    **dict.fromkeys(("donut-swin", "swin", "swinv2"), _WINDOWS),
}  # fmt: skip
COLUMNS = ("exact", "helped", "differs", "refused", "fails alone", "not built", "no mask", "one size")
Found = dict[str, dict[str, list[str]]]


def path(kind: str) -> Path:
    """Where what was found is kept."""
    return DOCS / f"models_{kind}.json"


def known(kind: str) -> Found:
    """What was found, by name and check."""
    found: Found = json.loads(path(kind).read_text()) if path(kind).exists() else {}
    return found


def known_types() -> Found:
    """What was found of the text models without a head."""
    found: Found = json.loads((DOCS / "models.json").read_text())
    return found


def keep(kind: str, found: Found) -> None:
    """Writes it down."""
    path(kind).write_text(json.dumps(dict(sorted(found.items())), indent=0) + "\n")


def section(kind: str) -> str:
    """The section on one kind: counts, the exact ones, and what was seen of the others."""
    found = known(kind)
    lines = [f"| | {' | '.join(COLUMNS)} |", "|---|" + "---:|" * len(COLUMNS)]
    for check in others.CHECKS[kind]:
        of: Counter[Any] = Counter(verdicts[check][0] for verdicts in found.values() if check in verdicts)
        lines.append(f"| {check} | {' | '.join(str(of[column]) for column in COLUMNS)} |")
    exact = [n for n, verdicts in found.items() if {verdicts[c][0] for c in ("whole", "beside")} == {"exact"}]
    said: dict[tuple[str, ...], list[str]] = {}  # the checks of which the same is to be said
    for name, verdicts in found.items():
        for check, (outcome, detail) in verdicts.items():
            if outcome not in ("exact", "no mask", "one size") or "rounding" in detail:
                why = f"; {REASONS[name]}" if check == "half" and name in REASONS else ""
                said.setdefault((name, outcome, detail.replace("`", "'").replace("|", "/") + why), []).append(check)
    rows = [f"| `{name}` | {', '.join(checks)} | {of}: {detail} |" for (name, of, detail), checks in said.items()]
    listed = f"*Whole* and *beside* exact: {', '.join(f'`{name}`' for name in exact)}."
    return "\n\n".join(
        [
            HEADS[kind].format(half=sum("half" in verdicts for verdicts in found.values())),
            "\n".join(lines),
            listed,
            "\n".join(["| | check | what was seen |", "|---|---|---|", *rows]),
        ]
    )

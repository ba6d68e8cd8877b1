"""The parts of the page on the time series and images of transformers."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

from . import others

DOCS = Path(__file__).parent.parent.parent / "docs"
HEADS = {
    "series": """## Time series

Each class of `transformers` that accepts a series, in a tiny size with random weights, in float64 (1e-6; float32 steps
are computed in float64); `python -m tests.models --series`.

- *Whole* and *beside* are the checks of [image models](#image-models), with the loss if there is one; the targets are
  masked like their series.
- *Past* is not required to be exact. The first third of two series is missing, and all outputs are compared with the
  model's own mask. *Helped* types need that mask in addition to the masked series. A linear map leaves out missing
  values, while the model reads a 0, before or after scaling.

TimesFM also reads its padding as a feature: pass `past_values_padding` with a masked series. In TimesFM 2.5, the
statistics of a series stay unknown once a whole patch is missing, and its states are valid but computed from the
padding flags alone: pass `filled(0)` and its padding. In eval mode, Autoformer mixes the rows of any batch, even a
plain one.""",
    "vision": """## Hugging Face's image models

Each type that classifies images, or that AutoModel builds for images, in a tiny size with random weights, in float64
(1e-6; float32 and 1e-3 if its code does not support float64); `python -m tests.models --vision`. *Whole*, *beside*,
*pixels* and *half* are the checks of [image models](#image-models); *half* ran for {half} types, since types that
accept only one image size cannot be padded. If *half* differs, the table says why: give such a model one image at a
time, or batches of images of one size. *Helped* types scale positions by a `pixel_mask`: pass
`x.get_mask()[:, 0].long()` with the masked images. `vit_mae` draws a random number for each position of the batch, so
the other rows change what a row draws. (In eval mode, batch norm of plain images uses its formula here: torch's own
backward pass misreads gradients with transposed strides, for example in `cvt`.)""",
}
_POSITIONS = "resizes its table of positions to the padded size"
_WINDOWS = "without padding, fills its last windows with zeros and attends to them"
#: Why a padded image is not what it is alone.
REASONS = {
    **dict.fromkeys(("dinov2", "dinov2_with_registers", "dpt", "pixio", "timesformer", "tipsv2_vision_model", "vitdet",
                     "yolos"), _POSITIONS),
    "dinov3_vit": "scales positions from -1 to 1 over the padded size",
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
    lines = [f"| check | {' | '.join(COLUMNS)} |", "|---|" + "---:|" * len(COLUMNS)]
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
            "\n".join(["| type | check | what was seen |", "|---|---|---|", *rows]),
        ]
    )

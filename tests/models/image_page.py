"""The part of the page that says what was found for image models, and the sweep that finds it."""

import json
import time
from collections import Counter
from importlib.metadata import version
from pathlib import Path
from typing import Any

from . import images

_WINDOWS = "without padding, fills its last windows with zeros and attends to them"
_RESIZED = "resizes its table of positions to the padded size"
_SCALED = "scales positions from 0 to 1 over the padded size"
#: Why a padded image is not what it is alone.
REASONS = {
    "crossvit": "resizes the padded image to the sizes of its branches",
    "mobilenetv5": "resizes maps from the padded size",
    "mvitv2": "counts relative positions from the end of the padded map",
    "nextvit": "pools pieces of the flattened map, whose length is the padded one",
    "vgg": "resizes maps smaller than 7 by 7, by the padded size",
    **dict.fromkeys(("davit", "efficientvit_msra", "tiny_vit", "twins", "vision_transformer_sam"), _WINDOWS),
    **dict.fromkeys(("hieradet_sam2", "naflexvit", "qwen3_vit", "vision_transformer"), _RESIZED),
    **dict.fromkeys(("edgenext", "xcit"), _SCALED),
}

FOUND = Path(__file__).parent.parent.parent / "docs" / "models_timm.json"
HEAD = """## Image models

timm {version}, with a small model of each of its {count} modules, random weights, float64 (1e-6);
`python -m tests.models --timm`. Five checks were run:

- *Whole*: fully valid images against plain ones, in eval and train mode: outputs, all parameter gradients, statistics
  of batch norms.
- *Beside*: images next to a fully masked one against the batch without it, including gradients.
- *Pixels*: a third of the pixels is missing, under `meaning(convolution="any", renormalize=True)`. No result depends on
  masked-out data, and gradients are finite.
- *Padded*: an image padded on the right and at the bottom against the smaller image alone; scores only.
- *Half*: an image half as wide, padded, with gradients.

The last two are not required to be exact. If they differ, the table says why: give such a model one image at a time, or
batches of images of one size.

| check | exact | differs | refused | one size only, or maps | not built |
|---|---:|---:|---:|---:|---:|
{rows}

For fully masked images, {valid} models still return a valid output, which comes from a token of their own (class,
register, positions). *Rounding becomes*: how much gradients in train mode change if the images change by one part in
1e15. If ten times this number is above 1e-6, it is the tolerance.

{rest}
"""


def sweep(names: list[str], seconds: float, again: bool) -> None:
    """Judges the modules that are not known yet, and keeps what it finds."""
    found = known()
    end = time.monotonic() + seconds
    for module in names or images.modules():
        if time.monotonic() > end:
            return
        before = {} if again else {k: v for k, v in found.get(module, {}).items() if k in images.CHECKS}
        missing = [check for check in images.CHECKS if check not in before]
        if missing:
            found[module] = before | {check: [v.outcome, v.detail] for check, v in images.verdicts(module, missing)}
            kept = {"timm": version("timm"), "modules": dict(sorted(found.items()))}
            FOUND.write_text(json.dumps(kept, indent=0) + "\n")
            print(f"{module:28} {'; '.join(' '.join(v).strip() for v in found[module].values())}", flush=True)


def known() -> dict[str, dict[str, Any]]:
    """What was found, by module and check."""
    found: dict[str, dict[str, Any]] = json.loads(FOUND.read_text())["modules"] if FOUND.exists() else {}
    return found


def section() -> str:
    """The section on image models."""
    found, installed = known(), json.loads(FOUND.read_text())["timm"]
    rows = []
    for check in images.CHECKS:
        of = Counter(verdicts[check][0] for verdicts in found.values() if check in verdicts)
        columns = (of["exact"], of["differs"], of["refused"], of["one size"] + of["maps"], of["not built"])
        rows.append(f"| {check} | {' | '.join(map(str, columns))} |")
    valid = sum("valid" in verdicts["beside"][1] for verdicts in found.values())
    said = [
        f"| `{module}` | `{images.MODELS.get(module, '')}` | {check} | {_seen(outcome, detail, module, check)} |"
        for module, verdicts in found.items()
        for check, (outcome, detail) in verdicts.items()
        if outcome not in ("exact", "one size", "maps") or "rounding" in detail
    ]
    rest = "\n".join(["| module | model | check | what was seen |", "|---|---|---|---|", *said])
    return HEAD.format(version=installed, count=len(found), rows="\n".join(rows), valid=valid, rest=rest)


def _seen(outcome: str, detail: str, module: str, check: str) -> str:
    why = REASONS.get(module, "") if check in ("padded", "half") else ""
    return "; ".join(filter(None, [", ".join(filter(None, [outcome, detail])), why]))

"""``python -m tests.libraries --images [names]``: what more is asked of every class that is given images.

*Half*: an image half as wide, padded, is what it is alone and cropped.  *Pixels*: a third of the pixels is missing, and
nothing depends on what lies under the mask.  Both are those of ``tests.models.image_checks``.  What is not so is named
in ``DECLARED``.
"""

from collections import Counter
from contextlib import nullcontext, suppress
from typing import Any

import torch
from torch import Tensor, nn

import masked_tensor as mt

from ..models import image_checks
from ..models.images import _without_extension
from ..models.judge import Verdict, short
from ._case import Case, Images
from ._run import Scaled, cases, files, within

CHECKS = ("half", "pixels")
_POSITIONS = "cuts its table of positions to the padded number of patches, counted through all rows of the image"
_REGIONS = "pools into 2, 3 and 6 regions of the padded size"
_CORNERS = "resizes with `align_corners=True`, by the padded size"
#: Why a padded image is not what it is alone, by file and case.  The way round is on the page.
DECLARED = {
    "diffusers:DiTTransformer2DModel": "accepts only square images, and reads half of one as two",
    "kornia:SpatialSoftArgmax2d": "scales coordinates from -1 to 1 over the padded width",
    "kornia:resize": "resizes from the padded size",
    "kornia:rotate": "rotates about the middle of the padded image",
    "segmentation_models_pytorch:DeepLabV3": _CORNERS,
    "segmentation_models_pytorch:DeepLabV3Plus": _CORNERS,
    "segmentation_models_pytorch:FPN": _CORNERS,
    "segmentation_models_pytorch:MAnet": "its attention views positions as channels, in the order of the padded batch",
    "segmentation_models_pytorch:PSPNet": _REGIONS,
    "segmentation_models_pytorch:UPerNet": _REGIONS,
    "torchvision:SwinTransformer": "without padding, fills its windows with zeros and attends to them",
    **dict.fromkeys((f"vit_pytorch:{name}" for name in ("CaiT", "DeepViT", "ViT", "ViT (mean)", "ViT (parallel)",
                                                        "ViT (small datasets)")), _POSITIONS),
}  # fmt: skip


HEAD = """## Padded images and missing pixels

{classes} classes above accept images (`python -m tests.libraries --images [NAME]`). Above, all of them run on a batch
with one fully masked image. They also run in two more ways; so do [models](models.md) of Hugging Face and timm:

- *Half*: an image half as wide as the batch, with NaN in its padding, against the same image alone and cropped. The
  comparison covers the valid outputs, in order, and the gradient of every parameter.
- *Pixels*: a third of the pixels is missing, under `meaning(convolution="any", renormalize=True)`. Values, masks and
  gradients are the same for NaN and for 1e30 under the mask ({pixels} of {classes}).

| result of *half* | classes | which |
|---|---:|---|
| exact | {exact} | |
| exact, with a context | {helped} | {which_help} |
| accepts only one image size | {one_size} | {which_one} |
| differs, because of the padded size | {declared} | below |

| class | why a padded image differs from the image alone |
|---|---|
{reasons}

Instead, run one image at a time, `[model(image[None]) for image in images]`, or batches of images of one size.
"""


class _OfImages(nn.Module):
    """A class as a function of images alone, with what else it is given."""

    def __init__(self, case: Case, others: list[Tensor]) -> None:
        super().__init__()
        self.inner, self.others = Scaled(case, 1 + len(others)), others

    def forward(self, x: Tensor) -> Tensor:
        """The first floating tensor of the result."""
        with within(self.inner.case.within) if mt.is_masked_tensor(x) else nullcontext():
            return self.inner(x, *(other[: len(x)] for other in self.others))  # type: ignore[no-any-return]


def of_images(name: str) -> list[Case]:
    """The cases of a file that are given images."""
    return [case for case in cases(name).CASES if isinstance(case.given, Images)]


def wrong(file: str, case: str, found: dict[str, list[str]]) -> str:
    """What is neither as it should be nor declared; nothing if all is."""
    half, pixels = found["half"], found["pixels"]
    if pixels[0] != "exact":
        return f"pixels: {' '.join(pixels)}"
    declared = f"{file}:{case}" in DECLARED
    return f"half: {' '.join(half)}" if declared == (half[0] in ("exact", "helped", "one size")) else ""


def verdicts(case: Case) -> dict[str, list[str]]:
    """What each check says of one class."""
    assert isinstance(case.given, Images)
    with suppress(ImportError):  # torchvision need not be there
        _without_extension()
    found = {}
    for check in CHECKS:
        try:
            torch.manual_seed(0)
            x, *others = case.given.drawn()
            said = getattr(image_checks, check)(_OfImages(case, others), x)
        except Exception as error:
            said = Verdict("refused", short(error))
        found[check] = [said.outcome, said.detail]
    return found


def section(found: dict[str, dict[str, Any]]) -> str:
    """The part of the page on images."""
    rows = {(name, case): said for name, of in found.items() for case, said in of.get("images", {}).items()}
    counts = Counter(said["half"][0] for said in rows.values())
    helped = [
        f"`{case}` ({name}): `{said['half'][1]}`" for (name, case), said in rows.items() if "helped" in said["half"]
    ]
    one = [f"`{case}` ({name})" for (name, case), said in rows.items() if "one size" in said["half"]]
    reasons: dict[str, list[str]] = {}
    for (name, case), said in rows.items():
        if said["half"][0] not in ("exact", "helped", "one size"):
            reasons.setdefault(DECLARED.get(f"{name}:{case}", "unknown"), []).append(f"`{case}` ({name})")
    return HEAD.format(
        classes=len(rows),
        **{k.replace(" ", "_"): counts[k] for k in ("exact", "helped", "one size")},
        declared=sum(map(len, reasons.values())),
        pixels=sum(said["pixels"][0] == "exact" for said in rows.values()),
        which_help="; ".join(helped),
        which_one=", ".join(one),
        reasons="\n".join(f"| {', '.join(names)} | {reason} |" for reason, names in reasons.items()),
    )


def names() -> list[str]:
    """The files that have such cases."""
    return [name for name in files() if of_images(name)]

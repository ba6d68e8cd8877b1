"""The time series and images of transformers: each model with a batch that is all valid, and beside masked entries.

The checks *whole* and *beside* are those of image models (``image_checks.py``).  *Past* is no law: series whose
first third is missing, against the mask that the model itself takes for it.
"""

import inspect
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext, suppress
from typing import Any
from unittest import mock

import torch
from torch import Tensor, nn

import masked_tensor as mt

from . import image_checks, images, text
from .judge import Inputs, Verdict, short, takes

CLASSES = """
    PatchTSTModel PatchTSTForPrediction PatchTSMixerModel PatchTSMixerForPrediction
    TimeSeriesTransformerModel TimeSeriesTransformerForPrediction InformerModel InformerForPrediction
    AutoformerModel AutoformerForPrediction TimesFmModel TimesFmModelForPrediction
    TimesFm2_5Model TimesFm2_5ModelForPrediction
"""
SERIES = CLASSES.split()
CHECKS = {"series": ("whole", "beside", "past"), "vision": ("whole", "beside", "pixels", "half")}
OWN = ("past_observed_mask", "observed_mask", "past_values_padding")  # the names of a model's own mask


def names(kind: str) -> list[str]:
    """The classes of time series, or the image types of the installed transformers."""
    from transformers.models.auto import modeling_auto as auto

    found = {*auto.MODEL_FOR_IMAGE_CLASSIFICATION_MAPPING_NAMES, *auto.MODEL_FOR_IMAGE_MAPPING_NAMES}
    return SERIES if kind == "series" else sorted(found)


class Called(nn.Module):
    """A model as a function of one tensor: every tensor that it gives, a loss once for each row."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model
        self.tells = False  # gives the model the mask that it takes, beside masked images

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        """All floating outputs; ``x`` is the series or the images."""
        off = {"use_cache": False, "return_loss": False}
        options: dict[str, Any] = {k: v for k, v in off.items() if takes(self.model, k)}
        if self.tells and mt.is_masked_tensor(x):
            options["pixel_mask"] = x.get_mask()[:, 0].long()
        with _in_double(x.dtype):
            given = self.model(**inputs(self.model, x), **options)
        found = [y for y in _tensors(given.to_tuple()) if y.is_floating_point()]
        found = [y for y in found if y.dim() == 0 or len(y) == len(x)]  # not the points of queries
        return tuple(y.expand(len(x)) if y.dim() == 0 else y for y in found)


def _in_double(dtype: torch.dtype) -> AbstractContextManager[Any]:
    """Steps that a model in float64 would make in float32 (``x.float()``) are made in float64."""
    return mock.patch.object(Tensor, "float", Tensor.double) if dtype == torch.float64 else nullcontext()


def _tensors(given: Any) -> Iterator[Tensor]:
    for y in given:
        if isinstance(y, Tensor):
            yield y
        elif isinstance(y, tuple | list):
            yield from _tensors(y)


def inputs(model: nn.Module, x: Tensor) -> dict[str, Any]:
    """What the model takes; what it is to predict is the end of the series, with the same mask."""
    dtype = next(model.parameters()).dtype
    config, takes = model.config, inspect.signature(model.forward).parameters
    if "pixel_values" in takes:
        return {"pixel_values": x}
    if config.model_type.startswith("timesfm"):
        frequency = {"freq": torch.zeros(len(x), 1, dtype=torch.int64)} if "freq" in takes else {}
        if "past_values_padding" not in takes:  # it takes a list, and pads by itself
            return {"past_values": list(x)} | {k: [0] * len(x) for k in frequency}
        return {"past_values": x, "past_values_padding": torch.zeros(x.shape, dtype=dtype)} | frequency
    end = x.shape[1] - config.prediction_length
    future = {"future_values": x[:, end:]} if "future_values" in takes else {}
    clock = torch.linspace(-1, 1, x.shape[1], dtype=dtype)[None, :, None].expand(len(x), -1, -1)
    unknown = {"past_observed_mask": None} if "past_observed_mask" in takes else {}  # of some models it has no default
    clocks = {"past_time_features": clock[:, :end], "future_time_features": clock[:, end:]}
    return {"past_values": x[:, :end]} | future | unknown | {k: v for k, v in clocks.items() if k in takes}


def _shape(model: nn.Module) -> list[int]:
    """Of one row."""
    config = model.config
    if "pixel_values" in inspect.signature(model.forward).parameters:
        config = getattr(config, "vision_config", None) or config
        size = getattr(config, "image_size", None) or 96
        size = list(size) if isinstance(size, list | tuple) else [size, size]
        frames = [config.num_frames] if getattr(config, "num_frames", None) else []
        return [*frames, getattr(config, "num_channels", 3), *size]
    if config.model_type.startswith("timesfm"):
        return [config.context_length]
    channels = getattr(config, "num_input_channels", None) or config.input_size
    past = config.context_length + max(getattr(config, "lags_sequence", [0]))
    return [past + config.prediction_length, *([channels] if channels > 1 else [])]


def _drawn(model: nn.Module, rows: int, dtype: torch.dtype) -> Tensor:
    return torch.randn(rows, *_shape(model), generator=torch.Generator().manual_seed(0)).to(dtype)


def build(name: str, dtype: torch.dtype = torch.float64) -> nn.Module:
    """The tiny model of a class, or of a type: the one that classifies images if there is one."""
    with suppress(ImportError):  # torchvision need not be there
        images._without_extension()
    import transformers
    from transformers.models.auto import modeling_auto as auto

    found = {**auto.MODEL_FOR_IMAGE_MAPPING_NAMES, **auto.MODEL_FOR_IMAGE_CLASSIFICATION_MAPPING_NAMES}.get(name, name)
    head = getattr(transformers, found if isinstance(found, str) else found[0])

    def given(model: nn.Module, _: float) -> tuple[list[Inputs], Inputs]:
        return [inputs(model, _drawn(model, 1, dtype))], {}

    with _in_double(dtype):
        return Called(text.build(head.config_class.model_type, "default", dtype, head, given)).eval()


def verdicts(name: str, kind: str, checks: Iterable[str]) -> dict[str, list[str]]:
    """What these checks say of one model; where its own code cannot do float64, in float32."""
    for dtype in (torch.float64, torch.float32):
        try:
            model = build(name, dtype)
            x = _drawn(model.model, 3, dtype)
        except Exception as error:
            return {check: ["not built", short(error)] for check in checks}
        try:
            with torch.no_grad():
                finite = all(y.isfinite().all() for y in image_checks.outputs(model, x))
            said = "" if finite else "what is not finite"
        except Exception as error:
            said = short(error)
        if not said:
            return {check: _said(check, model, x) for check in checks}
    return {check: ["fails alone", said] for check in checks}


def _said(check: str, model: Any, x: Tensor) -> list[str]:
    try:
        said = past(model, x) if check == "past" else getattr(image_checks, check)(model, x)
        if check == "half" and said.outcome == "differs" and takes(model.model, "pixel_mask"):
            model.tells = True
            said = image_checks.half(model, x)
            model.tells = False
            said = Verdict("helped", "its own `pixel_mask`") if said.outcome == "exact" else said
        if check == "beside" and said.outcome == "differs" and not _rows_alone(model, x):
            said = Verdict("fails alone", "each row of a plain batch depends on the others")
    except Exception as error:
        said = Verdict("refused", short(error))
    return [said.outcome, said.detail]


def _rows_alone(model: nn.Module, x: Tensor) -> bool:
    """Whether a plain batch gives the same with another plain row in it."""
    with torch.no_grad():
        found = []
        for rows in ([0, 1, 2], [0, 1, 1, 2]):
            torch.manual_seed(1)
            found.append([y[[0, 1, -1]] for y in image_checks.outputs(model.eval(), x[rows])])
    far = [image_checks._distance(y, z) for y, z in zip(*found, strict=True) if y.dim() > 1]  # without what is a loss
    return max(far) <= image_checks._limit(model)


def past(model: nn.Module, x: Tensor) -> Verdict:
    """Series whose first third is missing, against the mask that the model takes for it, and together with that."""
    own = next((k for k in OWN if k in inspect.signature(model.model.forward).parameters), None)
    if own is None:
        return Verdict("no mask")
    mask = torch.ones(x.shape, dtype=torch.bool)
    mask[1:, : x.shape[1] // 3] = False
    seen = inputs(model.model, mask)["past_values"]
    told = {own: (~seen if "padding" in own else seen).to(x.dtype)}
    masked = inputs(model.model, mt.as_masked_tensor(x.masked_fill(~mask, torch.nan), mask))
    expected = _outputs(model, inputs(model.model, x.masked_fill(~mask, 0)) | told)
    for outcome, given in {"exact": masked, "helped": masked | told}.items():
        off = _off(_outputs(model, given), expected)
        if not off:
            return Verdict(outcome, "" if outcome == "exact" else f"with `{own}`")
    return Verdict("differs", ", ".join(off))


def _outputs(model: nn.Module, given: dict[str, Any]) -> dict[str, Tensor]:
    torch.manual_seed(1)
    with torch.no_grad(), _in_double(next(model.parameters()).dtype):
        found = model.model(**given)
    return {f"{k}[{i}]" if i else k: y for k, of in found.items() for i, y in enumerate(_tensors((of,)))}


def _off(found: dict[str, Tensor], expected: dict[str, Tensor]) -> list[str]:
    """Each output that is not as expected, or not valid everywhere, and by how much what is valid is off."""
    said = []
    for name, y in found.items():
        mask = _mask(y)
        far = image_checks._distance(y.filled(0) if mt.is_masked_tensor(y) else y, expected[name] * mask)
        if not (far <= image_checks.LIMIT and mask.all()):
            part = f" ({100 * mask.double().mean():.0f} % of it valid)" * (not mask.all())
            said.append(f"{name} by {far:.0e}{part}")
    return said


def _mask(y: Tensor) -> Tensor:
    return y.get_mask() if mt.is_masked_tensor(y) else torch.ones(y.shape, dtype=torch.bool)

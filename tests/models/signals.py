"""The models of transformers that take signals: waves, spectrograms and time series, of different lengths."""

import inspect
from typing import Any

import torch
from torch import Tensor, nn

from .judge import Inputs, Verdict, padded, rows_of_ids, takes
from .text import model_class, verdict

MAIN = ("input_values", "input_features")
WAVES = (4000, 2400, 3300)  # for feature extractors that make a frame of 320 samples
FRAMES = (48, 28, 40)


def types() -> list[str]:
    """The model types of the installed transformers whose model takes a wave or the frames of a spectrogram."""
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING

    return [name for name in CONFIG_MAPPING if main_input(name) in MAIN]


def main_input(name: str) -> str | None:
    try:
        found = model_class(name)
        inspect.signature(found.forward)
    except (AttributeError, ImportError, TypeError):  # no model, or of a package that is not installed
        return None
    main: str = found.main_input_name
    return main


def found(name: str, variant: str, packed: bool = False) -> Verdict:
    """What becomes of one type: of the forms that its input may have, the first in which it runs alone."""
    said = [
        verdict(name, variant, torch.nan, packed, lambda model, garbage, form=form: given(model, garbage, form))
        for form in FORMS[main_input(name) or ""]
    ]
    return next((v for v in said if v.outcome not in ("fails alone", "not built")), said[0])


# (lengths, the dimension of time, the shape of a row: None is time, a word the number of channels)
FORMS: dict[str, list[tuple[tuple[int, ...], int, tuple[Any, ...]]]] = {
    "input_values": [(WAVES, 1, (1, None)), (WAVES, 2, (1, 1, None)), (FRAMES, 1, (1, None, "bins"))],
    "input_features": [(FRAMES, 1, (1, None, "bins")), (FRAMES, 2, (1, "bins", None))],
}
BINS = ("num_mel_bins", "input_feat_per_channel", "num_mel_channels", "feature_size", "feature_projection_input_dim",
        "input_feat_size", "input_dim", "hidden_size")  # fmt: skip


def given(model: nn.Module, garbage: float, form: tuple[tuple[int, ...], int, tuple[Any, ...]]) -> Any:
    lengths, dim, shape = form
    dtype = next(p.dtype for p in model.parameters() if p.is_floating_point())
    generator = torch.Generator().manual_seed(0)
    values = [torch.randn(_sized(model, shape, n), generator=generator).to(dtype) for n in lengths]
    name: str = model.main_input_name
    rows: list[dict[str, Tensor]] = [{name: x} for x in values]
    batch: Inputs = {name: padded(values, garbage, dim)}
    if takes(model, "decoder_input_ids"):
        targets = rows_of_ids(min(99, model.config.vocab_size), seed=1, lengths=(6, 9, 4))
        rows = [row | {"decoder_input_ids": target} for row, target in zip(rows, targets, strict=True)]
        batch["decoder_input_ids"] = padded(targets, -100)
    return rows, batch


def _sized(model: nn.Module, shape: tuple[Any, ...], length: int) -> list[int]:
    bins = next(
        (getattr(model.config, name) for name in BINS if isinstance(getattr(model.config, name, None), int)), 16
    )
    return [length if n is None else bins if n == "bins" else n for n in shape]

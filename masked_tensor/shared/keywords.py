"""Hints for a keyword that a function does not have: names of other libraries, and misspelled ones."""

from collections.abc import Iterable, Sequence
from difflib import get_close_matches

#: For a name of another library, what it is called here: the first that the function has.
NAMES: dict[str, tuple[str, ...]] = {
    # numpy and scipy
    "ddof": ("correction",),
    "axis": ("dim",),
    "keepdims": ("keepdim",),
    "where": ("mask",),
    "method": ("interpolation",),
    # pandas and polars
    "min_periods": ("min_count",),
    "min_count": ("min_periods",),
    "min_samples": ("min_periods",),
    "window_size": ("window",),
    "win": ("window",),
    "n": ("periods",),
    "columns": ("names",),
    "fill_value": ("value", "padding_value"),
    "interpolation": ("method",),
    # torch, transformers
    "epsilon": ("eps",),
    "weight": ("weights",),
    "weights": ("weight",),
    "sample_weight": ("weight", "weights"),
    "mask": ("key_mask",),
    "valid": ("mask",),
    "attention_mask": ("mask", "key_mask"),
    "pad_value": ("padding_value",),
    "side": ("padding_side",),
    "padding": ("padding_side",),
    "max_length": ("length",),
    "total_length": ("length",),
    "seq_lengths": ("lengths",),
    "seq_lens": ("lengths",),
    "max_tokens": ("capacity",),
}
_SKIPPED = "masked entries are always skipped; masked_invalid(x) masks NaN"
#: What has no name here.
TEXTS: dict[str, str] = {
    "skipna": _SKIPPED,
    "skip_nulls": _SKIPPED,
    "ignore_nulls": _SKIPPED,
    "nan_policy": _SKIPPED,
    "ignore_index": "masked targets do not count: masked_equal(target, ignore_index) masks them",
    "max_gap": "limit= fills at most so many steps of each gap, interpolate(max_gap=) short gaps alone",
    "inplace": "the result is a new tensor",
}
_PADDING = ("key_padding_mask", "src_key_padding_mask", "padding_mask")


def hint(keyword: str, has: Sequence[str]) -> str:
    """What to write instead of ``keyword`` in a call of a function that ``has`` those; "" if that is not known."""
    if keyword in _PADDING and (mask := _first(("key_mask", "mask"), has)):
        return f"it is True at padding, and a mask here is True where an entry is valid: use {mask}=~{keyword}"
    if found := _first(NAMES.get(keyword, ()), has):
        return f"use {found}="
    if keyword in TEXTS:
        return TEXTS[keyword]
    close = get_close_matches(keyword, has, 1)
    return f"did you mean {close[0]}=?" if close else ""


def _first(names: Iterable[str], has: Sequence[str]) -> str | None:
    return next((name for name in names if name in has), None)

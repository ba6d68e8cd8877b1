"""What a module is told beside flat tokens, of positions, caches and labels."""

from typing import Any

from . import transformers


def with_what_it_wants(told: tuple[int | None, bool, bool], kwargs: dict[str, Any], position_ids: Any) -> Any:
    """The arguments with positions, without a cache, and with no label that the last token would predict."""
    first, cache, shifted = told
    kwargs = dict(kwargs)
    if first is not None:
        kwargs["position_ids"] = position_ids + first
    if cache:
        kwargs["use_cache"] = False
    if shifted and kwargs.get("labels") is not None:
        kwargs["labels"] = transformers.without_prediction_over_borders(kwargs["labels"], position_ids)
    return kwargs

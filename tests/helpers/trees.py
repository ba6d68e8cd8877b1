"""Nested lists, tuples and dicts of arguments and results: what torch's pytree does, at a tenth of its time."""

from collections.abc import Callable
from typing import Any


def _children(tree: Any) -> list[Any] | None:
    """What a container holds; None for a leaf (a ``torch.Size`` is one, as in torch)."""
    kind = type(tree)
    if kind is tuple or kind is list:
        return list(tree)
    if issubclass(kind, dict):
        return list(tree.values())
    if issubclass(kind, tuple) and (hasattr(kind, "_fields") or hasattr(kind, "n_fields")):  # named, or of torch
        return list(tree)
    return None


def _same_kind(tree: Any, children: list[Any]) -> Any:
    kind = type(tree)
    if issubclass(kind, dict):
        return kind(zip(tree, children, strict=True))
    return kind(*children) if hasattr(kind, "_fields") else kind(children)


def tree_map(function: Callable[[Any], Any], tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> Any:
    children = None if is_leaf and is_leaf(tree) else _children(tree)
    if children is None:
        return function(tree)
    return _same_kind(tree, [tree_map(function, child, is_leaf) for child in children])


def tree_leaves(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> list[Any]:
    children = None if is_leaf and is_leaf(tree) else _children(tree)
    if children is None:
        return [tree]
    return [leaf for child in children for leaf in tree_leaves(child, is_leaf)]

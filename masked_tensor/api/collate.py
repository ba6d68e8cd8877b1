"""A loader's batch of samples of different length."""

from collections.abc import Mapping, Sequence
from typing import Any

from torch import Tensor
from torch.utils.data import default_collate

from ..engine.boundary.enter_leave import leave
from ..pair import Pair
from . import accepted_inputs, lists, ragged
from .create import as_result
from .packing import pack_list
from .packing import packed as pack


def collate(batch: Sequence[Any], *, dim: int | None = None, padding_side: str = "right", packed: bool = False) -> Any:
    """``torch.utils.data.default_collate`` for samples of different length: what is too short is padded with holes.

    Samples are tensors, arrays, numbers, lists of numbers, or dicts, tuples and lists of these, nested as one likes.
    Arrays of one dimension or more always become masked tensors ``(B, ...)``, each dimension as long as the longest;
    scalars become a plain tensor, with a hole for None a masked one; texts stay a list.  ``dim`` names the only
    dimension of a sample that may differ; ``padding_side="left"`` puts the padding first:
    ``DataLoader(..., collate_fn=partial(mt.collate, padding_side="left"))``.  ``packed``: stored without the padding
    (:func:`masked_tensor.packed`), which is never made where only the first dimension of samples differs.

    Raises ValueError for an empty batch, for samples that differ along another dimension than ``dim``, and for dicts
    with different keys.

        >>> collate([{"x": torch.ones(2), "y": 1}, {"x": torch.ones(1), "y": 0}])
        {'x': masked_tensor([[1.0000, 1.0000],
                       [1.0000,     --]], valid=3/4), 'y': tensor([1, 0])}
    """
    if not len(batch):
        raise ValueError("collate needs at least one sample")
    first = batch[0]
    if isinstance(first, Mapping):
        if any(set(sample) != set(first) for sample in batch):
            raise ValueError(f"collate: every sample must have the keys {sorted(map(str, first))} of the first")
        return {
            key: collate([sample[key] for sample in batch], dim=dim, padding_side=padding_side, packed=packed)
            for key in first
        }
    if isinstance(first, tuple) or (isinstance(first, list) and not lists.of_numbers(batch)):
        fields = [
            collate(field, dim=dim, padding_side=padding_side, packed=packed) for field in zip(*batch, strict=True)
        ]
        if hasattr(first, "_fields"):
            return type(first)(*fields)
        return type(first)(fields)
    if isinstance(first, Tensor | list) or lists.is_array(first):
        return _make_batch(
            [accepted_inputs.pair_of_input(sample) for sample in batch], batch, dim, padding_side, packed
        )
    if any(lists.is_missing(sample) for sample in batch):
        return as_result(accepted_inputs.pair_of_input(list(batch)))
    return default_collate(list(batch))


def _make_batch(pairs: Sequence[Pair], batch: Sequence[Any], dim: int | None, side: str, packed: bool) -> Tensor:
    whole = all(isinstance(sample, Tensor) and not accepted_inputs.has_validity(sample) for sample in batch)
    if dim is not None and pairs[0].data.dim():
        ragged.expect_one("collate", pairs, dim)
    ragged.check_side(side)
    shapes = [p.data.shape for p in pairs]
    if packed and whole and all(shapes) and len({s[1:] for s in shapes}) == 1 and any(s.numel() for s in shapes):
        made: Tensor = leave(pack_list([p.data for p in pairs], side, 0, 1))
        return made
    pair = ragged.pad_and_stack(pairs, side, whole=whole)
    if whole and pair.data.dim() == 1:
        return pair.data
    return pack(as_result(pair)) if packed and pair.data.dim() > 1 else as_result(pair)

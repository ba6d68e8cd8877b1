"""A loader's batch of samples of different length."""

from collections.abc import Mapping, Sequence
from typing import Any

from torch import Tensor
from torch.utils.data import default_collate

from ...engine.boundary.enter_leave import leave
from ...pair import Pair
from ...shared.names import names_arguments
from ...shared.rows.lengths import check_side, padded_length
from ..batches.packing import expect_capacity, pack_list
from ..batches.packing import packed as pack
from ..make.create import as_result, warn_of_nan
from . import accepted_inputs, lists, ragged


@names_arguments
def collate(
    batch: Sequence[Any],
    *,
    dim: int | None = None,
    padding_side: str = "right",
    packed: bool = False,
    length: int | Mapping[Any, int] | None = None,
    pad_to_multiple_of: int | Mapping[Any, int] | None = None,
    capacity: int | Mapping[Any, int] | None = None,
) -> Any:
    """A batch for a ``DataLoader``: samples of different length are padded, and the padding is masked.

    Samples are tensors, arrays, numbers, lists of numbers, or dicts, tuples and lists of these, nested as one likes.
    Arrays of one dimension or more always become masked tensors ``(B, ...)``, each dimension as long as the longest.
    Scalars become a plain tensor, or a masked one if one is None. Texts stay a list.

    Give a DataLoader other arguments by ``collate_fn=partial(mt.collate, padding_side="left")``.

    Args:
        batch (list): The samples.
        dim (int, optional): The only dimension of a sample that may differ; by default any may.
        padding_side (str, optional): ``"right"`` or ``"left"``: where the padding goes.
        packed (bool, optional): Store batches without padding, as :func:`packed` does. The padding is never made where
            only the first dimension of samples differs.
        length (int or dict, optional): How long dimension ``dim`` of all samples becomes, by default the first: the
            batch has ``T = length``, for code that is compiled for one shape. A dict says it for each key of the
            samples; those that it does not name are as long as their longest.
        pad_to_multiple_of (int or dict, optional): Round that length up to a multiple of this.
        capacity (int or dict, optional): Store exactly this many steps of a batch of two dimensions or more, however
            many are valid, as :func:`packed` does with ``capacity``.

    Returns:
        Any: A batch, built as the samples are.

    Raises:
        TypeError: ``batch`` is not a sequence, or a sample is of a kind that ``default_collate`` does not know either,
            or ``length`` or ``capacity`` is not an int, or a dict where samples are none.
        ValueError: ``batch`` is empty, samples differ along another dimension than ``dim``, dicts have different keys,
            ``padding_side`` is not one of the allowed values, a sample is longer than ``length``, or both ``length``
            and ``pad_to_multiple_of`` are given; ``capacity`` is below 1, or more steps are valid.
        RuntimeError: a sparse tensor breaks the rules of its layout. More steps are valid than ``capacity``, on a GPU.
        UnsupportedOpError: ``packed=True`` in compiled code.

    Example:
        >>> mt.collate([{"x": torch.ones(2), "y": 1}, {"x": torch.ones(1), "y": 0}])
        {'x': masked_tensor([[1.0000, 1.0000],
                       [1.0000,     --]], valid=3/4), 'y': tensor([1, 0])}

    References:
        ``torch.utils.data.default_collate``.
    """
    if not len(batch):
        raise ValueError("collate needs at least one sample")
    first = batch[0]
    options: dict[str, Any] = {"dim": dim, "padding_side": padding_side, "packed": packed}
    sizes: dict[str, Any] = {"length": length, "pad_to_multiple_of": pad_to_multiple_of, "capacity": capacity}
    if isinstance(first, Mapping):
        if any(set(sample) != set(first) for sample in batch):
            raise ValueError(f"collate: every sample must have the keys {sorted(map(str, first))} of the first")
        of_key = [{k: n.get(key) if isinstance(n, Mapping) else n for k, n in sizes.items()} for key in first]
        return {
            key: _collate_key(key, [sample[key] for sample in batch], **options, **n)
            for key, n in zip(first, of_key, strict=True)
        }
    if isinstance(first, tuple) or (isinstance(first, list) and not lists.of_numbers(batch)):
        fields = [collate(field, **options, **sizes) for field in zip(*batch, strict=True)]
        if hasattr(first, "_fields"):
            return type(first)(*fields)
        return type(first)(fields)
    if isinstance(first, Tensor | list) or lists.is_array(first):
        pairs = [accepted_inputs.pair_of_input(sample) for sample in batch]
        for sample, pair in zip(batch, pairs, strict=True):
            warn_of_nan(sample, pair)
        time = 0 if dim is None or not pairs[0].data.dim() else dim % pairs[0].data.dim()
        if dim is not None and pairs[0].data.dim():
            ragged.expect_one("collate", pairs, dim)
        longest = max((p.data.shape[time] for p in pairs if p.data.dim() > time), default=0)
        steps = padded_length("collate", longest, sizes["length"], sizes["pad_to_multiple_of"])
        if capacity is not None:
            capacity = expect_capacity("collate", capacity)
            made: Any = _make_batch(pairs, batch, time, padding_side, False, steps)
            return made if made.dim() == 1 else pack(made, (0, time + 1), capacity=capacity)
        return _make_batch(pairs, batch, time, padding_side, packed, steps)
    if any(lists.is_missing(sample) for sample in batch):
        return as_result(accepted_inputs.pair_of_input(list(batch)))
    return default_collate(list(batch))


def _collate_key(key: object, samples: Sequence[Any], **options: Any) -> Any:
    """:func:`collate` of what the samples have under ``key``, which its errors name."""
    try:
        return collate(samples, **options)
    except (TypeError, ValueError, RuntimeError) as reason:
        text = f"key {key!r} of the samples: {reason}"
        try:
            named = type(reason)(text)
        except TypeError:  # a class whose errors are made of something else than a text
            named = next(kind for kind in (TypeError, ValueError, RuntimeError) if isinstance(reason, kind))(text)
        raise named from reason


def _make_batch(pairs: Sequence[Pair], batch: Sequence[Any], time: int, side: str, packed: bool, length: int) -> Tensor:
    whole = all(isinstance(sample, Tensor) and not accepted_inputs.has_validity(sample) for sample in batch)
    check_side(side)
    shapes = [p.data.shape for p in pairs]
    if packed and all(shapes) and not time and len({s[1:] for s in shapes}) == 1 and any(s.numel() for s in shapes):
        made: Tensor = leave(pack_list(pairs, side, 0, 1, whole, length))
        return made
    pair = ragged.pad_and_stack(pairs, side, whole=whole, wanted=(time, length) if shapes[0] else None)
    if whole and pair.data.dim() == 1:
        return pair.data
    if not packed or pair.data.dim() == 1:
        return as_result(pair)
    return pack(as_result(pair), (0, time + 1), lengths=[s[time] for s in shapes], padding_side=side)

"""A DataLoader's batch of samples of different lengths."""

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
    """A batch for a ``DataLoader``: samples of different lengths are padded, and the padding is masked.

    Samples are tensors, arrays, numbers, lists of numbers, or dicts, tuples and lists of these, nested to any depth.
    Arrays of at least one dimension always become masked tensors ``(B, ...)``, with each dimension as long as the
    longest. Scalars become a plain tensor, or a masked one if one is None. Strings stay a list.

    To set options in a DataLoader, pass ``collate_fn=partial(mt.collate, padding_side="left")``.

    Args:
        batch (list): The samples.
        dim (int, optional): The only dimension in which samples may differ. Default: any.
        padding_side (str, optional): The side of the padding: ``"right"`` or ``"left"``. Default: ``"right"``.
        packed (bool, optional): Store batches without padding, as :func:`packed` does. No padded tensor is allocated if
            only the first dimension of samples differs. Default: False.
        length (int or dict, optional): The size ``T`` of dimension ``dim``, by default the first, for code that is
            compiled for one shape. A dict sets it by key; other keys are as long as their longest sample.
        pad_to_multiple_of (int or dict, optional): Round the size of that dimension up to a multiple of this.
        capacity (int or dict, optional): Store exactly this many steps of each batch with at least two dimensions, as
            :func:`packed` does with ``capacity``.

    Returns:
        Any: A batch with the structure of the samples.

    Raises:
        TypeError: ``batch`` is not a sequence.
        TypeError: A sample is of a type that ``default_collate`` does not support either.
        TypeError: ``length`` or ``capacity`` is not an int, or is a dict while samples are not.
        ValueError: ``batch`` is empty.
        ValueError: Samples differ in a dimension other than ``dim``, or dicts have different keys.
        ValueError: A sample is longer than ``length``, or both ``length`` and ``pad_to_multiple_of`` are given.
        ValueError: ``padding_side`` is neither ``"right"`` nor ``"left"``.
        ValueError: ``capacity`` is below 1, or below the number of valid steps.
        RuntimeError: A sparse tensor violates the invariants of its layout.
        RuntimeError: ``capacity`` is below the number of valid steps, on a GPU.
        UnsupportedOpError: ``packed=True`` is given in compiled code.

    Example:
        >>> mt.collate([{"x": torch.ones(2), "y": 1}, {"x": torch.ones(1), "y": 0}])
        {'x': masked_tensor([[1.0000, 1.0000],
                       [1.0000,     --]], valid=3/4), 'y': tensor([1, 0])}

    See also:
        :func:`from_sequences`, :func:`pad_sequence`, :func:`balanced_batches`.

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

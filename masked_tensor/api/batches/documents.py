"""Rows that hold several documents one after the other, as in packed pretraining."""

from typing import Any

import torch
from torch import Tensor

from ... import errors, masks, packing
from ...compat import current_trace
from ...engine.boundary.enter_leave import enter, leave
from ...engine.dynamo import mark_opaque
from ...engine.tensor import MaskedTensor
from ...packing import dim_order as orders
from ...packing.grid import grid_of_lengths
from ...packing.packed import drop_full_inner
from ...packing.scatter_gather import gather_mask, gather_tokens
from ...shared.names import names_arguments
from ...shared.rows.lengths import check_side, padded_length
from ..containers import accepted_inputs
from ..make.create import as_result


@names_arguments
def from_documents(
    rows: Any,
    segment_ids: Any = None,
    *,
    position_ids: Any = None,
    packed: bool = False,
    padding_side: str = "right",
    length: int | None = None,
    pad_to_multiple_of: int | None = None,
) -> MaskedTensor:
    """A batch with one sequence per document, from rows that hold several documents each.

    Attention, convolutions and recurrent layers process each document by itself, so a model needs no block-diagonal
    mask. Documents keep their order, row by row. Gradients flow back to ``rows``. For code that keeps the rows, see
    :func:`document_mask`.

    Args:
        rows (Tensor): Rows ``(B, L, ...)`` of any dtype, plain or masked, or anything that :func:`masked_tensor`
            accepts. Steps without a valid entry are padding, unless the ids are masked.
        segment_ids (Tensor, optional): The document of each step: integers ``(B, L)``; a document ends where the number
            changes. Masked steps are padding.
        position_ids (Tensor, optional): The position of each step in its document, instead of ``segment_ids``: integers
            ``(B, L)``. A document ends where the next number is not one more.
        packed (bool, optional): Store the batch without padding, as :func:`packed` does. The steps are not copied.
            Default: False.
        padding_side (str, optional): The side of the padding: ``"right"`` or ``"left"``. Default: ``"right"``.
        length (int, optional): The time size ``T`` of the batch.
        pad_to_multiple_of (int, optional): Round the longest document up to a multiple of this.

    Returns:
        MaskedTensor: The batch ``(D, T, ...)`` of ``D`` documents, in ``rows``' dtype.

    Raises:
        TypeError: The ids are not integers, or ``rows`` cannot be converted to a tensor.
        ValueError: Neither or both of ``segment_ids`` and ``position_ids`` are given.
        ValueError: The shape of the ids is not that of the first two dimensions of ``rows``.
        ValueError: A document is longer than ``length``, or both ``length`` and ``pad_to_multiple_of`` are given.
        ValueError: ``padding_side`` is neither ``"right"`` nor ``"left"``.
        RuntimeError: A sparse tensor violates the invariants of its layout.
        UnsupportedOpError: It is called in compiled code where graph breaks are not allowed (``fullgraph=True``,
            export).

    Example:
        >>> row = torch.tensor([[1, 2, 3, 4, 5, 6]])
        >>> mt.from_documents(row, position_ids=torch.tensor([[0, 1, 2, 0, 1, 0]]))
        masked_tensor([[ 1,  2,  3],
                       [ 4,  5, --],
                       [ 6, --, --]], valid=6/9)

    See also:
        :func:`document_mask`.
    """
    check_side(padding_side)
    if current_trace() is not None:
        raise errors.read_while_compiling("from_documents")
    x = rows if type(rows) is MaskedTensor else as_result(accepted_inputs.pair_of_input(rows))
    starts, said = _starts("from_documents", segment_ids, position_ids)
    if x.dim() < 2 or tuple(x.shape[:2]) != tuple(starts.shape):
        raise ValueError(
            f"from_documents needs one id for each step: rows have shape {tuple(x.shape)}, the ids "
            f"{tuple(starts.shape)}"
        )
    pair = enter(x, torch.is_grad_enabled())
    features = tuple(range(2, pair.data.dim()))
    exists = said
    if exists is None:
        exists = masks.any(pair.mask, features) if features else pair.mask
    starts, exists = starts.to(pair.data.device), exists.to(pair.data.device)
    number = starts.flatten().cumsum(0)[exists.flatten()]  # of each step's document; padding in between is left out
    sizes = number.unique_consecutive(return_counts=True)[1].tolist()
    steps = padded_length("from_documents", max(sizes, default=0), length, pad_to_multiple_of)
    if not sizes or not x.shape.numel():
        return as_result(accepted_inputs.pair_of_input(x.get_data().new_zeros((len(sizes), steps, *x.shape[2:]))))
    rows_grid = packing.Grid(exists.flatten().nonzero().squeeze(1), (x.shape[0], x.shape[1]))
    values = gather_tokens(pair.data.flatten(0, 1), rows_grid)
    inner = gather_mask(masks.reshape(pair.mask, (rows_grid.places, *pair.mask.shape[2:])), rows_grid)
    grid = grid_of_lengths(sizes, padding_side, values.device, steps)
    values = values.clone() if rows_grid.full else values  # else this may be the memory of the rows
    stored = packing.Packed(values, grid, orders.identity_order(x.dim()), inner, pair.payload)
    made: MaskedTensor = leave(drop_full_inner(stored))
    return made if packed else made.unpacked()


def document_mask(segment_ids: Any = None, *, position_ids: Any = None, is_causal: bool = False) -> Tensor:
    """The block-diagonal attention mask of packed documents: which step each step may attend to.

    ``mask[b, 0, i, j]`` is True if steps ``i`` and ``j`` of row ``b`` belong to the same document. It is the
    ``attn_mask`` of ``torch.nn.functional.scaled_dot_product_attention`` and the 4-D ``attention_mask`` of transformers
    models. It has ``L * L`` entries per row; :func:`from_documents` needs no such mask.

    Args:
        segment_ids (Tensor, optional): The document of each step: integers ``(B, L)``, or ``(L,)`` for one row; a
            document ends where the number changes. Masked steps are padding, which attends to nothing and is not
            attended to.
        position_ids (Tensor, optional): The position of each step in its document, instead of ``segment_ids``: integers
            ``(B, L)`` or ``(L,)``. A document ends where the next number is not one more.
        is_causal (bool, optional): Let a step attend to no later step. Default: False.

    Returns:
        Tensor: A plain bool mask ``(B, 1, L, L)``, or ``(1, L, L)`` for one row; True = may attend.

    Raises:
        TypeError: The ids are not integers.
        ValueError: Neither or both of ``segment_ids`` and ``position_ids`` are given, or they have another number of
            dimensions.
        RuntimeError: A sparse tensor violates the invariants of its layout.

    Example:
        >>> mt.document_mask(torch.tensor([7, 7, 4]), is_causal=True).int()
        tensor([[[1, 0, 0],
                 [1, 1, 0],
                 [0, 0, 1]]], dtype=torch.int32)

    See also:
        :func:`from_documents`, :func:`scaled_dot_product_attention`.

    References:
        ``transformers.masking_utils`` finds documents in ``position_ids`` in the same way.
    """
    starts, exists = _starts("document_mask", segment_ids, position_ids)
    number = starts.cumsum(-1)
    seen = number[..., :, None] == number[..., None, :]
    if exists is not None:
        seen = seen & exists[..., :, None] & exists[..., None, :]
    if is_causal:
        seen = seen.tril()
    return seen.unsqueeze(-3)


def _starts(name: str, segment_ids: Any, position_ids: Any) -> tuple[Tensor, Tensor | None]:
    """Where documents begin, and which steps exist, if the ids say it."""
    if (segment_ids is None) == (position_ids is None):
        raise ValueError(f"{name} needs either segment_ids or position_ids")
    given = position_ids if segment_ids is None else segment_ids
    if isinstance(given, Tensor):
        exists = given.get_mask() if type(given) is MaskedTensor else None
        numbers = given.filled(0) if type(given) is MaskedTensor else given
    else:
        pair = accepted_inputs.pair_of_input(given)
        numbers, exists = pair.data, None if bool(pair.mask.all()) else pair.mask
    if numbers.dtype.is_floating_point or numbers.dtype.is_complex or numbers.dtype is torch.bool:
        raise TypeError(f"{name}: ids must be integers, got {errors.dtype_name(numbers.dtype)}")
    if numbers.dim() not in (1, 2):
        raise ValueError(f"{name}: ids must have shape (B, L), or (L,) of one row, got {tuple(numbers.shape)}")
    step = numbers.long().diff(dim=-1)
    first = torch.ones_like(numbers[..., :1], dtype=torch.bool)
    starts = torch.cat([first, step != (1 if segment_ids is None else 0)], -1)
    if exists is not None:  # what follows padding begins a document
        after = torch.cat([torch.zeros_like(first), ~exists[..., :-1]], -1)
        starts = starts | after
    return starts, exists


mark_opaque(from_documents)

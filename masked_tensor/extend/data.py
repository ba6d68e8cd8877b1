"""Masked tensors as plain pairs and back, tables of other libraries as pairs, and columns for Arrow.

A library of statistics, a writer of files or a converter is written with these.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from .. import compat
from ..api.containers import accepted_inputs, kinds
from ..api.containers.arrow.exported import lists, numbers, texts
from ..api.containers.arrow.library import Column as Column
from ..api.containers.arrow.rows import read_rows
from ..api.containers.arrow.table import ArrowTable
from ..engine.boundary import enter_leave
from ..engine.tensor import MaskedTensor
from ..layouts.elements import canonical
from ..pair import Pair, as_pair
from ..shared.order_statistics import quantile_rank as quantile_rank
from ..sparse.reduction import take_valid

__all__ = [
    "ArrowTable",
    "has_nan_for_missing",
    "lists",
    "numbers",
    "plain",
    "quantile_rank",
    "read",
    "read_rows",
    "read_table",
    "set_buffers",
    "sparse_tensor",
    "stored_entries",
    "texts",
    "tracked",
    "tree_leaves",
    "tree_map",
    "wrap",
]

Choose = Callable[[Sequence[str]], list[int] | None]


def plain(x: Tensor) -> Pair:
    """The data and mask of any tensor, detached from autograd.

    Args:
        x (Tensor): Masked or plain, any shape, dtype and layout; a packed one is unpacked.

    Returns:
        Pair: Plain tensors of ``x``'s shape. The mask is True everywhere if ``x`` is plain.

    Example:
        >>> from masked_tensor.extend import data
        >>> data.plain(mt.masked_tensor([1.0, None])).mask
        tensor([ True, False])
    """
    pair: Pair = as_pair(enter_leave.enter(x.detach(), False))
    return pair


def tracked(x: Tensor) -> Pair:
    """The data and mask of any tensor, through which gradients flow.

    Args:
        x (Tensor): Masked or plain, any shape, dtype and layout; a packed one is unpacked.

    Returns:
        Pair: Plain tensors of ``x``'s shape. The mask is True everywhere if ``x`` is plain.

    Example:
        >>> from masked_tensor.extend import data
        >>> data.tracked(torch.ones(2, requires_grad=True)).data.requires_grad
        True
    """
    pair: Pair = as_pair(enter_leave.enter(x, torch.is_grad_enabled()))
    return pair


def wrap(pair: Pair) -> MaskedTensor:
    """A masked tensor around data and mask, neither of which is copied.

    Args:
        pair (Pair): Plain tensors of the same shape; gradients flow through the result to the data.

    Returns:
        MaskedTensor: The shape and dtype of ``pair.data``.

    Example:
        >>> from masked_tensor.extend import Pair, data
        >>> data.wrap(Pair(torch.ones(2), torch.tensor([True, False]))).tolist()
        [1.0, None]
    """
    result: MaskedTensor = enter_leave.leave(pair)
    return result


def read(values: Any, dtype: torch.dtype | None = None, device: Any = None, name: str = "data") -> Pair:
    """The data and mask of anything that :func:`~masked_tensor.masked_tensor` accepts.

    Args:
        values (object): A tensor, a number, a list that may contain None, an array, or a column or table of another
            library.
        dtype (torch.dtype, optional): The dtype of the data; by default their own.
        device (torch.device, optional): The device of data and mask.
        name (str, optional): The name of ``values`` in errors. Default: ``"data"``.

    Returns:
        Pair: Plain tensors of one shape.

    Raises:
        TypeError: ``values`` cannot be converted to a tensor.
        ValueError: The parts of ``values`` do not fit together.
        RuntimeError: ``values`` is a damaged Arrow column.

    Example:
        >>> from masked_tensor.extend import data
        >>> data.read([1, None, 3]).mask
        tensor([ True, False,  True])
    """
    return accepted_inputs.pair_of_input(values, dtype, device, name)


def read_table(table: Any, dtype: torch.dtype, choose: Choose | None = None) -> tuple[Pair, list[str]]:
    """The data and mask of a table, and the names of its columns.

    Args:
        table (object): A table of pandas, polars or Arrow, a dict of columns, or an array or list, whose columns have
            no names.
        dtype (torch.dtype): The dtype of the data.
        choose (callable, optional): Receives the names and returns the positions of the columns to read, or None for
            all.

    Returns:
        tuple: A Pair ``(N, columns)``, and a list of names, empty if there are none.

    Raises:
        TypeError: A column is not numeric.
        ValueError: The columns do not fit together.
        RuntimeError: ``table`` is a damaged Arrow table.

    Example:
        >>> from masked_tensor.extend import data
        >>> table = {"a": [1.0, None], "b": [3.0, 4.0]}
        >>> pair, names = data.read_table(table, torch.float64, lambda names: [names.index("b")])
        >>> pair.data.tolist(), names
        ([[3.0], [4.0]], ['b'])
    """
    return accepted_inputs.table(table, dtype, choose or (lambda names: None))


def sparse_tensor(values: Any) -> Any:
    """A scipy sparse matrix as a plain sparse tensor, whose other entries are 0.

    Args:
        values (object): Any object.

    Returns:
        object: A sparse tensor, or ``values`` itself if it is not such a matrix.

    Example:
        >>> from masked_tensor.extend import data
        >>> data.sparse_tensor("text")
        'text'
    """
    return kinds.sparse_tensor(values)


def has_nan_for_missing(values: object, pair: Pair) -> bool:
    """Whether a container that can only mark missing values as NaN, such as a numpy-backed pandas column, contains NaN.

    Args:
        values (object): The container, such as a pandas Series or DataFrame.
        pair (Pair): The result of :func:`read` or :func:`read_table` for it.

    Returns:
        bool: False for all other containers.

    Example:
        >>> from masked_tensor.extend import data
        >>> data.has_nan_for_missing([float("nan")], data.read([float("nan")]))
        False
    """
    return kinds.has_nan_for_missing(values, pair)


def stored_entries(x: Pair | Tensor, dim: int) -> tuple[Tensor, Tensor]:
    """The positions along a dimension, and the values, of the valid stored entries of a sparse tensor.

    Args:
        x (Pair or Tensor): A pair of a sparse tensor of any shape and dtype and its mask, or a plain sparse tensor, of
            which all stored entries are valid.
        dim (int): The dimension.

    Returns:
        tuple: int64 positions ``(N,)``, and values ``(N,)`` in the dtype of ``x``.

    Example:
        >>> from masked_tensor.extend import data
        >>> data.stored_entries(torch.tensor([[0.0, 2.0], [3.0, 0.0]]).to_sparse(), 1)
        (tensor([1, 0]), tensor([2., 3.]))
    """
    values, mask = (x.data, x.mask) if isinstance(x, Pair) else (x, None)
    taken = take_valid(canonical(values), mask)
    return taken.coordinate(dim), taken.values


def set_buffers(module: torch.nn.Module, values: Mapping[str, Tensor | None]) -> None:
    """Replace several buffers of a module at once: after an interrupt, all are old or all are new.

    Args:
        module (torch.nn.Module): A module with buffers of these names.
        values (dict): The tensor, or None, for each name.

    Example:
        >>> from masked_tensor.extend import data
        >>> module = torch.nn.BatchNorm1d(2)
        >>> data.set_buffers(module, {"running_mean": torch.ones(2)})
        >>> module.running_mean
        tensor([1., 1.])
    """
    compat.set_buffers(module, values)


def tree_leaves(tree: Any) -> list[Any]:
    """The leaves of nested tuples, lists, dicts and other structures that torch supports, in order.

    Args:
        tree (object): A structure, or a leaf.

    Returns:
        list: The leaves.

    Example:
        >>> from masked_tensor.extend import data
        >>> data.tree_leaves({"a": [1, 2], "b": (3,)})
        [1, 2, 3]
    """
    return compat.tree_leaves(tree)


def tree_map(function: Callable[[Any], Any], tree: Any) -> Any:
    """The same structure, with ``function`` applied to each leaf.

    Args:
        function (callable): Receives a leaf and returns the new one.
        tree (object): A structure, or a leaf.

    Returns:
        object: A structure of the same type.

    Example:
        >>> from masked_tensor.extend import data
        >>> data.tree_map(lambda n: n + 1, {"a": [1, 2]})
        {'a': [2, 3]}
    """
    return compat.tree_map(function, tree)

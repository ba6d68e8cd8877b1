"""Pictures of missing and valid entries; drawing needs matplotlib."""

from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from ... import errors, layouts
from ...engine.tensor import MaskedTensor, pair_of
from ...shared.names import names_arguments

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["distributions", "missing"]


@names_arguments
def missing(
    x: MaskedTensor,
    names: Sequence[str] | None = None,
    *,
    sort: str | None = None,
    dim: int = 1,
    completeness: bool = True,
    ax: "Axes | None" = None,
) -> "Axes":
    """A picture of a table or batch in which valid entries are dark and masked ones light.

    Each row of a table is a line, with its valid share beside it. A partly valid step of a batch is grey.

    Args:
        x (MaskedTensor): A table ``(rows, columns)`` or a batch ``(B, T, ...)`` of any dtype.
        names (list of str, optional): Labels for the columns.
        sort (str, optional): Sort rows by their valid share: ``"ascending"`` or ``"descending"``. Default: not sorted.
        dim (int, optional): The dimension of a batch to draw as columns, such as time. Default: 1.
        completeness (bool, optional): Draw the valid share beside the picture. Default: True.
        ax (matplotlib Axes, optional): The axes to draw on. Default: the current axes.

    Returns:
        matplotlib Axes: The axes of the picture.

    Raises:
        TypeError: ``x`` is not a MaskedTensor, or ``ax`` is not a matplotlib Axes.
        ValueError: ``x`` has fewer than two dimensions.
        ValueError: ``sort`` is not one of the values above.
        ImportError: matplotlib is not installed, and no ``ax`` is given.

    Example:
        >>> table = mt.masked_tensor([[1.0, None], [3.0, 4.0]])
        >>> mt.plot.missing(table, ["age", "weight"]).get_xlabel()
        'valid: 3 of 4'

    References:
        ``missingno.matrix``.
    """
    if type(x) is not MaskedTensor:
        raise errors.not_masked("missing", x)
    if x.dim() < 2:
        raise ValueError(f"missing() draws tables and batches, got a tensor of shape {tuple(x.shape)}; use x[None]")
    if sort not in (None, "ascending", "descending"):
        raise ValueError(f"sort must be 'ascending', 'descending' or None, got {sort!r}")
    if ax is not None and not hasattr(ax, "imshow"):
        raise TypeError(f"ax must be the axes of a picture of matplotlib, got {type(ax).__name__}")
    there = _shares(x, dim)
    if sort is not None:
        there = there[there.mean(1).argsort(stable=True, descending=sort == "descending")]
    ax = _pyplot("missing").gca() if ax is None else ax
    ax.imshow(1 - there.numpy(), cmap="gray", vmin=-0.25, vmax=1, aspect="auto", interpolation="nearest")
    valid = int(there.sum()) if x.dim() == 2 else int(x.count())
    ax.set_xlabel(f"valid: {valid} of {x.shape.numel()}")
    if names is not None:
        ax.set_xticks(range(len(names)), names, rotation=45, ha="left")
        ax.xaxis.tick_top()
    if completeness and len(there):
        _beside(ax, there.mean(1))
    return ax


@names_arguments
def distributions(
    x: MaskedTensor,
    names: Sequence[str] | None = None,
    *,
    dim: int = -1,
    bins: int | Sequence[float] | str = 30,
    axes: "Sequence[Axes] | None" = None,
) -> "list[Axes]":
    """A histogram of the valid entries of each column, labelled with the share that is masked.

    Masked entries, and valid ones that are NaN or infinite, are not drawn; the label states the number of the latter.

    Args:
        x (MaskedTensor): A table ``(rows, columns)`` or a batch ``(B, T, ..., columns)``, bool, integer or float.
        names (list of str, optional): Titles, one for each column.
        dim (int, optional): The dimension of the columns. All other dimensions are the entries of a column. Default:
            -1.
        bins (int, list of float or str, optional): The bins, as in ``matplotlib.pyplot.hist``. Default: 30.
        axes (list of matplotlib Axes, optional): The axes to draw on, one for each column. Default: a new figure.

    Returns:
        list of matplotlib Axes: One for each column.

    Raises:
        TypeError: ``x`` is not a MaskedTensor, or is complex.
        TypeError: ``axes`` is not a list of axes.
        ValueError: ``x`` has fewer than two dimensions.
        ValueError: ``names`` or ``axes`` are not one for each column.
        ImportError: matplotlib is not installed, and no ``axes`` are given.

    Example:
        >>> table = mt.masked_tensor([[31.0, None], [45.0, 4.0]])
        >>> [axes.get_xlabel() for axes in mt.plot.distributions(table, ["age", "weight"])]
        ['0 % masked', '50 % masked']

    References:
        ``pandas.DataFrame.hist``.
    """
    if type(x) is not MaskedTensor:
        raise errors.not_masked("distributions", x)
    if x.dim() < 2:
        raise ValueError(f"distributions() draws columns, got a tensor of shape {tuple(x.shape)}; use x[:, None]")
    if x.is_complex():
        raise TypeError("distributions() draws real numbers, got complex ones; use x.real or x.abs()")
    if axes is not None and not (hasattr(axes, "__len__") and all(hasattr(ax, "hist") for ax in axes)):
        raise TypeError(f"axes must be a list of axes of matplotlib, got {type(axes).__name__}")
    pair = layouts.to_dense(pair_of(x)) if layouts.is_sparse(x) else pair_of(x)
    columns = list(zip(pair.data.detach().movedim(dim, 0), pair.mask.movedim(dim, 0), strict=True))
    for what, given in (("names", names), ("axes", axes)):
        if given is not None and len(given) != len(columns):
            raise ValueError(f"distributions() needs one of {what} for each column: {len(columns)}, got {len(given)}")
    axes = _grid(len(columns)) if axes is None else axes
    for i, (ax, (data, mask)) in enumerate(zip(axes, columns, strict=True)):
        valid = data[mask].cpu().double()
        finite = valid[valid.isfinite()]
        if len(finite):
            ax.hist(finite.numpy(), bins=bins)
        else:
            ax.set(xticks=[], yticks=[])
        share = (mask.numel() - len(valid)) / max(mask.numel(), 1)
        odd = f", {len(valid) - len(finite)} not finite" if len(finite) < len(valid) else ""
        ax.set_xlabel(f"{100 * share:.0f} % masked{odd}")
        ax.set_title(str(i) if names is None else names[i])
    return list(axes)


def _grid(count: int) -> "list[Axes]":
    """Axes in rows of at most four, in a new figure."""
    across = min(count, 4) or 1
    down = -(-count // across) or 1
    size = (3 * across, 2.4 * down)
    figure, axes = _pyplot("distributions").subplots(down, across, figsize=size, squeeze=False, layout="constrained")
    for unused in axes.flat[count:]:
        figure.delaxes(unused)
    return list(axes.flat[:count])


def _pyplot(name: str) -> Any:
    try:
        return import_module("matplotlib.pyplot")
    except ImportError as reason:
        raise ImportError(f"plot.{name}() needs matplotlib: pip install matplotlib") from reason


def _shares(x: MaskedTensor, dim: int) -> Tensor:
    """How much is valid of every row and column, or sequence and step."""
    mask = layouts.dense_mask(pair_of(x).mask) if layouts.is_sparse(x) else pair_of(x).mask
    shares = mask.detach().cpu().movedim(dim, 1).to(torch.float32)
    return shares if shares.dim() == 2 else shares.flatten(2).mean(2)


def _beside(ax: "Axes", shares: Tensor) -> None:
    """The line of completeness, in the picture's own coordinates right of it."""
    side = ax.inset_axes((1.02, 0, 0.12, 1), sharey=ax)
    side.plot(shares.numpy(), range(len(shares)), color="0.3", linewidth=1)
    side.set_xlim(0, 1.05)
    side.set_xticks([0, 1], ["0", "1"])
    side.tick_params(labelleft=False, left=False)
    for edge in ("top", "right", "left"):
        side.spines[edge].set_visible(False)

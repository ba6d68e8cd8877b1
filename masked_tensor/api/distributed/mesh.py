"""Masked tensors over a device mesh: the masked tensor is outside, and its data and mask are DTensors placed alike.

So torch's own distributed engine places, moves and differentiates the parts, and a mean over a mesh divides by what is
valid on all of it.  Where torch would put a masked tensor *into* a DTensor (``distribute_tensor``,
``DTensor.from_local``, which its tensor-parallel styles call) it is turned inside out.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from ... import errors, masks
from ...engine.aliases import share_family
from ...engine.boundary.enter_leave import enter, leave
from ...engine.dispatch import register_rule
from ...engine.tensor import MaskedTensor, add_members, pair_of, set_pair
from ...kernels.identity import identity
from ...layouts import meshes
from ...pair import Pair, Payload, as_pair
from ...patches.first_use import when_first_made
from ...patches.imports import when_imported
from ...patches.places import FUNCTIONAL_COLLECTIVES, PAD_SHARDS, wrap_when_imported
from ...select import fill_masked
from ..modes import meaning

if TYPE_CHECKING:
    from torch.distributed.device_mesh import DeviceMesh
    from torch.distributed.tensor import Placement


def redistribute(
    x: MaskedTensor,
    device_mesh: "DeviceMesh | None" = None,
    placements: "Sequence[Placement] | None" = None,
    **kwargs: bool | torch.dtype | None,
) -> MaskedTensor:
    """The same masked tensor with other placements of data and mask on a mesh.

    Args:
        x (MaskedTensor): A masked tensor of DTensors of any shape and dtype.
        device_mesh (DeviceMesh, optional): The mesh; by default that of ``x``.
        placements (list of Placement, optional): The placements of the data on each dimension of the mesh; the mask
            follows.
        **kwargs (bool or torch.dtype): Other keywords of ``DTensor.redistribute``. It waits even with ``async_op``.

    Returns:
        MaskedTensor: The global shape and dtype of ``x``.

    Raises:
        AttributeError: ``x`` is not on a mesh.

    Example:
        >>> hasattr(mt.masked_tensor([1.0]), "redistribute")  # not on a mesh
        False

    References:
        ``torch.distributed.tensor.DTensor.redistribute``.
    """
    pair = enter(x, torch.is_grad_enabled())
    kwargs.pop("async_op", None)
    data: Any = pair.data
    data = data.redistribute(device_mesh, placements, **kwargs)
    return share_family(leave(Pair(data, meshes.place_like(pair.mask, data), pair.payload)), x)


def to_local(x: MaskedTensor, *, grad_placements: "Sequence[Placement] | None" = None) -> MaskedTensor:
    """The local part of a masked tensor on a mesh, which shares memory with it.

    For ``Partial`` data, it is the local terms of the sum under the whole mask. Call it on all ranks.

    Args:
        x (MaskedTensor): A masked tensor of DTensors of any shape and dtype.
        grad_placements (list of Placement, optional): The placements of the gradient.

    Returns:
        MaskedTensor: The local shape of ``x``, in its dtype.

    Raises:
        AttributeError: ``x`` is not on a mesh.

    Example:
        >>> hasattr(mt.masked_tensor([1.0]), "to_local")  # not on a mesh
        False

    References:
        ``torch.distributed.tensor.DTensor.to_local``.
    """
    align(x)
    pair = enter(x, torch.is_grad_enabled())
    data: Any = pair.data
    mask: Any = pair.mask
    part = leave(Pair(data.to_local(grad_placements=grad_placements), mask.to_local(), pair.payload))
    return share_family(part, x)


def align(x: MaskedTensor) -> None:
    """Lays the mask out as the data is, for which ranks may have to ask each other; a part can be written by one alone.

    So all of them have to call it.
    """
    pair = pair_of(x)
    mask = meshes.place_like(pair.mask, pair.data)
    if mask is not pair.mask:
        set_pair(x, Pair(pair.data, mask, pair.payload))
    if x._alias.family is not None:
        x._alias.family.buffer_view(pair.data)


def full_tensor(x: MaskedTensor, *, grad_placements: "Sequence[Placement] | None" = None) -> MaskedTensor:
    """The whole masked tensor of a mesh, data and mask, on every rank.

    Args:
        x (MaskedTensor): A masked tensor of DTensors of any shape and dtype.
        grad_placements (list of Placement, optional): The placements of the gradient.

    Returns:
        MaskedTensor: The global shape and dtype of ``x``.

    Raises:
        AttributeError: ``x`` is not on a mesh.

    Example:
        >>> hasattr(mt.masked_tensor([1.0]), "full_tensor")  # not on a mesh
        False

    References:
        ``torch.distributed.tensor.DTensor.full_tensor``.
    """
    pair = enter(x, torch.is_grad_enabled())
    data: Any = pair.data
    mask: Any = pair.mask
    whole = Pair(data.full_tensor(grad_placements=grad_placements), mask.full_tensor(), pair.payload)
    return share_family(leave(whole), x)


def distribute(x: Tensor, like: MaskedTensor) -> MaskedTensor:
    """This rank's part of a whole that all ranks have, placed as ``like`` is; nothing is sent."""
    pair = as_pair(enter(x, False))
    place: Any = pair_of(like).data
    data = meshes.distribute_whole(pair.data, place.device_mesh, place.placements)
    return leave(Pair(data, meshes.place_like(pair.mask, data), pair.payload))


def is_functional_collective(module: Any) -> None:
    """What a functional collective gives of masked tensors has arrived: it is not wrapped in order to wait for it."""
    if hasattr(torch.ops._c10d_functional, "_wrap_tensor_autograd"):
        register_rule("_c10d_functional::_wrap_tensor_autograd")(lambda x: x)


class OnMesh:
    """What masked tensors of DTensors have and others do not, so that ``hasattr`` tells them apart."""

    def __init__(self, get: Callable[[MaskedTensor], Any], doc: str | None) -> None:
        self.get, self.__doc__ = get, doc

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, x: Any, owner: type | None = None) -> Any:
        if x is None:
            return self
        if x._packed is not None or not meshes.is_distributed(pair_of(x).data):
            raise AttributeError("only a masked tensor of DTensors has placements; make one with distribute_tensor")
        return self.get(x)


def _convert_both(
    make: Callable[..., Any], local: MaskedTensor, mesh: Any, placements: Any, **kwargs: Any
) -> MaskedTensor:
    """The masked tensor of what ``make`` makes of the data and the mask of ``local``."""
    pair = enter(local, torch.is_grad_enabled())
    if meshes.is_distributed(pair.data):  # a style that expects a DTensor or a part of one
        return redistribute(local, mesh, placements)
    terms = {p.reduce_op for p in placements or () if p.is_partial()}
    if terms:
        pair = _terms(pair, terms)
    data = make(pair.data, mesh, placements, **kwargs)
    if kwargs.get("shape") is not None:
        kwargs |= {"stride": torch.empty(kwargs["shape"], device="meta").stride()}
    kwargs.pop("grad_placements", None)
    # Ranks may know of their masks, or of what is under them, different things: no rank relies on it.
    valid = pair.mask.contiguous() if not terms else pair.mask.to(torch.uint8)
    mask = make(valid, mesh, meshes.placements_of_mask(data.placements, "max"), **kwargs)
    mask = mask if not terms else masks.from_bytes(meshes.place_like(mask, data))
    return share_family(leave(Pair(data, mask, Payload.ANY)), local)


def _terms(pair: Pair, reductions: set[str]) -> Pair:
    """What ranks still have to add up (or multiply, or compare): masked entries get a value that changes nothing."""
    names = {"sum": "sum", "product": "prod", "max": "max", "min": "min"}
    name = names.get(next(iter(reductions))) if len(reductions) == 1 else None
    if name is None:
        raise errors.UnsupportedOpError(
            f"DTensor.from_local of a masked tensor whose terms are combined by {sorted(reductions)}: give it "
            "Partial('sum') (or 'product', 'max', 'min'), and divide a sum by the number of ranks with a valid entry"
        )
    return Pair(fill_masked(pair, identity(name, pair.data.dtype)), pair.mask)


def _at_the_end(pad_tensor: Callable[..., Any]) -> Callable[..., Any]:
    """Shards of different length are padded to one at their end, not at that of each row of what is valid."""

    def padded(x: Any, *args: Any, **kwargs: Any) -> Any:
        if type(x) is not MaskedTensor:
            return pad_tensor(x, *args, **kwargs)
        with meaning(padding="tensor"):
            return pad_tensor(x, *args, **kwargs)

    return padded


def install(module: Any) -> None:
    """Has what torch makes DTensors of, if it is masked, become a masked tensor of DTensors."""
    wrap_when_imported(PAD_SHARDS, _at_the_end)
    kind = module.DTensor
    from_local, new = kind.from_local, kind.__new__

    def masked_from_local(local_tensor: Any, device_mesh: Any = None, placements: Any = None, **kwargs: Any) -> Any:
        make = from_local if type(local_tensor) is not MaskedTensor else partial(_convert_both, from_local)
        return make(local_tensor, device_mesh, placements, **kwargs)

    def masked_new(cls: type, local_tensor: Any, spec: Any, *, requires_grad: bool) -> Any:
        if type(local_tensor) is not MaskedTensor:
            return new(cls, local_tensor, spec, requires_grad=requires_grad)
        made = _convert_both(
            from_local, local_tensor.detach(), spec.mesh, spec.placements, shape=spec.shape, stride=spec.stride
        )
        return made.requires_grad_(requires_grad)

    masked_from_local.__doc__ = from_local.__doc__
    kind.from_local = staticmethod(masked_from_local)
    kind.__new__ = masked_new


_PLACEMENTS = """The placements of the data on each dimension of the mesh; only tensors on a mesh have this attribute.

Example:
    >>> hasattr(mt.masked_tensor([1.0]), "placements")  # not on a mesh
    False
"""
_DEVICE_MESH = """The mesh on which the data are placed; only tensors on a mesh have this attribute.

Example:
    >>> hasattr(mt.masked_tensor([1.0]), "device_mesh")  # not on a mesh
    False
"""
add_members(
    **{f.__name__: OnMesh(partial(partial, f), f.__doc__) for f in (redistribute, to_local, full_tensor)},
    placements=OnMesh(lambda x: _of_data(x).placements, _PLACEMENTS),
    device_mesh=OnMesh(lambda x: _of_data(x).device_mesh, _DEVICE_MESH),
)
when_first_made(lambda: when_imported(meshes.NAME, install))  # DTensors of plain tensors do not pay for it
when_imported(FUNCTIONAL_COLLECTIVES, is_functional_collective)


def _of_data(x: MaskedTensor) -> Any:
    data: Tensor = pair_of(x).data
    return data

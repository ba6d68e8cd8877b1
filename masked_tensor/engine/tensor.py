"""``MaskedTensor``: the wrapper subclass and its Python protocol.  It knows no op by name: see dispatch.py."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, final

import torch
from torch import Tensor

from .. import errors
from ..compat import in_functorch, no_transform_active, wrapped_by_transform
from ..layouts import meshes
from ..packing import Packed
from ..pair import Pair, Payload
from ..patches.first_use import prepare
from . import torch_keys
from .alias_records import UNALIASED, Alias
from .dynamo import told_settings
from .packed_pair import PackedView, PairOfPacked, UnpackedCopy
from .torch_keys import KEYS, has_no_pointer, no_torch_function

if TYPE_CHECKING:
    from .methods import Methods  # made by tools/stub.py: what torch's methods give, and ours
else:
    Methods = Tensor

STRIDED = torch.strided  # read on every op's way
LOST = "lost"  #: in place of where sequences lie: lengths were said, and no longer fit


@final
class MaskedTensor(Methods):
    """A ``torch.Tensor`` with a mask: plain data and a bool mask of its shape, True = valid.

    Make one with :func:`masked_tensor` or :func:`as_masked_tensor`, use it like any tensor, and leave with
    :meth:`filled`, :meth:`compressed` or :func:`select_valid`. Masked-out data never affect results, gradients, errors
    or printed output.

    Raises:
        TypeError: The class is called or derived from.

    Example:
        >>> x = mt.masked_tensor([[1.0, None], [None, None]])
        >>> type(x).__name__, x.shape, x.dtype
        ('MaskedTensor', torch.Size([2, 2]), torch.float32)
        >>> x.mean(1)
        masked_tensor([1.0000, --], valid=1/2)
    """

    # What the engine keeps on a tensor.  Each is annotated: ENGINE below is made of the annotations.
    _pair: Pair = PairOfPacked()  # type: ignore[assignment]  # a tensor's own pair shadows it
    _packed: Packed | None = None  # the inside of a packed tensor, in place of the pair
    _view: PackedView | None = None  # of a packed tensor and its views: who else would see a write (packed_views.py)
    _steps: Any = None  # of what is not packed any more: where its sequences lie (Frame), LOST, or None
    _stays_padded: bool = False  # it was asked for without its packing: ops do not pack it again by ``_steps``
    _alias: Alias = UNALIASED  # what it shares with its views, or with what it is a view of
    _graph_entry: Any = None  # (pair, version, what all tracked uses share)
    _graph_input: bool | UnpackedCopy = False  # while compiling: an input of the graph, or what it has of a packed one
    _exposed: bool = False  # somebody outside may hold its memory: nothing is promised of what lies under the mask
    _parts: tuple[Any, ...] | None = None  # what graphs were given of it: guards go by identity

    # As torch has recorded them, on every op's way: autograd_queries.py asks whether the base was written since.
    _tracks = Tensor.requires_grad
    _node = Tensor.grad_fn

    __torch_function__ = no_torch_function  # type: ignore[assignment]  # torch's own way to have none

    def __new__(cls, *args: Any, **kwargs: Any) -> "MaskedTensor":
        raise TypeError(
            "MaskedTensor cannot be called; use masked_tensor(data, mask) to copy the data, or "
            "as_masked_tensor(data, mask) to wrap it"
        )

    def __init_subclass__(cls, **kwargs: Any) -> None:
        raise TypeError("MaskedTensor is final: give it new behaviour with register_rule, not by subclassing")

    def _connect(self) -> None:
        """Takes a new history from the base of a view, if that was written: enter_leave.py gives it."""

    def _enter(self, recording: bool) -> Pair:
        """The pair of plain tensors that rules work on: enter_leave.py gives it."""
        raise NotImplementedError


def add_members(**members: Any) -> None:
    """Gives the class methods and properties that need what stands above it."""
    for name, member in members.items():
        setattr(MaskedTensor, name, member)


ENGINE = tuple(MaskedTensor.__annotations__)  #: the attributes that are the engine's, not the user's
NOTHING_KEPT = {name: MaskedTensor.__dict__[name] for name in ENGINE if name != "_pair"}
MaskedTensor.__module__ = __package__.partition(".")[0]  # where users find it


def _make_first(*args: Any, **kwargs: Any) -> Any:
    global make
    prepare()
    make = torch_keys.make
    return make(*args, **kwargs)


make: Callable[..., MaskedTensor] = _make_first  #: a tensor without memory of its own


def wrap(pair: Pair) -> MaskedTensor:
    """An untracked MaskedTensor around ``pair``."""
    data = pair.data
    if data.requires_grad and not in_functorch():  # inside of a transform the data have the history, not the wrapper
        data = data.detach()
        pair = Pair(data, pair.mask, pair.payload)
    if not no_transform_active() and wrapped_by_transform():
        raise errors.inside_transform()
    if data.layout is not STRIDED:
        return _wrap_sparse(pair)
    # By position, which is faster: size, strides, storage_offset, memory_format, dtype, layout, device, pin_memory,
    # requires_grad, dispatch_sizes_strides_policy, dispatch_device, dispatch_layout, _extra_dispatch_keys.
    # fmt: off
    result = make(
        MaskedTensor, data.shape, data.stride(), data.storage_offset(), None, data.dtype, STRIDED, data.device,
        False, False, None, False, False, KEYS,
    )
    # fmt: on
    has_no_pointer(result)  # who asks torch itself for its memory gets an error, not address 0
    result._pair = pair
    if type(pair.mask) is not Tensor:
        set_pair(result, pair)
    elif type(data) is not Tensor and meshes.is_distributed(data):  # a constant mask that a rule made
        result._pair = Pair(data, meshes.place_like(pair.mask, data), pair.payload)
    return result


def set_pair(x: MaskedTensor, pair: Pair) -> None:
    """Makes ``pair`` the inside of ``x``."""
    x._pair = pair
    if type(pair.mask) is not Tensor:  # tracing
        told_settings()


def reset(x: MaskedTensor, pair: Pair, alias: Alias, exposed: bool) -> None:
    """Makes ``pair`` the inside of ``x``, which forgets its views, its history and what it kept of its graph."""
    kept = x.__dict__.copy()  # what is dropped ends after the next call, which nobody interrupts
    x.__dict__.update(NOTHING_KEPT, _pair=pair, _alias=alias, _exposed=exposed)
    set_pair(x, pair)
    del kept


def expose(x: MaskedTensor) -> None:
    """Somebody outside gets hold of the memory of ``x``: nothing is promised of it any more, to no member."""
    if x._packed is not None:  # never written, and handed out as copies
        return
    pair = pair_of(x)
    x._exposed = True
    if x._alias.family is not None:
        x._alias.family.forget()
    if pair.payload is Payload.ZERO:
        set_pair(x, Pair(pair.data, pair.mask))


def _wrap_sparse(pair: Pair) -> MaskedTensor:
    data = pair.data
    result = make(
        MaskedTensor,
        data.shape,
        dtype=data.dtype,
        layout=data.layout,
        device=data.device,
        dispatch_layout=data.layout is not torch.sparse_coo,  # torch keeps the layout of a wrapper for COO only
        _extra_dispatch_keys=KEYS,
    )
    result._pair = pair
    return result


def pair_of(x: MaskedTensor) -> Pair:
    """The pair inside ``x``, up to date with what was written through other members of its alias family."""
    alias = x._alias
    family = alias.family
    if family is not None and alias.version_seen != family.version:
        seen = family.version  # first: what another thread writes meanwhile is read the next time
        set_pair(x, family.refresh(x._pair))
        alias.version_seen = seen
    return x._pair

"""``flat``: a module that runs on plain tokens when it is given a masked batch."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache, wraps
from typing import Any, TypeVar

from torch import Tensor, nn

from ...compat import tree_leaves, tree_map
from ...engine.tensor import MaskedTensor
from ...errors import UnsupportedOpError
from ...packing import Packed
from ...packing.grid import same_places
from ...rules.cross_entropy import IGNORED
from . import transformers
from .call import run
from .check import what_differs
from .tokens import FlatTokens, from_flat, gathered, stored_tokens, to_flat, tokens_of

Module = TypeVar("Module", bound=nn.Module)
Forward = Callable[..., Any]


@dataclass
class Way:
    """How a module is flat: whether it is verified, and what was found for each kind of call."""

    check: bool
    found: dict[Any, str | None] = field(default_factory=dict)  #: what is wrong with it, or None


def flat(module: Module, on: bool = True, *, check: bool = True) -> Module:
    """The module itself, which from now on runs on plain tokens, without padding, when it is given a masked batch.

    The steps of all sequences enter as one row ``(1, N, ...)``. Attention is kept within each sequence, and outputs
    that have the tokens as a dimension leave as packed masked tensors. No masked op runs inside. It serves transformers
    of torch, of Hugging Face and of your own that call ``scaled_dot_product_attention``, and modules that treat each
    step by itself: embeddings, norms, feed-forwards, heads.

    At the first call, two short sequences are run together and alone, in evaluation mode, and a module that does not
    keep them apart raises. Plain inputs run as before. Plain tensors ``(B, T, ...)`` beside a masked batch, such as
    ``labels``, are flattened with it. Under ``torch.compile`` the call runs as it does without.

    Args:
        module (torch.nn.Module): Is changed in place: its class is replaced by a subclass. Keys of its state and its
            parameters stay as they are.
        on (bool, optional): False undoes it.
        check (bool, optional): False leaves out the comparison. Results are then those of each sequence alone only if
            the module's one op over time is attention without a mask of its own.

    Returns:
        torch.nn.Module: ``module``.

    Raises:
        TypeError: ``module`` is not a module.
        ValueError: When it is called: a step that exists is missing, two inputs have different lengths, or attention is
            called with a mask.
        UnsupportedOpError: When it is called: it does not keep sequences apart.

    Example:
        >>> layer = torch.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
        >>> model = mt.flat(torch.nn.TransformerEncoder(layer, 2, enable_nested_tensor=False))
        >>> y = model(mt.from_lengths(torch.randn(2, 5, 8), [5, 3]))
        >>> y.shape, y.is_packed, y.lengths()
        (torch.Size([2, 5, 8]), True, tensor([5, 3]))
    """
    if not isinstance(module, nn.Module):
        raise TypeError(f"mt.flat takes a torch.nn.Module, got {type(module).__name__}")
    kind: Any = type(module)
    is_flat = hasattr(kind, "flat_of")
    if not on:
        if is_flat:
            transformers.restore(module)
            del module.__dict__["flat_way"]
            module.__class__ = kind.flat_of
        return module
    transformers.prepare(module)
    module.__dict__["flat_way"] = Way(check)
    if not is_flat:
        module.__class__ = _flat_class(kind)
    return module


@cache
def _flat_class(kind: Any) -> Any:
    @wraps(kind.forward)
    def forward(self: Any, *args: Any, **kwargs: Any) -> Any:
        return call(self, kind.forward, args, kwargs)

    def reduce(self: Any, protocol: int) -> Any:
        return _made_flat, (kind,), self.__dict__

    members = {
        "forward": forward,
        "__reduce_ex__": reduce,
        "__module__": kind.__module__,
        "__qualname__": kind.__qualname__,
        "__doc__": kind.__doc__,
        "flat_of": kind,
    }
    return type(kind)(kind.__name__, (kind,), members)


def _made_flat(kind: Any) -> Any:
    new = _flat_class(kind)
    return new.__new__(new)


def call(module: nn.Module, forward: Forward, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The call of a flat module: as it was for plain inputs, and inside of another flat module."""
    given = (args, kwargs)
    first = _batch_of(given)
    if first is None:
        return forward(module, *args, **kwargs)
    tokens = to_flat(first)
    inside_args, inside_kwargs = _entered(given, first, tokens)
    way: Way = module.__dict__["flat_way"]
    key = _kind_of_call(inside_args, inside_kwargs)
    if way.check and tokens.grid.index.shape[0]:
        if key not in way.found:
            way.found[key] = what_differs(module, forward, inside_args, inside_kwargs, tokens)
        if (refusal := way.found[key]) is not None:
            raise UnsupportedOpError(refusal)
    out = run(module, forward, inside_args, inside_kwargs, tokens)
    return _left(out, tokens)


# ----------------------------------------------------------------------------------------------------- what comes in


def _batch_of(given: Any) -> MaskedTensor | None:
    """The first masked batch among the arguments: one that knows its lengths, if there is one."""
    found = [x for x in tree_leaves(given) if type(x) is MaskedTensor and x.dim() > 1]
    knowing = [x for x in found if x._packed is not None and x._packed.grid.complete and x._packed.inner is None]
    return next(iter(knowing or found), None)


def _entered(given: Any, first: MaskedTensor, tokens: FlatTokens) -> Any:
    args, kwargs = given
    batch = tokens.grid.shape
    kept = {name: value for name, value in kwargs.items() if not _says_the_same(name, value, tokens)}

    def enter(x: Any) -> Any:
        if x is first:
            return tokens.values
        if _is_batch(x):
            return _flattened(x, tokens)
        if isinstance(x, Tensor) and type(x) is not MaskedTensor and x.dim() > 1 and tuple(x.shape[:2]) == batch:
            return gathered(tokens, x)
        return x

    labels = {name: _labels(value, tokens) for name, value in kept.items() if name == "labels" and _is_batch(value)}
    rest = {name: value for name, value in kept.items() if name not in labels}
    entered_args, entered_rest = tree_map(enter, (args, rest))
    return entered_args, {**entered_rest, **labels}


def _is_batch(x: Any) -> bool:
    return type(x) is MaskedTensor and x.dim() > 1


def _says_the_same(name: str, value: Any, tokens: FlatTokens) -> bool:
    """Whether an argument is an attention mask, plain or masked, that says what the mask of the batch says."""
    if name != "attention_mask" or not isinstance(value, Tensor):
        return False
    plain = value.filled(0) if type(value) is MaskedTensor else value
    if tuple(plain.shape) != tokens.grid.shape or not bool(((plain != 0) == tokens.grid.mask.to(plain.device)).all()):
        raise ValueError(
            "mt.flat: attention_mask says something else than the mask of the batch; leave attention_mask out"
        )
    return True


def _record(x: MaskedTensor) -> Packed:
    stored = stored_tokens(x)
    if not stored.is_plain_grid or stored.order[:2] != ((0,), (1,)):
        raise ValueError("mt.flat takes batches (B, T, ...), with the batch first and time second")
    return stored


def _flattened(x: MaskedTensor, tokens: FlatTokens) -> Tensor:
    """An input beside the batch, or the batch itself, as plain tokens ``(1, N, ...)``."""
    stored = _record(x)
    if stored.inner is not None:
        return to_flat(x).values  # raises, and names the step
    if not same_places(stored.grid.on(tokens.grid.device), tokens.grid):
        raise ValueError(_other_lengths(stored, tokens))
    return tokens_of(stored).values


def _other_lengths(stored: Packed, tokens: FlatTokens) -> str:
    return (
        f"mt.flat: two inputs have different lengths, {stored.grid.sizes} and {tokens.grid.sizes} of batches "
        f"{tuple(stored.grid.shape)} and {tuple(tokens.grid.shape)}; all that is masked must have the same steps"
    )


def _labels(x: MaskedTensor, tokens: FlatTokens) -> Tensor:
    """Masked labels at the tokens; those that are missing do not count."""
    if x.is_floating_point():
        return _flattened(x, tokens)
    if tuple(x.shape[:2]) != tokens.grid.shape:
        raise ValueError(
            f"mt.flat: labels of shape {tuple(x.shape)} beside a batch of shape {tuple(tokens.grid.shape)}"
        )
    valid = x.mask
    if bool((valid.flatten(2).any(2) if valid.dim() > 2 else valid).logical_and(~tokens.grid.mask).any()):
        raise ValueError("mt.flat: a label is valid where the batch has no step; leave it out of the labels")
    return gathered(tokens, x.filled(IGNORED))


def _kind_of_call(args: Any, kwargs: Any) -> Any:
    def kind(x: Any) -> Any:
        return (x.dtype, x.dim()) if isinstance(x, Tensor) else x if isinstance(x, (bool, str, type(None))) else type(x)

    return tuple(map(kind, tree_leaves(args))), tuple(
        (name, *map(kind, tree_leaves(value))) for name, value in sorted(kwargs.items())
    )


# ---------------------------------------------------------------------------------------------------- what goes out


def _left(out: Any, tokens: FlatTokens) -> Any:
    number = tokens.grid.index.shape[0]

    def leave(x: Any) -> Any:
        if isinstance(x, Tensor) and type(x) is not MaskedTensor and x.dim() > 1 and tuple(x.shape[:2]) == (1, number):
            return from_flat(x, tokens)
        return x

    return tree_map(leave, out)


__all__ = ["flat"]

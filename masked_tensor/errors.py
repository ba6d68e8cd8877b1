"""Error types and the wording of the engine's own errors.

::

    RuntimeError
    +-- MaskedWriteError        a masked value would be written into a plain tensor
    +-- MaskedSizeError         a size that counts masked entries was asked for inside of ``strict()``
    NotImplementedError
    +-- UnsupportedOpError      no masked meaning is known for an op
    ValueError
    +-- MaskedValueError        a masked-out scalar was asked for its value
        +-- MaskMismatchError   ``meaning(mismatch="raise")`` saw two different masks
    UserWarning
    +-- MaskedSizeWarning       a size that counts masked entries was asked for
    +-- MaskedLossWarning       a backward pass begins at losses without a valid entry
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from .compat import is_wrapped


class MaskedValueError(ValueError):
    """The error for reading the value of a masked entry, as in ``bool(x)``, ``x.item()`` and ``float(x)``.

    Inside :func:`strict`, it is also raised for a backward pass that starts at masked entries only: see
    :class:`MaskedLossWarning`.

    Example:
        >>> mt.masked_tensor([None, None]).sum().item()
        Traceback (most recent call last):
        ...
        masked_tensor.errors.MaskedValueError: item(): the value is masked; use ...
    """


class MaskMismatchError(MaskedValueError):
    """The error for operands with different masks under ``meaning(mismatch="raise")`` or :func:`strict`.

    Example:
        >>> with mt.meaning(mismatch="raise"):
        ...     mt.masked_tensor([1, None]) + mt.masked_tensor([None, 1])
        Traceback (most recent call last):
        ...
        masked_tensor.errors.MaskMismatchError: two operands have different masks, and ...
    """


class MaskedWriteError(RuntimeError):
    """The error for writing a masked tensor into a plain tensor, which cannot hold its mask.

    Example:
        >>> torch.zeros(2).add_(mt.masked_tensor([1.0, None]))
        Traceback (most recent call last):
        ...
        masked_tensor.errors.MaskedWriteError: cannot write a masked tensor into ...
    """


class MaskedSizeWarning(UserWarning):
    """The warning for ``numel()`` of a masked tensor, which includes masked entries.

    A mean that divides by it is wrong; use ``x.count()``. The warning is issued once for each place in a program that
    calls it, except inside torch. ``warnings.filterwarnings("error", category=mt.MaskedSizeWarning)`` turns it into an
    error, and ``"ignore"`` silences it.

    Example:
        >>> import warnings
        >>> with warnings.catch_warnings(record=True) as seen:
        ...     warnings.simplefilter("always")
        ...     mt.masked_tensor([1.0, None]).numel(), seen[0].category.__name__
        (2, 'MaskedSizeWarning')
    """


class MaskedLossWarning(UserWarning):
    """The warning for a backward pass that starts at masked entries only, which adds 0 to every gradient.

    A batch without labels has nothing to train on. A sum ``a + b`` is masked where either loss is; :func:`total` adds
    the valid ones. Each such pass issues the warning, and Python's filters decide how often it is shown. Inside
    :func:`strict`, MaskedValueError is raised instead, except with several ranks, since the others would wait forever.
    On a GPU, the warning is issued at the next backward pass or at the end of ``strict()``, so that nothing waits.
    Inside :class:`mean_over`, it refers to the mean over all parts.

    Example:
        >>> import warnings
        >>> loss = mt.masked_tensor([None, 1.0])[:1].requires_grad_().sum()
        >>> with warnings.catch_warnings(record=True) as seen:
        ...     warnings.simplefilter("always")
        ...     loss.backward()
        ...     seen[0].category.__name__
        'MaskedLossWarning'
    """


class MaskedSizeError(RuntimeError):
    """The error for ``numel()`` and other counts that include masked entries, inside ``strict()``.

    Example:
        >>> with mt.strict():
        ...     mt.masked_tensor([1.0, None]).numel()
        Traceback (most recent call last):
        ...
        masked_tensor.errors.MaskedSizeError: numel() counts masked entries as well; use ...
    """


class UnsupportedOpError(NotImplementedError):
    """The error for an operator that is not supported for masked tensors, or not for their layout.

    The message names ways out, such as ``to_dense()``. ``extend.register_rule`` adds support for an operator.

    Example:
        >>> torch.hash_tensor(mt.masked_tensor([1.0, None]))
        Traceback (most recent call last):
        ...
        masked_tensor.errors.UnsupportedOpError: aten::hash_tensor is not supported for ...
    """


def numel_counts_masked(name: str) -> str:
    """What ``numel()`` says of itself."""
    return f"{name}() counts masked entries as well; use x.count() for the valid ones, x.shape.numel() for all"


NO_VALID_ROOT = (
    "backward() was called on a masked loss, so it adds 0 to every gradient. A sum a + b is masked if either loss is; "
    "masked_tensor.total(a, b) adds up the losses that exist"
)


def counts_made(op: str) -> MaskedSizeError:
    """Inside of ``strict()`` a tensor that ``new_ones`` made of a masked one is counted."""
    return MaskedSizeError(
        f"{op} would count masked entries: new_ones() and new_full() of a masked tensor are valid everywhere. Use "
        "torch.ones_like(x), which keeps the mask, or x.count(); a masked index skips its entry"
    )


def unsupported(op: str, masked: Sequence[str]) -> UnsupportedOpError:
    """``op``: the operator's full name; ``masked``: which arguments were masked."""
    where = ", ".join(masked) or "an argument"
    return UnsupportedOpError(
        f"{op} is not supported for masked tensors (masked: {where}). Call it on x.filled(value) or x.compressed(), or "
        f"define what it does with @masked_tensor.extend.register_rule({op!r})"
    )


def must_be_plain(op: str, argument: str) -> UnsupportedOpError:
    """An argument was masked that the operator's rule takes plain only."""
    return UnsupportedOpError(f"{argument} of {op} must not be masked; use {argument}.filled(value)")


def not_inexact(name: str, dtype: torch.dtype) -> RuntimeError:
    """A mean (softmax, norm ...) of integers, which would be cut off."""
    return RuntimeError(f"{name}(): input dtype must be floating point or complex, got {dtype}")


def no_sparse_functional_rule(name: str, input: Tensor) -> UnsupportedOpError:
    """A functional form was given a sparse input, of which it would make something dense."""
    return UnsupportedOpError(
        f"masked_tensor.{name} does not support {input.layout} inputs; use input.to_dense() and the same mask"
    )


def no_sparse_rule(op: str, layout: torch.layout, reason: str = "") -> UnsupportedOpError:
    """An op was called on a sparse masked tensor, and it has no rule for that."""
    because = f" ({reason})" if reason else ""
    return UnsupportedOpError(
        f"{op} does not support masked tensors of layout {layout}{because}; use x.to_dense(), which keeps the mask"
    )


def past_the_mask(action: str, way_out: str) -> UnsupportedOpError:
    """Something that works on memory, where a mask is not seen."""
    return UnsupportedOpError(f"{action} would ignore the mask, so it is not available on a masked tensor; {way_out}")


def plain_target(op: str) -> MaskedWriteError:
    """A masked operand of an in-place or ``out=`` call whose target is a plain tensor."""
    text = (
        f"cannot write a masked tensor into a plain tensor, which has no mask ({op}). Write x.filled(value), or make "
        "the target masked first: as_masked_tensor(target, True). If a library makes the target, call it inside "
        "masked_factories()"
    )
    if "index_" in op:  # AdaptiveLogSoftmaxWithLoss, the dense batches of PyG
        text += "; if it sorts rows by labels, pass it masked_tensor.select_valid(rows, labels, dim=1)"
    return MaskedWriteError(text)


def masked_parts(op: str, names: Sequence[str]) -> UnsupportedOpError:
    """A sparse tensor was to be made of masked indices or values."""
    return UnsupportedOpError(
        f"{' and '.join(names)} must not be masked ({op}). Make the sparse tensor of the valid entries alone "
        "(x.get_data()[:, valid]) and pass it to as_masked_tensor, which masks the entries it does not store"
    )


def masked_scalar(action: str) -> MaskedValueError:
    """A masked-out scalar asked for its value."""
    such_as = ", as in loss.filled(0).item() for a batch without labels" if action == "item()" else ""
    return MaskedValueError(f"{action}: the value is masked; use x.filled(value) to choose one{such_as}")


def masked_state(op: str) -> MaskMismatchError:
    """Inside of ``strict()`` a recurrent cell was given a masked step, over which it would carry its state."""
    return MaskMismatchError(
        f"inside strict() a recurrent cell cannot skip a masked step: its state would stay valid ({op}). Run the whole "
        "layer (nn.LSTM, nn.GRU, nn.RNN) over the batch, or leave strict()"
    )


def bad_mask(name: str, mask: Tensor, data: Tensor) -> TypeError | ValueError:
    """A mask (or condition) of the wrong dtype (TypeError) or shape (ValueError)."""
    wrong_dtype = mask.dtype is not torch.bool
    missing = data.dim() - mask.dim()
    way_out = ""
    if wrong_dtype and name == "condition":
        way_out = f"; use {name}.bool()"
    elif wrong_dtype:
        way_out = _of_floats(name)
    elif mask.dim() and missing > 0 and _first(mask.shape, data.shape):
        way_out = f"; it matches the first dimensions of data: use {name}{'.unsqueeze(-1)' * missing}"
    elif missing == 1 and (left_out := _left_out(mask.shape, data.shape)) is not None:
        way_out = f"; it lacks dimension {left_out} of data: use {name}.unsqueeze({left_out})"
    return (TypeError if wrong_dtype else ValueError)(
        f"{name} must be a bool tensor broadcastable to data's shape {tuple(data.shape)}, got "
        f"{dtype_name(mask.dtype)} {tuple(mask.shape)}{way_out}"
    )


def mask_of_floats(name: str, mask: Tensor) -> TypeError:
    """A functional form was given a mask of floats, of which 0 means masked, or in an additive one valid."""
    return TypeError(f"{name} must be a bool tensor, got {dtype_name(mask.dtype)}{_of_floats(name)}")


def _of_floats(name: str) -> str:
    return f"; use {name} != 0 for zeros and ones, {name} == 0 for an additive mask of 0 and -inf"


def _first(shape: Sequence[int], whole: Sequence[int]) -> bool:
    return all(size in (1, wanted) for size, wanted in zip(shape, whole, strict=False))


def _left_out(shape: Sequence[int], whole: Sequence[int]) -> int | None:
    """The dimension of ``whole`` without which ``shape`` fits: 1 of (B, H, W) for (B, C, H, W)."""
    return next((d for d in range(1, len(whole)) if _first(shape, [*whole[:d], *whole[d + 1 :]])), None)


def expect_shape(name: str, x: Tensor, *shapes: Sequence[int]) -> None:
    """Raises unless ``given`` has one of ``shapes``, as torch's kernels do; a rule of several ops would broadcast."""
    if not any(tuple(x.shape) == tuple(shape) for shape in shapes):
        raise RuntimeError(f"{name} must have shape {tuple(shapes[0])}, got {tuple(x.shape)}")


def expect_positions(name: str, x: Tensor) -> None:
    """Raises for a condition in place of positions or classes: it would be read as 0 and 1, or select by itself."""
    if x.dtype is torch.bool:
        raise IndexError(
            f"{name} must be int64, got bool; call .long() on it for positions 0 and 1, or select with x[condition]"
        )


FUNCTIONAL_FORMS = "pass it plain tensors and use the functional forms, such as masked_tensor.sum(input, mask=mask)"


def inside_transform() -> RuntimeError:
    """Inside of a compiled function a torch.func transform was to differentiate a masked tensor."""
    return RuntimeError(
        "inside torch.compile, a torch.func transform cannot differentiate a masked tensor; call the transform "
        f"outside the compiled function, or {FUNCTIONAL_FORMS}"
    )


def read_while_compiling(action: str) -> UnsupportedOpError:
    """What a compiled graph cannot give, since its sizes stand in the mask: Dynamo leaves the call to eager code."""
    return UnsupportedOpError(
        f"{action}() reads the mask's values, which a compiled graph does not know. Call it outside the compiled "
        "function, or use x.get_mask() inside it"
    )


def exporting() -> RuntimeError:
    """A masked tensor was to be made or left while ``torch.export`` traces, which cannot see into it."""
    return RuntimeError(
        "torch.export cannot trace a masked tensor. Export a program of plain tensors and the functional forms, such "
        "as masked_tensor.sum(input, mask=mask), or use torch.compile"
    )


def forward_mode_traced() -> RuntimeError:
    """A tangent of a masked tensor was to be recorded by a tracer, which would make a constant of it."""
    return RuntimeError(
        "forward-mode AD of a masked tensor cannot be traced (linearize, make_fx, torch.compile). Use torch.func.jvp, "
        "or let the function accept and return plain tensors: x.filled(0)"
    )


def no_tangent(name: str) -> RuntimeError:
    """An op whose derivative in forward mode is 0 in torch, silently and wrong, was to be differentiated so."""
    return RuntimeError(
        f"{name} has no derivative in forward mode: torch's own is 0 whatever the input; use reverse mode (grad, vjp, "
        "jacrev)"
    )


def function_in_transform(name: str) -> RuntimeError:
    """A user's ``autograd.Function`` would take a masked tensor inside of a transform for a constant."""
    return RuntimeError(
        f"{name}, a torch.autograd.Function, does not support masked tensors inside a torch.func transform. Write it "
        "with torch's own ops, or pass it plain tensors: x.filled(0)"
    )


def transforms_lack(names: list[str]) -> str:
    """A torch without what ``torch.func`` over masked tensors is built on."""
    return (
        f"torch {torch.__version__} lacks {', '.join(names)}, which torch.func over masked tensors builds on: do not "
        "use its transforms with them; this version of masked_tensor is made for torch 2.11 to 2.15"
    )


def operator_in_transform() -> RuntimeError:
    """A transform has an op on a masked tensor whose name was not known when the kernels were registered."""
    return RuntimeError(
        "a torch.func transform would ignore the mask in the derivative of another library's operator. Give the "
        "operator a rule (register_rule), or pass it plain tensors: x.filled(0)"
    )


def write_outside_transform(op: str) -> RuntimeError:
    """A function that is transformed writes into a masked tensor of its surroundings, or into an unbatched one."""
    return RuntimeError(
        f"{op} writes in place into a masked tensor from outside the torch.func transform; use the op that returns a "
        "new tensor"
    )


def incomplete_second_derivative(node: str) -> RuntimeError:
    """The gradient of an intermediate result was asked for, and its own derivative was made of that result."""
    return RuntimeError(
        "the second derivative with respect to an intermediate masked tensor would be incomplete: "
        f"{node} keeps that tensor (create_graph=True). Ask for the gradient of a leaf, or use torch.func.grad twice"
    )


def below_autograd(op: str, args: Sequence[object]) -> RuntimeError:
    """Autograd took the op before its rule: of another device, or of a tensor subclass that holds a masked tensor."""
    devices = dict.fromkeys(str(a.device) for a in args if isinstance(a, Tensor))
    if len(devices) > 1:
        return RuntimeError(f"{op} needs all tensors on one device, got {' and '.join(devices)}; use x.to(device)")
    return UnsupportedOpError(
        "a masked tensor lies inside another tensor subclass (such as a DTensor or a nested tensor), whose gradient "
        f"would ignore the mask ({op}). Put the masked tensor outside: as_masked_tensor(outer_data, outer_mask), "
        "masked_tensor(nested); or work under torch.no_grad()"
    )


def not_made() -> RuntimeError:
    """A plain tensor was given the class alone."""
    return RuntimeError(
        "this MaskedTensor has no data and no mask, since plain.as_subclass(MaskedTensor) only changes the class; use "
        "as_masked_tensor(plain, mask)"
    )


def not_masked(action: str, x: object) -> TypeError:
    """An exit was given something else than a masked tensor."""
    if isinstance(x, Tensor) and is_wrapped(x):
        return TypeError(f"{action}() cannot see through a torch.func transform; {FUNCTIONAL_FORMS}")
    kind = "tensors" if action == "select_valid" else "a masked tensor"
    return TypeError(f"{action}() expects {kind}, got {type(x).__name__}")


def leaves_silently(action: str, way_out: str) -> MaskedValueError:
    """A conversion to something that has no mask was asked of a tensor with masked entries."""
    return MaskedValueError(f"{action} would drop the mask; use {way_out}")


def dtype_name(dtype: torch.dtype) -> str:
    """``float32`` for ``torch.float32``."""
    return str(dtype).removeprefix("torch.")

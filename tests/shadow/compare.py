"""What a call gave, and how two calls differ."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_flatten

import masked_tensor as mt
from masked_tensor.engine.tensor import pair_of

from .copies import Arguments, Built, Masking

UNINITIALISED = ("empty_like", "new", "new_empty", "new_empty_strided", "resize_as_", "resize_", "empty")


@dataclass
class Outcome:
    """What one repetition gave."""

    built: Built
    error: Exception | None = None
    kind: Any = None
    leaves: tuple[Any, ...] = ()
    random: tuple[Tensor, ...] = ()
    gradients: list[Tensor | None] | None = None
    gradient_error: Exception | None = None


def repeat(
    function: Callable[..., Any], arguments: Arguments, masking: Masking, seed: Tensor, tracked: bool
) -> Outcome:
    """Calls ``function`` on copies of ``arguments``, from the random state ``seed``; gradients, if there are any."""
    built = arguments.build(masking, tracked)
    outcome = Outcome(built)
    torch.set_rng_state(seed)
    try:
        result = function(*built.args, **built.kwargs)
    except Exception as error:
        outcome.error = error
        return outcome
    outcome.random = (torch.get_rng_state(), *(generator.get_state() for generator in built.generators))
    leaves, _ = tree_flatten(result)
    outcome.kind, outcome.leaves = type(result), tuple(leaves)
    return outcome


def differentiate(outcome: Outcome, writes: bool) -> None:
    """The gradients of a weighted sum of the results, and of the arguments if the call ``writes``, in ``outcome``."""
    tensors = outcome.built.tensors
    results = [x for x in outcome.leaves if isinstance(x, Tensor) and not any(x is y for y in tensors)]
    ends = [x for x in results if x.requires_grad]
    ends += [x * 1 for x in tensors if writes and x.requires_grad and not x.is_leaf]
    wanted = [x for x in outcome.built.leaves if x is not None]
    if not ends or not wanted:
        return
    random = torch.Generator().manual_seed(3)
    weights = [torch.rand(x.shape, generator=random, dtype=torch.float64).to(x.dtype) for x in ends]
    outcome.gradients = list(torch.autograd.grad(ends, wanted, weights, allow_unused=True))


def data_of(x: Tensor) -> Tensor:
    return pair_of(x).data if mt.is_masked_tensor(x) else x


def mask_of(x: Tensor) -> Tensor:
    return pair_of(x).mask if mt.is_masked_tensor(x) else torch.ones((), dtype=torch.bool).expand(x.shape)


def near(a: Tensor, b: Tensor) -> bool:
    """Whether two plain tensors are the same up to torch's tolerance, or to rounding of the largest; NaN is NaN."""
    if a.dtype is torch.complex32:  # torch compares none
        a, b = a.to(torch.complex64), b.to(torch.complex64)
    if a.is_meta or torch.equal(a, b):  # of no values their shapes were compared
        return True
    try:
        torch.testing.assert_close(a, b, equal_nan=True, check_stride=False)
    except AssertionError:
        return within_rounding(a, b)
    return True


def within_rounding(a: Tensor, b: Tensor) -> bool:
    """Whether no difference is more than a few units of the largest value: sums are added in another order."""
    if not (a.dtype.is_floating_point or a.dtype.is_complex) or not a.isfinite().equal(b.isfinite()):
        return False
    finite = a.isfinite()
    units = 2 if a.dtype.itemsize == 2 else 16
    unit = torch.finfo(a.dtype).eps * b[finite].abs().max().double()
    special = torch.equal(a[~finite].nan_to_num(), b[~finite].nan_to_num())
    return special and bool((a[finite] - b[finite]).abs().max().double() <= units * unit)


def strides(x: Tensor) -> tuple[int, ...]:
    """The strides that matter."""
    return tuple(s for n, s in zip(x.shape, x.stride(), strict=True) if n > 1) if x.shape.numel() else ()


def differs(ours: Outcome, theirs: Outcome, name: str, masked: bool) -> Iterator[str]:
    """Each way in which ``ours`` is not ``theirs``; ``masked``: both are of masked tensors, with other garbage."""
    if ours.error is not None or theirs.error is not None:
        yield from differing_errors(ours.error, theirs.error, masked)
        return
    if ours.kind is not theirs.kind and not (issubclass(ours.kind, Tensor) and issubclass(theirs.kind, Tensor)):
        yield f"type: {ours.kind.__name__}, not {theirs.kind.__name__}"
        return
    if len(ours.leaves) != len(theirs.leaves):
        yield f"results: {len(ours.leaves)}, not {len(theirs.leaves)}"
        return
    values = name.rpartition(".")[2] not in UNINITIALISED
    for i, (a, b) in enumerate(zip(ours.leaves, theirs.leaves, strict=True)):
        for detail in differing(a, b, masked, values):
            yield f"result {i}: {detail}"
        if isinstance(a, Tensor) and isinstance(b, Tensor):
            yield from differing_memory(i, a, b, ours.built.tensors, theirs.built.tensors)
    for i, (a, b) in enumerate(zip(ours.built.tensors, theirs.built.tensors, strict=True)):
        for detail in differing(a, b, masked, values, written=True):
            yield f"argument {i}: {detail}"
    if any(not torch.equal(a, b) for a, b in zip(ours.random, theirs.random, strict=True)):
        yield "random: another state of the generator"


def differing_errors(ours: Exception | None, theirs: Exception | None, masked: bool) -> Iterator[str]:
    if theirs is None:
        yield f"raises {type(ours).__name__}: {str(ours).splitlines()[0] if str(ours) else ''}"
    elif ours is None:
        yield f"does not raise {type(theirs).__name__}: {str(theirs).splitlines()[0] if str(theirs) else ''}"
    elif masked and (type(ours) is not type(theirs) or str(ours) != str(theirs)):
        yield f"raises {type(ours).__name__}: {ours}, not {type(theirs).__name__}: {theirs}"


def differing(a: Any, b: Any, masked: bool, values: bool, written: bool = False) -> Iterator[str]:
    """How two results differ."""
    if not isinstance(a, Tensor) or not isinstance(b, Tensor):
        if not same(a, b):
            yield f"value: {a!r}, not {b!r}"
        return
    if masked and type(a) is not type(b):
        yield f"class: {type(a).__name__}, not {type(b).__name__}"
    if not masked and not written and not mt.is_masked_tensor(a):
        yield "class: a plain tensor"
    if a.dtype != b.dtype:
        yield f"dtype: {a.dtype}, not {b.dtype}"
    elif a.shape != b.shape:
        yield f"shape: {tuple(a.shape)}, not {tuple(b.shape)}"
    elif a.layout is not b.layout:
        yield f"layout: {a.layout}, not {b.layout}"
    elif a.layout is not torch.strided:
        if values and not near(dense(a), dense(b)):
            yield f"value: {head(dense(a))}, not {head(dense(b))}"
    else:
        if strides(a) != strides(b):
            yield f"strides: {a.stride()}, not {b.stride()} of {tuple(a.shape)}"
        if a.requires_grad != b.requires_grad:
            yield f"requires_grad: {a.requires_grad}, not {b.requires_grad}"
        if a.device.type == "meta":  # without values
            return
        mask = mask_of(a)
        if not torch.equal(mask, mask_of(b)):
            yield f"mask: {int(mask.sum())} valid, not {int(mask_of(b).sum())} of {mask.numel()}"
            mask = mask & mask_of(b)
        if values and not near(data_of(a).detach()[mask], data_of(b).detach()[mask]):
            yield f"value: {head(data_of(a)[mask])}, not {head(data_of(b)[mask])}"


def dense(x: Tensor) -> Tensor:
    """A sparse tensor as a strided one, with 0 where nothing is stored or valid."""
    x = (x.filled(0) if mt.is_masked_tensor(x) else x).detach()
    return (x.to(torch.complex64) if x.dtype is torch.complex32 else x).to_dense()  # torch adds no complex32


def head(x: Tensor) -> list[Any]:
    """The first few values."""
    return x.detach().flatten()[:6].tolist()


def same(a: Any, b: Any) -> bool:
    if isinstance(a, float) and isinstance(b, float):
        return a == b or (a != a and b != b) or abs(a - b) <= 1e-6 * max(abs(a), abs(b))
    if type(a) is not type(b):
        return False
    if isinstance(a, complex):
        return same(a.real, b.real) and same(a.imag, b.imag)
    try:
        return bool(a == b) or type(a).__eq__ is object.__eq__
    except Exception:
        return True


def differing_memory(i: int, a: Tensor, b: Tensor, ours: list[Tensor], theirs: list[Tensor]) -> Iterator[str]:
    """Whether a result is the same argument as there, and shares memory with the same arguments."""
    for j, (x, y) in enumerate(zip(ours, theirs, strict=True)):
        if (a is x) != (b is y):
            yield f"identity: result {i} {'is' if a is x else 'is not'} argument {j}"
        elif shares(a, x) != shares(b, y):
            yield f"memory: result {i} {'shares' if shares(a, x) else 'does not share'} that of argument {j}"


def shares(a: Tensor, b: Tensor) -> bool:
    """Whether two strided tensors lie in one memory."""
    a, b = data_of(a), data_of(b)
    if not a.layout is b.layout is torch.strided:
        return a is b
    return a.untyped_storage()._cdata == b.untyped_storage()._cdata and a.shape.numel() > 0


def differing_gradients(ours: Outcome, theirs: Outcome, masked: bool) -> Iterator[str]:
    """How the gradients of two repetitions differ; no gradient is the gradient 0."""
    if (ours.gradients is None) != (theirs.gradients is None):
        yield "gradient: none, where there is one" if ours.gradients is None else "gradient: one, where there is none"
        return
    leaves = [x for x in ours.built.leaves if x is not None]
    for i, (a, b) in enumerate(zip(ours.gradients or (), theirs.gradients or (), strict=True)):
        if a is None and b is None:
            continue
        if a is not None and type(a) is not (mt.MaskedTensor if mt.is_masked_tensor(leaves[i]) else Tensor):
            yield f"gradient {i}: a {type(a).__name__} of a {type(leaves[i]).__name__}"
        if a is None or b is None:
            found = data_of(a if b is None else b)
            if found.count_nonzero():
                yield f"gradient {i}: {'none' if a is None else 'one'}, where there is {'none' if b is None else 'one'}"
            continue
        if a.shape != b.shape or a.dtype != b.dtype:
            yield f"gradient {i}: {a.dtype} of {tuple(a.shape)}, not {b.dtype} of {tuple(b.shape)}"
        elif not torch.equal(mask_of(a), mask_of(b)):
            yield f"gradient {i}: mask: {int(mask_of(a).sum())} valid, not {int(mask_of(b).sum())}"
        elif not near(*(own := [data_of(x).detach().to_dense() for x in (a, b)])):
            yield f"gradient {i}: value: {head(own[0])}, not {head(own[1])}"

"""Copies of a call's arguments: plain or masked, with the same strides, identities and shared memory."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import TreeSpec, tree_flatten, tree_unflatten

import masked_tensor as mt

LARGEST = 1 << 18  # bytes of memory behind a tensor: what is larger is not repeated


class Unfit(Exception):
    """A call that is not repeated, and why."""


class Moved(torch.autograd.Function):
    """The same values in other memory: a tensor that is no leaf."""

    @staticmethod
    def forward(ctx: Any, leaf: Tensor) -> Tensor:
        return copied(leaf.detach())

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        return grad


def copied(x: Tensor) -> Tensor:
    """A copy in a memory of its own, with the size, strides and offset of ``x``."""
    return placed(x, x.untyped_storage().clone())


def placed(x: Tensor, storage: torch.UntypedStorage) -> Tensor:
    """``x`` as it would lie in ``storage``."""
    base = torch.empty(0, dtype=x.dtype).set_(storage, x.storage_offset(), x.size(), x.stride())
    base = base.conj() if x.is_conj() else base
    return base._neg_view() if x.is_neg() else base


def in_vmap() -> bool:
    """Whether the vmap that torch had before functorch is at work, by which gradcheck batches gradients."""
    torch._C._vmapmode_increment_nesting()
    return bool(torch._C._vmapmode_decrement_nesting() > 0)


def fit(x: Tensor) -> bool:
    """Whether ``x`` is a plain strided tensor of this machine that is not too large to repeat."""
    return (
        type(x) in (Tensor, torch.nn.Parameter)
        and x.layout is torch.strided
        and x.device.type == "cpu"
        and not torch._C._functorch.is_functorch_wrapped_tensor(x)
        and not x.is_quantized
        and not x.is_nested
        and not x.is_inference()
        and (x.untyped_storage().nbytes() == 0 or x.untyped_storage().data_ptr() != 0)
    )


def is_usable(x: Tensor) -> bool:
    """Whether the memory of ``x`` was not taken away, and torch lets it be differentiated after writes to its base."""
    try:
        with torch.enable_grad():
            asked = (x.requires_grad, x.is_leaf)  # torch refuses to say it
        return None not in asked and last_element(x) * x.dtype.itemsize <= x.untyped_storage().nbytes()
    except RuntimeError:
        return False


def last_element(x: Tensor) -> int:
    """Behind which element of its memory ``x`` ends."""
    steps = sum((n - 1) * step for n, step in zip(x.size(), x.stride(), strict=True))
    return x.storage_offset() + steps + 1 if x.numel() else 0


@dataclass(frozen=True)
class Masking:
    """Which tensors of a call are masked (by their number), how many of their entries, and what lies under the mask."""

    which: frozenset[int] = frozenset()
    valid: float = 1.0
    garbage: float | None = None


@dataclass
class Built:
    """Arguments made for one repetition."""

    args: Any
    kwargs: Any
    tensors: list[Tensor]  # in the order of the call, each once
    leaves: list[Tensor | None]  # what their gradients arrive at
    generators: list[torch.Generator]
    versions: list[int] = field(default_factory=list)

    def written(self) -> list[Tensor]:
        """The tensors that were written in place since."""
        return [x for x, version in zip(self.tensors, self.versions, strict=True) if x._version != version]


@dataclass
class Arguments:
    """What a call was given, kept as it was before the call."""

    leaves: list[Any]
    spec: TreeSpec
    tensors: list[Tensor] = field(default_factory=list)
    storages: list[torch.UntypedStorage] = field(default_factory=list)
    homes: list[int] = field(default_factory=list)  # in which of the storages each tensor lies
    generators: list[Tensor] = field(default_factory=list)  # their states

    @classmethod
    def of(cls, args: Any, kwargs: Any) -> "Arguments":
        """Raises Unfit for calls without a tensor or inside of a transform, and for tensors that cannot be copied."""
        if in_vmap() or torch._C._functorch.maybe_current_level() is not None or torch.is_inference_mode_enabled():
            raise Unfit("inside of a transform or of inference mode")
        if torch._C._autograd._top_saved_tensors_default_hooks(True) is not None:
            raise Unfit("where saved tensors are counted, as in a checkpoint")
        leaves, spec = tree_flatten((args, kwargs))
        new = cls(leaves, spec)
        seen: dict[int, int] = {}
        for leaf in leaves:
            if isinstance(leaf, torch.Generator):
                new.generators.append(leaf.get_state())
            if not isinstance(leaf, Tensor) and hasattr(type(leaf), "__torch_function__"):
                raise Unfit("an object of another kind")
            if not isinstance(leaf, Tensor) or any(leaf is x for x in new.tensors):
                continue
            if not fit(leaf):
                raise Unfit("a tensor of another kind")
            storage = leaf.untyped_storage()
            if not is_usable(leaf):
                raise Unfit("a view that torch refuses to read")
            if storage.nbytes() > LARGEST or leaf.numel() * leaf.dtype.itemsize > LARGEST:
                raise Unfit("too large")
            if storage._cdata not in seen:
                seen[storage._cdata] = len(new.storages)
                new.storages.append(storage.clone())
            new.homes.append(seen[storage._cdata])
            new.tensors.append(leaf)
        if not new.tensors:
            raise Unfit("no tensor")
        for home in range(len(new.storages)):
            if len({x.dtype for x, h in zip(new.tensors, new.homes, strict=True) if h == home}) > 1:
                raise Unfit("one memory in two dtypes")
        return new

    def shape(self) -> tuple[Any, ...]:
        """What two calls have in common that are the same but for values."""
        parts: list[Any] = [str(self.spec)]
        for leaf in self.leaves:
            if isinstance(leaf, Tensor):
                parts.append((leaf.dtype, leaf.size(), leaf.stride(), leaf.requires_grad, leaf.is_leaf))
            else:
                parts.append(repr(leaf) if not callable(leaf) else getattr(leaf, "__name__", ""))
        return tuple(parts)

    def differentiable(self) -> bool:
        return any(x.is_floating_point() or x.is_complex() for x in self.tensors)

    def build(self, masking: Masking, tracked: bool) -> Built:
        """Fresh arguments; ``tracked`` makes everything that can have a gradient require one, as no leaf."""
        masks = list(self._masks(masking.valid))
        storages = [storage.clone() for storage in self.storages]
        if masking.garbage is not None:
            for home in {self.homes[i] for i in masking.which}:
                poison(self._flat(home, storages[home]), masks[home], masking.garbage)
        built = Built(None, None, [], [], [torch.Generator().set_state(state.clone()) for state in self.generators])
        for i, (x, home) in enumerate(zip(self.tensors, self.homes, strict=True)):
            if last_element(x) * x.dtype.itemsize > storages[home].nbytes():
                raise Unfit("an argument that the call itself resized")
            if not is_usable(x):
                raise Unfit("a view whose base the call itself wrote")
            with torch.no_grad():
                data = leaf = placed(x, storages[home])
            masked, wanted = (
                i in masking.which,
                x.requires_grad or (tracked and (x.dtype.is_floating_point or x.dtype.is_complex)),
            )
            with torch.enable_grad():
                if wanted and not (x.is_leaf and x.requires_grad):
                    data = Moved.apply(leaf.requires_grad_())
                    wanted = False
                if masked:
                    data = mt.as_masked_tensor(data, masks[home].as_strided(x.size(), x.stride(), x.storage_offset()))
                if wanted:
                    leaf = data.requires_grad_()
            built.tensors.append(data)
            built.leaves.append(leaf if leaf.requires_grad else None)
        built.versions += [x._version for x in built.tensors]
        generators = iter(built.generators)
        made = [
            self._of(leaf, built.tensors)
            if isinstance(leaf, Tensor)
            else next(generators)
            if isinstance(leaf, torch.Generator)
            else leaf
            for leaf in self.leaves
        ]
        built.args, built.kwargs = tree_unflatten(made, self.spec)
        return built

    def _of(self, leaf: Tensor, tensors: list[Tensor]) -> Tensor:
        return next(made for x, made in zip(self.tensors, tensors, strict=True) if x is leaf)

    def _flat(self, home: int, storage: torch.UntypedStorage) -> Tensor:
        """All elements of a memory."""
        dtype = self.tensors[self.homes.index(home)].dtype
        return torch.empty(0, dtype=dtype).set_(storage)

    def _masks(self, valid: float) -> Iterator[Tensor]:
        """For each memory, which of its elements are valid: views of one memory agree."""
        random = torch.Generator().manual_seed(5)
        for home, storage in enumerate(self.storages):
            yield torch.rand(self._flat(home, storage).numel(), generator=random) < valid


#: What torch has few kernels for, by their bits.
SIGNED = {torch.uint16: torch.int16, torch.uint32: torch.int32, torch.uint64: torch.int64}


def poison(flat: Tensor, valid: Tensor, garbage: float) -> None:
    """Puts ``garbage`` where ``valid`` is False, as far as the dtype can hold it; bools are inverted."""
    if flat.dtype is torch.bool:
        flat.logical_xor_(~valid)
    elif flat.dtype.is_floating_point or flat.dtype.is_complex:
        number = min(garbage, torch.finfo(flat.dtype).max) if garbage == 1e30 else garbage
        if flat.dtype.itemsize == 1:  # float8
            bits = torch.tensor(number).to(flat.dtype).view(torch.uint8)
            flat.view(torch.uint8).masked_fill_(~valid, int(bits))
        else:
            flat.masked_fill_(~valid, number)
    else:
        flat = flat.view(SIGNED.get(flat.dtype, flat.dtype))
        info = torch.iinfo(flat.dtype)
        flat.masked_fill_(~valid, info.min if garbage == float("inf") else min(10**9, info.max))

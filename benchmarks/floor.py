"""The least that an op on a wrapped tensor can cost, if its kernel is written in Python: what tiny tensors are held to.

A wrapper that holds a tensor and nothing else, with kernels that call the plain op on it and wrap the result: torch's
dispatcher, a Python function, the plain op, a new tensor of a subclass.  No mask is looked at, and no case is told from
another.  It has a key of its own, beside that of masked tensors.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch._C import DispatchKey, DispatchKeySet

KEYS = DispatchKeySet(DispatchKey.PrivateUse2) | DispatchKeySet(DispatchKey.AutogradPrivateUse2)
OPS: dict[str, Callable[..., Tensor]] = {
    "add.Tensor": torch.add,
    "mul.Tensor": torch.mul,
    "relu": torch.relu,
    "exp": torch.exp,
    "sum": torch.sum,
    "mean": torch.mean,
    "amax": torch.amax,
    "var.correction": torch.var,
    "softmax.int": torch.softmax,
}
LIBRARY = torch.library.Library("aten", "IMPL")  # lives as long as the process


class Bare(Tensor):
    """A tensor around another."""

    inner: Tensor
    __torch_function__ = torch._C._disabled_torch_function_impl  # type: ignore[assignment]  # torch's own way

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        raise NotImplementedError(f"{func} has no kernel here")


def bare(data: Tensor) -> Bare:
    """``data``, wrapped."""
    # By position, which is faster: as ``masked_tensor`` wraps.
    # fmt: off
    result: Bare = Tensor._make_wrapper_subclass(
        Bare, data.shape, data.stride(), data.storage_offset(), None, data.dtype, torch.strided, data.device,
        False, False, None, False, False, KEYS,
    )
    # fmt: on
    result.inner = data
    return result


def kernel(op: Callable[..., Tensor]) -> Callable[..., Any]:
    """``op`` on what is wrapped."""

    def run(*args: Any, **kwargs: Any) -> Bare:
        return bare(op(*[a.inner if type(a) is Bare else a for a in args], **kwargs))

    return run


def add_(x: Bare, other: Bare) -> Bare:
    x.inner.add_(other.inner)
    return x


def dropout(x: Bare, p: float, train: bool) -> Bare:
    return x


for _name, _op in OPS.items():
    LIBRARY.impl(_name, kernel(_op), "AutogradPrivateUse2")
LIBRARY.impl("add_.Tensor", add_, "AutogradPrivateUse2")
LIBRARY.impl("dropout", dropout, "AutogradPrivateUse2")

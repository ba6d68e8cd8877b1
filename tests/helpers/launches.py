"""Kernels that a device is asked to run, counted on the CPU, which says that it is another device.

Nothing in the package may take a way that only the CPU has: its memory is not read as integers, its kernels are not in
the table, and no constants of it lie ready.  What is left are the ops that would be launched.  Views launch nothing.
"""

import sys
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from torch.utils._python_dispatch import TorchDispatchMode

import masked_tensor as mt
from benchmarks import overhead
from masked_tensor import compat, fill
from masked_tensor.kernels import devices, table
from masked_tensor.kernels.attention import cuda

NO_KERNELS = {
    "aten::empty_like",
    "aten::empty.memory_format",
    "aten::empty_strided",
    "aten::new_empty",
}  #: memory alone
NO_KERNELS |= {"aten::detach", "aten::_unsafe_view", "aten::new_empty_strided"}
NO_KERNELS |= {"aten::_local_scalar_dense"}  # a read, which only the CPU is asked for: ``test_hot_path``


class Launches(TorchDispatchMode):
    """Counts them."""

    def __init__(self) -> None:
        super().__init__()
        self.found: Counter[str] = Counter()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = func.name()
        result = func(*args, **(kwargs or {}))
        if mt.MaskedTensor not in types and not func.is_view and name not in NO_KERNELS:
            self.found[name] += 1
        return result


def pretend(monkeypatch: pytest.MonkeyPatch) -> None:
    """From now on the CPU is another device, and nobody asks who counts."""
    asked = {"is_readable_memory": lambda _: False, "mode_is_active": lambda: 0, "is_host": lambda _: False}
    meant = {compat.is_readable_memory, compat.mode_is_active, devices.is_host}
    for name, module in [*sys.modules.items()]:
        for question, answer in asked.items() if name.startswith("masked_tensor") else ():
            if getattr(module, question, None) in meant:
                monkeypatch.setattr(module, question, answer)
    monkeypatch.setattr(fill, "_READY", {})
    for key in [key for key in table.KERNELS if key[1] == "cpu"]:
        monkeypatch.delitem(table.KERNELS, key)
    monkeypatch.setattr(cuda, "DEVICES", ("cpu",))
    monkeypatch.setattr(cuda, "choose_kernel", lambda *_: overhead.one_call)


def launches(run: Callable[[], object]) -> Counter[str]:
    """What a second call launches: the first makes what is kept."""
    run()
    with Launches() as mode:
        run()
    return mode.found


def total(found: Counter[str]) -> int:
    """How many."""
    return sum(found.values())

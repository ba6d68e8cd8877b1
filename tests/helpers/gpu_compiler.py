"""Compiles the kernels for a GPU where there is none: every call of the cases, up to the launch.

``python -m tests.helpers.gpu_compiler`` names each kernel that it compiled.
"""

from typing import Any

import torch
from triton.backends.compiler import GPUTarget
from triton.runtime import driver
from triton.runtime.jit import JITFunction

from masked_tensor import settings
from masked_tensor.kernels.gpu.entries import ENTRIES
from masked_tensor.kernels.gpu.entries import compiled as told
from masked_tensor.kernels.gpu.layout import wide_dtype

from .gpu_cases import SMALL, cases

FORMATS = (torch.float32, torch.bfloat16, torch.float64)


def is_float(x: Any) -> bool:
    return isinstance(x, torch.Tensor) and x.is_floating_point()


class Absent:
    """The driver of a GPU that is not there."""

    def get_current_target(self) -> GPUTarget:
        return GPUTarget("cuda", 90, 32)

    def get_current_device(self) -> int:
        return 0

    def get_current_stream(self, device: Any = None) -> int:
        return 0


def main() -> None:
    launch, compiled, lines = JITFunction.run, set(), []

    def compile_only(self: JITFunction, *arguments: Any, grid: Any, warmup: bool = False, **options: Any) -> Any:
        found = launch(self, *arguments, grid=grid, warmup=True, **options)
        compiled.add((self.__name__, found.hash))
        return found

    driver.set_active(Absent())
    JITFunction.run = compile_only
    for name, value in SMALL.items():
        setattr(settings, name, value)
    chosen = {case.name if case.entry == "softmax" else case.name.partition("-")[0]: case for case in cases()}
    for number, case in enumerate(chosen.values()):
        kernel, dtype = ENTRIES[case.entry], FORMATS[number % 3]
        tensors = [t.to(dtype) if t is not None and t.is_floating_point() else t for t in case.tensors]
        if case.entry == "standardize":
            tensors[4] = tensors[4].to(wide_dtype(dtype))
        options = case.options_for(dtype)
        for place in case.wanted:
            tensors[place].requires_grad_()
        with torch.no_grad(), told(lines):
            result, saved = kernel.forward(*tensors, *options)
            several = isinstance(result, tuple)
            grads = (
                tuple(r if is_float(r) and i not in case.constant else None for i, r in enumerate(result))
                if several
                else result
            )
            if case.entry == "standardize":
                grads = (grads[0], None, None, None)
            if case.wanted:
                kernel.backward(saved, grads, *options)
    assert "losses._loss: compiled, at its first call" in lines
    print(f"{len(compiled)} kernels: {', '.join(sorted({name for name, _ in compiled}))}")


if __name__ == "__main__":
    main()

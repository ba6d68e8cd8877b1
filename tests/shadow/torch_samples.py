"""Torch's own samples as tests: its operators in every dtype, its modules forward and backward, its functions of masks.

``python -m tests.shadow tests/shadow/torch_samples.py``; torch's wheel has the samples, and not its test files.
"""

import os
from contextlib import suppress

import pytest
import torch
from torch.testing._internal.common_methods_invocations import op_db
from torch.testing._internal.common_modules import module_db

from ..helpers.database import full_name

LIMIT = int(os.environ.get("MASKED_TENSOR_SHADOW_SAMPLES", "8"))  # of an operator and a dtype
DTYPES = {
    *(torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.complex64, torch.complex128),
    *(torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64),
}
OPS = {
    full_name(info): info
    for info in op_db
    if not info.name.startswith(("_refs.", "masked.", "jiterator", "torch._scaled"))
}


@pytest.mark.parametrize("name", sorted(OPS))
def test_operator(name: str) -> None:
    info = OPS[name]
    for dtype in sorted(info.supported_dtypes("cpu") & DTYPES, key=str):
        torch.manual_seed(0)
        found = list(info.sample_inputs("cpu", dtype, requires_grad=False))
        for sample in found[:: max(1, len(found) // LIMIT)][:LIMIT]:
            with suppress(RuntimeError, TypeError, AssertionError, NotImplementedError):  # compared all the same
                info.op(sample.input, *sample.args, **sample.kwargs)
                if info.inplace_variant and not sample.broadcasts_input:
                    info.inplace_variant(sample.input.clone(), *sample.args, **sample.kwargs)


@pytest.mark.parametrize("training", [True, False], ids=["train", "eval"])
@pytest.mark.parametrize("info", module_db, ids=lambda info: info.name)
def test_module(info, training: bool) -> None:
    torch.manual_seed(0)
    for dtype in (torch.float32, torch.float64, torch.bfloat16):
        given = info.module_inputs_func(info, device="cpu", dtype=dtype, requires_grad=True, training=training)
        for sample in given[:: max(1, len(given) // (4 * LIMIT))]:
            if sample.forward_input is None:
                continue
            module = info.module_cls(*sample.constructor_input.args, **sample.constructor_input.kwargs)
            module = module.to(dtype).train(training)
            with suppress(RuntimeError, NotImplementedError):
                module(*sample.forward_input.args, **sample.forward_input.kwargs)

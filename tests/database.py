"""Torch's own operator database: the only file of the suite that touches ``torch.testing._internal``."""

import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import torch

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from torch.testing._internal.common_methods_invocations import op_db
    from torch.testing._internal.opinfo.core import OpInfo

MAX_SAMPLES = 12  # per entry: the database orders simple samples first, and repeats shapes


@dataclass(frozen=True)
class Sample:
    """One call of one entry: ``op(*args, **kwargs)`` with plain tensors."""

    op: Any
    args: tuple[Any, ...]
    kwargs: dict[str, Any] = field(default_factory=dict)


def full_name(info: OpInfo) -> str:
    """``name`` or ``name.variant``: unique in the database."""
    return f"{info.name}.{info.variant_test_name}" if info.variant_test_name else info.name


# Python references of torch._refs are tested through the ops they refer to.
ENTRIES: dict[str, OpInfo] = {full_name(info): info for info in op_db if not info.name.startswith("_refs.")}


def dtypes(name: str) -> list[torch.dtype]:
    """The dtype used for ``name``: float64 where the op has it, else the first it supports."""
    supported = ENTRIES[name].supported_dtypes("cpu")
    for dtype in (torch.float64, torch.float32, torch.complex128, torch.int64, torch.bool):
        if dtype in supported:
            return [dtype]
    return list(supported)[:1]


def samples(name: str, dtype: torch.dtype | None = None, limit: int = MAX_SAMPLES) -> Iterator[Sample]:
    """Plain samples of an entry, evenly spread over what the database offers, seeded by the database itself."""
    info = ENTRIES[name]
    torch.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = list(info.sample_inputs("cpu", dtype or dtypes(name)[0], requires_grad=False))
    step = max(1, len(found) // limit)
    for sample in found[::step][:limit]:
        yield Sample(info.op, (sample.input, *sample.args), dict(sample.kwargs))

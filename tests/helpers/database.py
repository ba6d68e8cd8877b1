"""Torch's own databases of operators and modules: the only file of the suite that touches its ``_internal``."""

import itertools
import random
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from torch.testing._internal import common_utils
    from torch.testing._internal.common_methods_invocations import op_db
    from torch.testing._internal.common_modules import ModuleInfo, module_db
    from torch.testing._internal.opinfo import core
    from torch.testing._internal.opinfo.core import OpInfo

# The database looks through the stack for a unittest that asks, twice per entry, which takes longer than most tests of
# this suite.  There is none: that is what it finds, and what it is told here.
common_utils.extract_test_fn = core.extract_test_fn = lambda: None

MAX_SAMPLES = 12  # per entry


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


def samples(
    name: str, dtype: torch.dtype | None = None, limit: int = MAX_SAMPLES, *, forms: bool = False
) -> Iterator[Sample]:
    """Plain samples of an entry, seeded by the database itself, evenly spread over what it offers.

    With ``forms``, in turn one of each form of call: what is evenly spread over products of options may always have the
    same ones.
    """
    info = ENTRIES[name]
    torch.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        usable = [dtype] if dtype else dtypes(name)
        found = list(info.sample_inputs("cpu", usable[0], requires_grad=False)) if usable else []
    step = max(1, len(found) // limit)
    for sample in itertools.islice(_of_each_form(found) if forms else found[::step], limit):
        yield Sample(info.op, (sample.input, *sample.args), dict(sample.kwargs))


def _of_each_form(found: list[Any]) -> Iterator[Any]:
    """All of ``found``, in turn one of each form of call; those of a form in an order that has no period."""
    forms: dict[Any, list[Any]] = {}
    for sample in random.Random(0).sample(found, len(found)):
        types = tuple(type(value) for value in (sample.input, *sample.args))
        forms.setdefault((types, tuple(sorted(sample.kwargs))), []).append(sample)
    for several in itertools.zip_longest(*forms.values()):
        yield from (sample for sample in several if sample is not None)


MODULES: dict[str, ModuleInfo] = {info.name: info for info in module_db}


@dataclass(frozen=True)
class ModuleSample:
    """One call of one module: ``make()`` gives a fresh module with the same parameters each time."""

    make: Callable[[], torch.nn.Module]
    args: tuple[Any, ...]
    kwargs: dict[str, Any] = field(default_factory=dict)


def module_samples(name: str, training: bool, limit: int = 4) -> Iterator[ModuleSample]:
    """Plain calls of a module of torch.nn in float64, evenly spread over what the database offers."""
    info = MODULES[name]
    torch.manual_seed(0)
    found = info.module_inputs_func(info, device="cpu", dtype=torch.float64, requires_grad=False, training=training)
    found = [sample for sample in found if sample.forward_input is not None]
    step = max(1, len(found) // limit)
    for sample in found[::step][:limit]:
        yield ModuleSample(
            partial(_make, info, sample.constructor_input, training),
            sample.forward_input.args,
            sample.forward_input.kwargs,
        )


def _make(info: ModuleInfo, given: Any, training: bool) -> torch.nn.Module:
    torch.manual_seed(0)
    return info.module_cls(*given.args, **given.kwargs).double().train(training)

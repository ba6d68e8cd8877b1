"""torch's ``masked.*`` operator entries: every dtype and sample, strided, COO and CSR, beside their own references.

``test_functional_opinfo`` compares strided samples of six dtypes with ``torch.masked``.  Here every dtype that an entry
declares is run, and where the entry has a reference in numpy, that is the judge: it shares no code with torch.masked.
"""

import copy
from collections import Counter
from typing import Any

import numpy as np
import torch
from torch import Tensor

from masked_tensor import layouts

from ..helpers import database
from ..test_functional_opinfo import NAMES, PROMOTES, form, valid_outputs

TOLERANCE = {torch.bfloat16: (2e-2, 2e-2), torch.float16: (4e-3, 4e-3), torch.float32: (1e-4, 1e-4)}
LAYOUTS = {"strided": "sample_inputs", "coo": "sample_inputs_sparse_coo", "csr": "sample_inputs_sparse_csr"}


def plain(x: Any) -> Any:
    """A dense tensor, whatever the layout."""
    return x.to_dense() if isinstance(x, Tensor) and layouts.is_sparse(x) else x


def as_numpy(x: Any) -> Any:
    """What an entry's reference takes: bfloat16, which numpy lacks, in float32."""
    if not isinstance(x, Tensor):
        return x
    return (plain(x).float() if x.dtype is torch.bfloat16 else plain(x)).numpy()


def reference(info: Any, sample: Any) -> Tensor:
    """What the entry's own reference says, or torch.masked where it has none that knows the sample."""
    keywords = {k: plain(v) for k, v in sample.kwargs.items()}  # the mask stays a tensor: the references want it so
    try:
        return torch.as_tensor(np.asarray(info.ref(*map(as_numpy, (sample.input, *sample.args)), **keywords)))
    except (TypeError, ValueError):  # no reference; or numpy's has no mask, or wants an identity with it
        return getattr(torch.masked, info.name.removeprefix("masked."))(plain(sample.input), *sample.args, **keywords)


def samples(info: Any, layout: str, dtype: torch.dtype) -> list[Any]:
    """All that the entry offers in this layout; an entry may offer none."""
    torch.manual_seed(0)
    try:
        return list(getattr(info, LAYOUTS[layout])("cpu", dtype, requires_grad=False))
    except (NotImplementedError, RuntimeError):  # no samples of this layout, or of a dtype in it
        return []


def replaced(sample: Any, x: Tensor) -> Any:
    """The same call of another input."""
    other = copy.copy(sample)
    other.input = x
    return other


def differs(info: Any, sample: Any) -> str:
    """What is wrong with one sample, or nothing."""
    name = info.name
    ours = plain(form(name)(sample.input, *sample.args, **sample.kwargs))
    theirs = reference(info, sample)
    if name in PROMOTES and ours.dtype != theirs.dtype:  # the peer keeps the dtype, and wraps around or truncates
        wide = replaced(sample, plain(sample.input).to(ours.dtype))
        theirs = reference(info, wide)
    if ours.shape != theirs.shape:
        return f"shape {tuple(ours.shape)}, expected {tuple(theirs.shape)}"
    theirs = theirs.real if theirs.is_complex() and not ours.is_complex() else theirs
    if name != "masked.logaddexp":  # what is left where it is masked is each library's own
        keywords = {k: plain(v) for k, v in sample.kwargs.items()}
        call = database.Sample(info.op, (plain(sample.input), *sample.args), keywords)
        valid = valid_outputs(call, name)
        ours, theirs = (ours, theirs) if valid is None else (ours[valid], theirs[valid])
    rtol, atol = TOLERANCE.get(sample.input.dtype, (1e-5, 1e-6))
    if torch.allclose(ours.to(torch.complex128), theirs.to(torch.complex128), rtol, atol, equal_nan=True):
        return ""
    return f"{ours} expected {theirs}"


def run() -> int:
    """Print one line per entry, and what differs; 1 where something does."""
    wrong = 0
    for name in NAMES:
        info, counts, found = database.ENTRIES[name], Counter(), []
        for layout in LAYOUTS:
            for dtype in sorted(info.supported_dtypes("cpu"), key=str):
                for sample in samples(info, layout, dtype):
                    detail = differs(info, sample)
                    counts[layout] += 1
                    found += [f"  {layout} {dtype}: {sample.kwargs}: {detail}"] if detail else []
        print(f"{name:20}", *(f"{layout} {n:6}" for layout, n in counts.items()), f"differ {len(found)}", flush=True)
        if found:
            print(*found[:3], sep="\n")
        wrong += len(found)
    return int(wrong > 0)

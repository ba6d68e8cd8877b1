"""Masked tensors of every kind, as they are pickled; ``python -m tests.helpers.pickles NAME`` stores them.

A stored file is never written again: every later version has to read it.
"""

import pickle
import sys
from pathlib import Path
from typing import Any

import torch
from torch import nn

import masked_tensor as mt

STORED = Path(__file__).parent.parent / "pickles"


def examples() -> dict[str, Any]:
    """By name, tensors, or lists of tensors that share memory."""
    numbers = [[1.0, None, 3.0], [None, None, 6.0]]
    x = mt.masked_tensor(numbers)
    garbage = mt.as_masked_tensor(torch.tensor([1.0, float("nan")]), torch.tensor([True, False]))
    tracked = mt.masked_tensor(numbers, requires_grad=True)
    named = mt.masked_tensor(numbers)
    named.unit = "kg"  # type: ignore[attr-defined]  # the user's own
    base, packed = mt.masked_tensor(numbers), sequences()
    written = mt.masked_tensor(numbers)
    part = written[0]
    part[1] = 7.0
    some = mt.masked_tensor(torch.ones(2, 3, 2), torch.tensor([[[True, False]], [[False, False]]])).packed()
    return {
        "float": x,
        "garbage": garbage,
        "tracked": tracked,
        "attribute": named,
        "parameter": nn.Parameter(mt.masked_tensor(numbers)),
        "integers": mt.masked_tensor([1, None, 3]),
        "bool": mt.masked_tensor([True, None]),
        "bfloat16": x.bfloat16(),
        "complex": x.to(torch.complex64),
        "scalar": x.sum(),
        "masked scalar": x[0, 1].detach(),
        "empty": x[:, :0].clone(),
        "broadcast mask": mt.from_lengths(torch.ones(2, 3, 4), [3, 1]),
        "transposed": mt.masked_tensor(numbers).mT.contiguous().mT,
        "base and view": [base, base[0]],
        "written base and view": [written, part],
        "hard mask": mt.masked_tensor(numbers).harden_mask(),
        "COO": x.to_sparse(),
        "CSR": x.to_sparse_csr(),
        "packed": packed,
        "packed with masked entries": some,
        "packed base and view": [first := sequences(), first.transpose(0, 1)],
        "packed nothing": mt.from_lengths(torch.ones(2, 3), [0, 0]).packed(),
        "mask": x.mask,
    }


def sequences() -> Any:
    """A packed batch."""
    return mt.from_lengths(torch.arange(12.0).view(2, 3, 2), [3, 1]).packed()


def store(name: str) -> None:
    """Writes the examples with ``torch.save`` and with pickle."""
    torch.save(examples(), STORED / f"{name}.pt")
    (STORED / f"{name}.pickle").write_bytes(pickle.dumps(examples(), protocol=2))


if __name__ == "__main__":
    store(sys.argv[1])

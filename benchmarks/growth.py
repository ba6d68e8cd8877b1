"""How cost grows, in pictures: with the elements, the share of masked entries, what is stored, and the padding.

``python -m benchmarks.growth`` measures time and peak memory, writes ``docs/curves.json`` and draws the pictures of
``docs/curves.md``; ``--draw`` only draws what is there.  Peers: ``torch.masked``, ``numpy.ma``, polars and pyarrow
where they have the op, nested tensors where rows differ in length, ``torch.where`` by hand.
"""

import argparse
import json
import sys
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch import masked as peer
from torch.nn import functional as F

import masked_tensor as mt

from . import pictures, sparse, timing
from .reductions import columns
from .thresholds import edges
from .timing import Candidates, many, medians, spread, training_step

DATA = Path(__file__).parent.parent / "docs" / "curves.json"
WIDTH = 64  # of a row
Points = Iterator[tuple[str, float, Candidates]]  # op, where on the axis, what is called

OPS: dict[str, Callable[[Tensor], Tensor]] = {
    "add": lambda x: x + x,
    "sum": lambda x: x.sum(),
    "softmax": lambda x: x.softmax(-1),
    "linear": lambda x: F.linear(x, WEIGHT),
}
WEIGHT = torch.randn(WIDTH, WIDTH)


def elements(small: bool) -> Points:
    """Powers of four, so that every tuning number lies between two; a third are masked at random."""
    for power in range(2, 5 if small else 13):
        count = 4**power
        data = torch.randn(max(1, count // WIDTH), min(count, WIDTH))
        mask = torch.rand(data.shape) < 0.7
        for name, candidates in of(data, mask):
            if count >= WIDTH or name != "linear":
                yield name, count, candidates
    for batch in (1,) if small else (1, 4, 16, 64, 256):
        yield "transformer step", batch * 16 * WIDTH, transformer(batch, 16, 0.5)


def masked(small: bool) -> Points:
    """A million elements."""
    rows = 8 if small else 1 << 14
    for share in (0.0, 0.1, 0.25, 0.5, 0.75, 0.9, 1.0):
        for name, candidates in of(torch.randn(rows, WIDTH), torch.rand(rows, WIDTH) >= share):
            yield name, share, candidates


def of(data: Tensor, mask: Tensor) -> Iterator[tuple[str, Candidates]]:
    """The ops of one tensor with masked entries, whose data are not known to be 0."""
    x, array = mt.as_masked_tensor(data, mask), np.ma.masked_array(data.cpu().numpy(), ~mask.cpu().numpy())
    more: dict[str, Candidates] = {
        "add": {"numpy.ma": lambda: array + array},
        "sum": {
            "torch.masked": lambda: peer.sum(data, mask=mask),
            "numpy.ma": lambda: array.sum(),
            **columns("sum", array),
        },
        "softmax": {"torch.masked": lambda: peer.softmax(data, -1, mask=mask)},
        "linear": {"by hand": lambda: F.linear(torch.where(mask, data, 0), WEIGHT)},
    }
    for name, op in OPS.items():
        if name != "linear" or data.shape[-1] == WIDTH:
            yield name, {"plain": partial(op, data), "masked": partial(op, x)} | more[name]


def stored(small: bool) -> Points:
    """CSR of 10,000 x 10,000; ``plain`` is one pass over the values, see sparse.py."""
    for power in range(2, 4 if small else 7):
        data = sparse.example(100 if small else 10_000, 10**power, "csr")
        x = mt.as_masked_tensor(data)
        yield "add", 10**power, {"plain": partial(OPS["add"], data.values()), "masked": partial(OPS["add"], x)}
        for name in ("sum", "softmax"):
            op = getattr(torch, name)
            candidates: Candidates = {"plain": sparse.floor(data, name, 1), "masked": partial(op, x, 1)}
            if name == "sum" and power < 5:
                mask = torch.sparse_csr_tensor(
                    data.crow_indices(),
                    data.col_indices(),
                    torch.ones_like(data.values(), dtype=torch.bool),
                    data.shape,
                )
                candidates["torch.masked"] = lambda d=data, m=mask: peer.sum(d, 1, keepdim=True, mask=m)
            yield name, 10**power, candidates


def padding(small: bool) -> Points:
    """32 rows of up to 128 steps of 64 features."""
    batch, steps = (2, 8) if small else (32, 128)
    for share in (0.0, 0.25, 0.5, 0.75, 0.9):
        lengths = spread(batch, steps, share)
        data, valid = torch.randn(batch, steps, WIDTH), torch.arange(steps) < lengths[:, None]
        x = mt.as_masked_tensor(data, valid[..., None])
        rows = [row[:n] for row, n in zip(data, lengths.tolist(), strict=True)]
        nested, packed = torch.nested.nested_tensor(rows, layout=torch.jagged), x.packed()
        for name, op in OPS.items():
            if name == "sum":
                op = partial(torch.sum, dim=-1)
            kinds = {"plain": data, "masked": x, "packed": packed, "nested": nested}
            yield name, share, {kind: partial(op, value) for kind, value in kinds.items()}
        yield "transformer step", share, transformer(batch, steps, share)


def transformer(batch: int, steps: int, share: float) -> Candidates:
    """A training step of one layer."""
    model = nn.TransformerEncoderLayer(WIDTH, 4, 2 * WIDTH, 0.0, batch_first=True)
    valid = torch.arange(steps) < spread(batch, steps, share)[:, None]
    data = torch.randn(batch, steps, WIDTH) * valid[..., None]
    x = mt.masked_tensor(data, valid[..., None])
    weight = valid[..., None] / (valid.sum() * WIDTH)
    losses: dict[str, Callable[[], Tensor]] = {
        "plain": lambda: (model(data, src_key_padding_mask=~valid).square() * weight).sum(),
        "masked": lambda: model(x).square().mean(),
        "packed": lambda: model(x.packed()).square().mean(),
    }
    return {kind: training_step(model, loss) for kind, loss in losses.items()}


AXES = {"elements": elements, "masked": masked, "stored": stored, "padding": padding}


def measured(axis: str, small: bool) -> list[dict[str, Any]]:
    """The points of one picture."""
    found = []
    for name, place, candidates in AXES[axis](small):
        torch.set_default_device(None)
        start = timing.clock()
        candidates["plain"]()
        calls = 1 if small else max(1, min(200, int(1e-3 / max(timing.clock() - start, 1e-6))))
        run = {kind: many(call, calls) for kind, call in candidates.items()}
        times = {kind: seconds / calls for kind, seconds in medians(run, 1 if small else 7).items()}
        memory = {kind: timing.peak(call) for kind, call in candidates.items() if kind not in FOREIGN}
        found.append({"op": name, "at": place, "seconds": times, "bytes": memory})
        print(axis, name, place, "".join(f"   {k} {s / times['plain']:.2f}" for k, s in times.items()), flush=True)
    return found


FOREIGN = ("numpy.ma", "polars", "pyarrow")  # their memory is not torch's


def main() -> None:
    parser = argparse.ArgumentParser(description="How the cost of masked tensors grows, in pictures.")
    parser.add_argument("--draw", action="store_true", help="only draw what was measured")
    parser.add_argument("--small", action="store_true", help="small sizes, nothing written: does it run at all?")
    parser.add_argument("--axes", nargs="*", default=list(AXES), choices=list(AXES), help="only these, others stay")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    if not options.draw:
        data = json.loads(DATA.read_text()) if DATA.exists() and not options.small else {}
        torch.manual_seed(0)
        data |= {axis: measured(axis, options.small) for axis in options.axes}
        data["steps"] = edges(options.small)
        if options.small:
            return
        DATA.write_text(pictures.rounded(data))
    pictures.draw(json.loads(DATA.read_text()), DATA.parent)


if __name__ == "__main__":
    sys.exit(main())

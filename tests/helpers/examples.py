"""Small inputs and masks of every layout, for the tests of the functional forms."""

from collections.abc import Callable
from functools import cache

import torch
from torch import Tensor


def example(shape: tuple[int, ...] = (4, 6)) -> Tensor:
    """Small integers (ties, exact sums), zeros, an empty row and an empty column."""
    generator = torch.Generator().manual_seed(7)
    x = torch.randint(-3, 4, shape, generator=generator).to(torch.float64)
    x[torch.rand(shape, generator=generator) < 0.4] = 0
    x[..., 2, :] = 0
    x[..., 5] = 0
    x[..., 0, :2] = torch.tensor([2.0, 3.0])
    return x


def twice(x: Tensor) -> Tensor:
    """Two matrices with as many entries: what a batch of compressed matrices must have."""
    return torch.stack([x, x.flip(1)])


def uncoalesced(x: Tensor) -> Tensor:
    """Every entry in two parts; of a mask, two True."""
    x = x.to_sparse_coo()
    values = x.values()
    parts = (values, values) if x.dtype is torch.bool else (values - 1, torch.ones_like(values))
    indices = torch.cat((x.indices(), x.indices()), 1)
    return torch.sparse_coo_tensor(indices, torch.cat(parts), x.shape, check_invariants=True)


@cache
def masks_of(shape: tuple[int, ...]) -> dict[str, Tensor | None]:
    """No mask, and masks of every layout and broadcast shape; row 1 of a full one is masked out."""
    generator = torch.Generator().manual_seed(3)
    m = torch.rand(shape, generator=generator) < 0.6
    m[..., 1, :] = False
    found: dict[str, Tensor | None] = {"none": None, "strided": m, "row": m[..., :1, :], "column": m[..., :1]}
    found["vector"] = m[(0,) * (m.dim() - 1)]
    found["coo"], found["coo hybrid"], found["coo uncoalesced"] = m.to_sparse_coo(), m.to_sparse(1), uncoalesced(m)
    everything = torch.ones(shape).to_sparse_coo()
    found["coo explicit False"] = torch.sparse_coo_tensor(
        everything.indices(), m.reshape(-1), shape, check_invariants=True
    ).coalesce()
    found["coo row"], found["coo column"] = m[..., :1, :].to_sparse_coo(), m[..., :1].to_sparse_coo()
    if len(shape) == 2:
        found |= {"csr": m.to_sparse_csr(), "csc": m.to_sparse_csc()}
        found |= {"bsr": m.to_sparse_bsr((2, 3)), "bsc": m.to_sparse_bsc((2, 3))}
    elif shape[0] == 2:
        found["csr batched"] = twice(m[0]).to_sparse_csr()
    return found


INPUTS: dict[str, Callable[[], Tensor]] = {
    "strided": example,
    "strided 3-d": lambda: example((2, 4, 6)),
    "coo": lambda: example().to_sparse_coo(),
    "coo hybrid": lambda: example().to_sparse(1),
    "coo uncoalesced": lambda: uncoalesced(example()),
    "coo 3-d": lambda: example((2, 4, 6)).to_sparse_coo(),
    "csr": lambda: example().to_sparse_csr(),
    "csc": lambda: example().to_sparse_csc(),
    "bsr": lambda: example().to_sparse_bsr((2, 3)),
    "bsc": lambda: example().to_sparse_bsc((2, 3)),
    "csr batched": lambda: twice(example()).to_sparse_csr(),
    "bsr batched": lambda: twice(example()).to_sparse_bsr((2, 3)),
    "csr hybrid": lambda: example((4, 6))[..., None].expand(4, 6, 2).contiguous().to_sparse_csr(dense_dim=1),
}

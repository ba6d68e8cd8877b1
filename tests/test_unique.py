"""The family unique under the laws."""

import torch

import masked_tensor as mt

from .laws import laws

test_law = laws("unique")


def test_bins_beside_a_masked_edge_are_masked() -> None:
    x = torch.tensor([0.5, 1.5, 2.5, 3.5])
    edges = mt.masked_tensor([0.0, 1.0, None, 3.0, 4.0])
    hist, found = torch.histogram(x, edges)
    assert hist.tolist() == [1, None, None, 1]
    assert found.tolist() == edges.tolist()
    assert torch.histogram(x, edges, density=True)[0].tolist() == [0.25, None, None, 0.25]
    ends = mt.masked_tensor([None, 1.0, 2.0, 3.0, None])
    assert torch.histogram(x, ends)[0].tolist() == [None, 1, 1, None]
    assert torch.histogram(x, ends, density=True)[0].tolist() == [None] * 4
    assert torch.histogram(x, mt.masked_tensor([None, None], dtype=x.dtype))[0].tolist() == [None]
    grid, both = torch.histogramdd(torch.stack([x, x], 1), [ends, torch.arange(5.0)])
    assert grid.mask.any(1).tolist() == [False, True, True, False]
    assert grid[1].tolist() == [0, 1, 0, 0]
    assert both[0].tolist() == ends.tolist()


def test_counts_between_valid_edges_are_those_of_the_definition() -> None:
    """Whichever edges are masked, and whatever lies under their mask."""
    for seed in range(40):
        generator = torch.Generator().manual_seed(seed)
        edges = torch.rand(9, generator=generator, dtype=torch.float64).mul(8).sub(4).sort().values
        valid = torch.rand(9, generator=generator) < 0.7
        x = torch.rand(60, generator=generator, dtype=torch.float64) * 8 - 4
        known = torch.rand(60, generator=generator) < 0.7
        garbage = [float("nan"), float("inf"), -1e30][seed % 3]
        given = mt.as_masked_tensor(edges.masked_fill(~valid, garbage), valid)
        hist, _ = torch.histogram(mt.as_masked_tensor(x.masked_fill(~known, garbage), known), given)
        assert hist.tolist() == [
            int(((x >= low) & (x < high) & known).sum()) if both else None
            for low, high, both in zip(edges[:-1], edges[1:], valid[1:] & valid[:-1], strict=True)
        ]

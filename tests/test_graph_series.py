"""Series in compiled code: one graph, and gradients as without it."""

from typing import Any

import pytest
import torch

import masked_tensor as mt

N = [3, 5, 1]
SERIES = {
    "ffill": lambda x: mt.ffill(x, 1, lengths=N),
    "bfill": lambda x: mt.bfill(x, 1, lengths=N, limit=1),
    "interpolate": lambda x: mt.interpolate(x, 1, lengths=N),
    "mean": lambda x: mt.rolling(x, 2, 1, min_periods=1, lengths=N).mean(),
    "std": lambda x: mt.rolling(x, 3, dim=1, min_periods=2, lengths=torch.tensor(N)).std(),
    "quantile": lambda x: mt.rolling(x, 2, 1).quantile(0.5),
    "windows": lambda x: mt.rolling(x, 2, 1).windows,
    "count": lambda x: mt.rolling(x, 2, 1, lengths=N).count() * x,
}


@pytest.mark.parametrize("name", SERIES)
def test_a_series_is_one_graph(name: str) -> None:
    torch.compiler.reset()
    mask = (torch.arange(5) < torch.tensor(N)[:, None])[..., None].repeat(1, 1, 2)
    mask[0, 1] = mask[1, 2] = False
    data = torch.where(mask, torch.randn(mask.shape), float("nan"))
    found = []
    for compiled in (False, True):
        x = mt.masked_tensor(data, mask).requires_grad_()
        run = torch.compile(SERIES[name], fullgraph=True, backend="aot_eager") if compiled else SERIES[name]
        y = run(x)
        y.sum().backward()
        found.append((y.filled(0), y.mask, x.grad.filled(0)))
    torch.testing.assert_close(found[1], found[0])


def test_the_error_inside_of_a_graph_is_the_error_outside() -> None:
    x = mt.masked_tensor([[1.0, None], [2.0, 3.0]])
    for wrong in (lambda x: mt.ffill(x, 1), lambda x: mt.rolling(x, 2, 1, min_periods=1).sum()):
        torch.compiler.reset()
        with pytest.raises(Exception, match="the number of steps of each sequence"):
            torch.compile(wrong, fullgraph=True, backend="aot_eager")(x)


def test_sequences_are_batched_outside_of_a_graph() -> None:
    """Within one the error names the way out; where a graph may end, the batch is made as it is without one."""
    torch.compiler.reset()
    rows = [torch.ones(2), torch.ones(3)]

    def total(*rows: Any) -> Any:
        return mt.from_sequences(rows, capacity=5).sum().filled(0.0)

    with pytest.raises(torch._dynamo.exc.Unsupported, match=r"from_lengths\(data, lengths\)"):
        torch.compile(total, fullgraph=True, backend="aot_eager")(*rows)
    assert torch.compile(total, backend="aot_eager")(*rows) == 5

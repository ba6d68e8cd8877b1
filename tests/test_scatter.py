"""The family scatter under the laws."""

import itertools
from collections.abc import Callable
from typing import Any

import pytest
import torch

import masked_tensor as mt
from masked_tensor.rules import scatter

from .laws import laws

test_law = laws("scatter")


@pytest.mark.parametrize("include_self", [False, True])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.complex64])
@pytest.mark.parametrize(("shape", "dim"), [((50,), 0), ((50, 3), 0), ((3, 50), 1), ((2, 50, 3), -2)])
def test_means_by_a_repeated_index_are_those_by_any_index(
    shape: tuple[int, ...], dim: int, dtype: torch.dtype, include_self: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two ``index_add`` instead of scattered writes: the same bits, forward and backward, whatever is masked out."""
    torch.manual_seed(0)
    small = list(shape)
    small[dim] = 5
    valid, index = torch.rand(shape) > 0.4, torch.randint(4, (50,))
    data = torch.where(valid, torch.randn(shape, dtype=dtype), float("nan"))
    start = mt.masked_tensor(torch.randn(small, dtype=dtype), torch.rand(small) > 0.5)
    one = [1] * len(shape)
    one[dim] = 50
    wide = index.reshape(one).expand(shape)

    def run(reduce: Callable[[Any, Any], Any]) -> list[torch.Tensor]:
        leaf, old = data.clone().requires_grad_(), start.detach().clone().requires_grad_()
        result = reduce(old, mt.as_masked_tensor(leaf, valid))
        (result.filled(0) * torch.arange(index.new_zeros(small).numel()).reshape(small)).sum().abs().backward()
        return [result.filled(7).detach(), result.get_mask(), leaf.grad, old.grad.filled(0)]

    for reduce in (
        lambda x, y: x.scatter_reduce(dim, wide, y, "mean", include_self=include_self),
        lambda x, y: x.index_reduce(dim, index, y, "mean", include_self=include_self),
    ):
        found = run(reduce)
        with monkeypatch.context() as patch:
            patch.setattr(scatter, "_groups", lambda *args: None)
            wanted = run(reduce)
        for one_found, one_wanted in zip(found, wanted, strict=True):
            assert torch.equal(one_found, one_wanted)


def test_means_of_half_precision_count_beyond_256() -> None:
    """bfloat16 has no 257."""
    x = mt.masked_tensor(torch.ones(3000, dtype=torch.bfloat16), torch.arange(3000) % 3 > 0)
    mean = torch.zeros(1, dtype=torch.bfloat16).scatter_reduce(
        0, torch.zeros(3000, dtype=torch.int64), x, "mean", include_self=False
    )
    assert mean.tolist() == [1.0]


@pytest.mark.parametrize("index", [[0, 9], [0, -1]])
def test_an_index_out_of_range_raises_as_torch_does(index: list[int]) -> None:
    x = mt.masked_tensor([1.0, None])
    with pytest.raises(RuntimeError, match="out of bounds for dimension 0 with size 3"):
        torch.zeros(3).scatter_reduce(0, torch.tensor(index), x, "mean")
    with pytest.raises(IndexError, match="index out of range"):
        torch.zeros(3).index_reduce(0, torch.tensor(index), x, "mean")


SIZES = [(), (1,), (2,), (3,), (0,), (1, 1), (2, 3), (2, 1)]
CALLS = {
    "index_add": lambda x, dim, index, source: x.index_add(dim, index, source),
    "index_copy": lambda x, dim, index, source: x.index_copy(dim, index, source),
    "index_reduce": lambda x, dim, index, source: x.index_reduce(dim, index, source, "prod"),
    "put": lambda x, dim, index, source: x.put(index, source),
    "scatter": lambda x, dim, index, source: x.scatter(dim, index, source),
    "scatter a number": lambda x, dim, index, source: x.scatter(dim, index, 2.0),
    "scatter_add": lambda x, dim, index, source: x.scatter_add(dim, index, source),
    "scatter_reduce": lambda x, dim, index, source: x.scatter_reduce(dim, index, source, "amax"),
}


@pytest.mark.filterwarnings("ignore:index_reduce")
@pytest.mark.parametrize("name", CALLS)
def test_shapes_are_those_that_torch_takes(name: str) -> None:
    """Padding with a slot, expanding and reading a part would take others: the source would be broadcast, or cut."""
    for size, at, given in itertools.product([(), (3,), (2, 3), (0,)], SIZES, SIZES):
        x, index, source = torch.full(size, 2.0), torch.zeros(at, dtype=torch.int64), torch.ones(given)
        whole = [mt.as_masked_tensor(t, torch.ones(t.shape, dtype=torch.bool)) for t in (x, index, source)]
        for dim in range(max(len(size), 1)):
            try:
                expected = CALLS[name](x, dim, index, source)
            except (RuntimeError, IndexError):
                expected = None
            for masked in ([whole[0], index, source], [x, index, whole[2]], whole):
                if expected is None:
                    with pytest.raises((RuntimeError, IndexError)):
                        CALLS[name](masked[0], dim, *masked[1:])
                else:
                    assert torch.equal(mt.filled(CALLS[name](masked[0], dim, *masked[1:]), torch.nan), expected)

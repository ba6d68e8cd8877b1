"""nn.SyncBatchNorm, unmodified: two ranks with masks of their own normalize as one batch of all valid entries."""

from pathlib import Path
from unittest import mock

import pytest
import torch
from torch import distributed, nn

import masked_tensor as mt
from masked_tensor.engine.tensor import pair_of
from masked_tensor.testing import assert_close

from .helpers.ranks import start_ranks

pytestmark = pytest.mark.skipif(not distributed.is_available(), reason="torch was built without torch.distributed")

NAN = float("nan")
SIZES = [4, 6]  # the batches of the ranks
CASES = [(0.1, torch.float32), (None, torch.float32), (0.1, torch.bfloat16)]


def batch(rank: int, step: int, dtype: torch.dtype) -> tuple[torch.Tensor, torch.Tensor]:
    """Rows of one rank, NaN where they are masked: only one rank sees channel 1, and at first none sees channel 2."""
    torch.manual_seed(10 * step + rank)
    mask = torch.rand(SIZES[rank], 3, 5) < 0.6
    mask[:, 1] &= rank == step % 2
    mask[:, 2] &= step > 0
    return (torch.randn(mask.shape) * 2 + 5).masked_fill(~mask, NAN).to(dtype), mask


def norm(kind: type[nn.Module], momentum: float | None) -> nn.Module:
    torch.manual_seed(0)
    result = kind(3, momentum=momentum)
    nn.init.normal_(result.weight)
    nn.init.normal_(result.bias)
    return result


def steps(module: nn.Module, ranks: list[int], dtype: torch.dtype) -> list[torch.Tensor]:
    """Outputs, input gradients and buffers of three training steps, then the parameters' gradients."""
    found = []
    for step in range(3):
        data, mask = (torch.cat(parts) for parts in zip(*(batch(r, step, dtype) for r in ranks), strict=True))
        x = mt.as_masked_tensor(data, mask).requires_grad_()
        out = module(x)
        assert pair_of(out).mask.equal(mask)
        out.float().pow(2).sum().backward()
        assert (pair_of(x.grad).data[~mask] == 0).all()
        found += [out.filled(0).detach(), x.grad.filled(0), *(b.clone() for b in module.buffers())]
    assert type(module.weight.grad) is torch.Tensor
    return [*found, module.weight.grad, module.bias.grad]


def run(rank: int, _: int, folder: Path) -> None:
    """What one rank does.  torch asks for a GPU before it synchronizes, though gloo and these rules need none."""
    torch.set_num_threads(1)
    distributed.init_process_group("gloo", f"file://{folder}/meeting", rank=rank, world_size=len(SIZES))
    with mock.patch.object(torch._C, "_get_privateuse1_backend_name", return_value="cpu"):
        found = [steps(norm(nn.SyncBatchNorm, momentum), [rank], dtype) for momentum, dtype in CASES]
    torch.save(found, folder / f"{rank}.pt")
    distributed.destroy_process_group()


def test_two_ranks_are_one_batch(tmp_path):
    start_ranks(run, len(SIZES), tmp_path)
    loaded = [torch.load(tmp_path / f"{rank}.pt") for rank in range(len(SIZES))]
    for case, (momentum, dtype) in enumerate(CASES):
        tolerance = {"atol": 1e-4, "rtol": 1e-5} if dtype is torch.float32 else {"atol": 0.1, "rtol": 0.02}
        expected = steps(norm(nn.BatchNorm1d, momentum), [0, 1], dtype)
        for i, (whole, *parts) in enumerate(zip(expected, *(rank[case] for rank in loaded), strict=True)):
            if i >= len(expected) - 2:  # torch leaves adding up the parameters' gradients to DistributedDataParallel
                torch.testing.assert_close(sum(parts), whole, **tolerance)
            elif whole.dim() == 3:
                torch.testing.assert_close(torch.cat(parts), whole, **tolerance)
            else:
                for part in parts:
                    torch.testing.assert_close(part, whole, **tolerance)


def test_statistics_of_a_rank_are_those_of_its_valid_entries():
    for step in range(3):
        data, mask = batch(0, step, torch.float32)
        joined, variance = torch.batch_norm_stats(mt.as_masked_tensor(data, mask), 1e-5)
        ranks = torch.stack([joined, joined]), torch.stack([variance, variance]), None, None, 0.1, 1e-5
        _, rstd = torch.batch_norm_gather_stats_with_counts(
            mt.as_masked_tensor(data, mask), *ranks, torch.tensor([4.0, 4.0])
        )
        for channel in range(3):
            valid = data[:, channel][mask[:, channel]].double()
            if len(valid):
                expected = valid.var(correction=0)
                torch.testing.assert_close(variance[channel], expected, rtol=1e-5, atol=1e-6)
                torch.testing.assert_close(rstd[channel], (expected + 1e-5).rsqrt(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("training", [True, False])
def test_without_other_ranks_it_is_batch_norm(training):
    data, mask = batch(0, 1, torch.float32)
    x = mt.as_masked_tensor(data, mask)
    ours, theirs = norm(nn.SyncBatchNorm, 0.1).train(training), norm(nn.BatchNorm1d, 0.1).train(training)
    assert_close(ours(x), theirs(x))
    for a, b in zip(ours.buffers(), theirs.buffers(), strict=True):
        assert torch.equal(a, b)


def test_what_cannot_be_exact_raises():
    x = mt.masked_tensor(torch.ones(2, 3), torch.tensor([[True, True, False]]))
    with pytest.raises(NotImplementedError, match="a float64 masked tensor"):
        torch.batch_norm_stats(x.double(), 1e-5)
    mean, variance = torch.batch_norm_stats(x, 1e-5)
    grad = torch.ones(2, 3, requires_grad=True)
    with pytest.raises(RuntimeError, match="no second derivative"):
        torch.batch_norm_backward_reduce(grad, x, mean, variance, None, True, True, True)

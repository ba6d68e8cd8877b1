"""Layers with quantized weights."""

import pytest
import torch
from torch import nn

import masked_tensor as mt


@pytest.mark.filterwarnings("ignore")  # of the quantization package, about itself
@pytest.mark.parametrize("dtype", [torch.qint8, torch.float16])
@pytest.mark.parametrize("payload", [0.0, 1e30, float("nan"), float("inf")])
def test_dynamic_quantization(dtype, payload) -> None:
    """The range of the input is that of its valid entries."""
    torch.manual_seed(0)
    layers = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 3))
    model = torch.ao.quantization.quantize_dynamic(layers, {nn.Linear}, dtype=dtype)
    rows, mask = torch.randn(5, 6), torch.tensor([True, True, False, True, False])
    x = mt.as_masked_tensor(torch.where(mask[:, None], rows, payload), mask[:, None])
    y = model(x)
    assert torch.equal(y.get_mask()[:, 0], mask)
    assert y.get_mask().stride()[1] == 0
    torch.testing.assert_close(y.compressed().view(3, 3), model(rows[mask]))

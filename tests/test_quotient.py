"""Quotients beyond the elementwise laws: integers, and the mean of a weighted loss that torch divides in Python."""

import math

import pytest
import torch
import torch.nn.functional as F

import masked_tensor as mt

NAN = math.nan
MASK = torch.tensor([True, False, True])
INTEGERS = (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integers_are_not_divided_by_what_lies_under_the_mask(dtype: torch.dtype) -> None:
    x = mt.masked_tensor(torch.tensor([7, 1, 9]), MASK).to(dtype)
    y = mt.masked_tensor(torch.tensor([2, 0, 4]), MASK).to(dtype)
    for op in (torch.floor_divide, torch.remainder, torch.fmod):
        assert op(x, y).tolist()[1] is None
    assert (x // y).tolist() == [3, None, 2]
    assert (x % y).tolist() == [1, None, 1]
    assert torch.div(x, y, rounding_mode="trunc").tolist() == [3, None, 2]
    x //= y
    assert x.tolist() == [3, None, 2]
    assert (100 // y).tolist() == [50, None, 25]
    least = torch.iinfo(dtype).min
    eights, twos = torch.tensor([8, least, 8], dtype=dtype), torch.tensor([2, -1 if least else 0, 2], dtype=dtype)
    assert (mt.as_masked_tensor(eights, MASK) // mt.as_masked_tensor(twos, MASK)).count() == 2
    if least:
        for minus in (-1, torch.tensor(-1, dtype=dtype), torch.full((3,), -1, dtype=dtype)):
            for op in (torch.floor_divide, torch.remainder, torch.fmod):
                assert op(mt.as_masked_tensor(eights, MASK), minus).count() == 2
            for rounding in ("trunc", "floor"):
                x = mt.as_masked_tensor(eights.clone(), MASK)
                assert torch.div(x, minus, rounding_mode=rounding).tolist() == [-8, None, -8]
                assert x.div_(minus, rounding_mode=rounding).tolist() == [-8, None, -8]


@pytest.mark.parametrize("run", ["eager", "inference", "vmap", "aot_eager", "fullgraph"])
@pytest.mark.parametrize("loss", [F.mse_loss, F.l1_loss])
def test_a_mean_over_all_weights_is_refused(loss, run: str) -> None:
    """What torch divides in Python, by masked entries' weights too; a weight with the same mask is right, and a sum."""
    x, w = mt.masked_tensor([1.0, None, 4.0]), torch.tensor([1.0, NAN, 3.0])

    def weighted(x, w):
        return loss(x, torch.zeros(3), weight=w)

    runs = {
        "eager": weighted,
        "inference": torch.inference_mode()(weighted),
        "vmap": lambda x, w: torch.func.vmap(weighted)(torch.stack([x, x]), torch.stack([w, w])),
        "aot_eager": torch.compile(weighted, backend="aot_eager"),
        "fullgraph": torch.compile(weighted, backend="aot_eager", fullgraph=True),
    }
    torch.compiler.reset()
    with pytest.raises(Exception, match=f"use masked_tensor.{loss.__name__}"):
        runs[run](x, w)
    if run == "eager":
        assert (
            weighted(x, mt.as_masked_tensor(w, x.get_mask())).item()
            == {"mse_loss": 49, "l1_loss": 13}[loss.__name__] / 4
        )
        assert (
            loss(x, torch.zeros(3), weight=w, reduction="sum").item() == {"mse_loss": 49, "l1_loss": 13}[loss.__name__]
        )
        assert (x.sum() / torch.tensor(2.0)).item() == 2.5

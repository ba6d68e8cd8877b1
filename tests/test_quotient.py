"""Quotients beyond the elementwise laws: integers, and the mean of a weighted loss, which torch divides in Python."""

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
def test_a_weighted_mean_divides_by_the_weights_of_valid_entries(loss, run: str) -> None:
    """torch divides by the sum of all weights, in Python: the functional form runs instead."""
    x, w = mt.masked_tensor([1.0, None, 4.0]), torch.tensor([1.0, NAN, 3.0])
    total = {"mse_loss": 49, "l1_loss": 13}[loss.__name__]

    def weighted(x, w):
        return loss(x, torch.zeros(3), weight=w)

    runs = {
        "eager": weighted,
        "inference": torch.inference_mode()(weighted),
        "vmap": lambda x, w: torch.func.vmap(weighted)(torch.stack([x, x]), torch.stack([w, w]))[1],
        "aot_eager": torch.compile(weighted, backend="aot_eager"),
        "fullgraph": torch.compile(weighted, backend="aot_eager", fullgraph=True),
    }
    torch.compiler.reset()
    assert runs[run](x, w).item() == total / 4
    assert runs[run](x, mt.as_masked_tensor(w, x.get_mask())).item() == total / 4
    if run == "eager":
        assert loss(x, torch.zeros(3), weight=w, reduction="sum").item() == total
        assert (x.sum() / torch.tensor(2.0)).item() == 2.5


def test_the_least_integer_under_the_mask_does_not_end_the_process() -> None:
    """Its quotient by -1 is no integer of 64 bits."""
    x = mt.as_masked_tensor(torch.tensor([torch.iinfo(torch.int64).min, 4]), torch.tensor([False, True]))
    assert (x // -1).tolist() == [None, -4]
    assert torch.div(x, -1, rounding_mode="trunc").tolist() == [None, -4]

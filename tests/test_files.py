"""safetensors files of masked tensors."""

from pathlib import Path

import pytest
import torch
from torch import nn

import masked_tensor as mt
from masked_tensor.engine.tensor import pair_of

safetensors = pytest.importorskip("safetensors.torch")


@pytest.mark.parametrize(
    "dtype", [torch.float64, torch.bfloat16, torch.float8_e4m3fn, torch.int64, torch.bool], ids=str
)
def test_tensors_come_back(tmp_path: Path, dtype: torch.dtype) -> None:
    path = tmp_path / "x.safetensors"
    x = mt.from_lengths(torch.ones(2, 3, 4).to(dtype), [3, 1])
    mt.save_file({"x": x, "plain": torch.arange(3)}, path, {"by": "me"})
    back = mt.load_file(path)
    assert list(back) == ["plain", "x"]
    assert back["x"].dtype is dtype
    assert back["x"].tolist() == x.tolist()
    assert pair_of(back["x"]).mask.stride()[-1] == 0
    assert type(back["plain"]) is torch.Tensor
    theirs = safetensors.load_file(path)
    assert theirs["x.mask"].shape == (2, 3, 1)  # as small as in memory
    with safetensors.safe_open(path, "pt") as file:
        assert file.metadata()["by"] == "me"


def test_nothing_under_the_mask_is_written(tmp_path: Path) -> None:
    path = tmp_path / "x.safetensors"
    mt.save_file({"x": mt.as_masked_tensor(torch.tensor([1.0, float("nan")]), torch.tensor([True, False]))}, path)
    assert safetensors.load_file(path)["x"].tolist() == [1.0, 0.0]


def test_a_masked_state_dict_survives(tmp_path: Path) -> None:
    def model() -> nn.Module:
        layer = nn.Linear(2, 1)
        layer.weight = nn.Parameter(mt.masked_tensor([[1.0, None]]))
        return layer

    first, second = model(), model()
    with torch.no_grad():
        first.weight.mul_(3)
    mt.save_file(first.state_dict(), tmp_path / "model.safetensors")
    second.load_state_dict(mt.load_file(tmp_path / "model.safetensors"))
    assert second.weight.tolist() == [[3.0, None]]
    assert second.bias.equal(first.bias)


def test_a_file_without_masked_entries_is_a_plain_one(tmp_path: Path) -> None:
    mt.save_file({"a": torch.ones(2)}, tmp_path / "a")
    assert mt.load_file(tmp_path / "a")["a"].tolist() == [1.0, 1.0]


def test_tensors_that_share_a_mask_are_written(tmp_path: Path) -> None:
    mask = torch.tensor([[True], [False]])
    x, y = (mt.masked_tensor(torch.ones(2, 3), mask) for _ in range(2))
    mt.save_file({"x": x, "y": y, "z": x * 2}, tmp_path / "file")
    loaded = mt.load_file(tmp_path / "file")
    loaded["x"][1] = 5.0
    assert loaded["y"].tolist() == [[1.0] * 3, [None] * 3]
    assert loaded["z"].tolist() == [[2.0] * 3, [None] * 3]

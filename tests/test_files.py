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


def saved(path: Path) -> dict[str, torch.Tensor]:
    tensors = {
        "x": mt.masked_tensor(torch.randn(5, 7), torch.rand(5, 7) < 0.5),
        "y": mt.masked_tensor([1, None]),
        "z": torch.randn(3).bfloat16(),
        "empty": torch.ones(0, 2),
    }
    mt.save_file(tensors, path, {"by": "me"})
    return tensors


def test_no_flipped_bit_and_no_cut_gives_other_numbers(tmp_path: Path) -> None:
    """Of any bit of the file, the header's and the checksums' own included: an error, or what was saved."""
    path = tmp_path / "x.safetensors"
    tensors = saved(path)
    whole = path.read_bytes()
    seen = 0
    for bit in range(0, 8 * len(whole), 5):
        broken = bytearray(whole)
        broken[bit // 8] ^= 1 << bit % 8
        path.write_bytes(broken)
        seen += _refused(path, tensors)
    assert seen > 8 * len(whole) / 5 * 0.8
    for length in range(0, len(whole), 13):
        path.write_bytes(whole[:length])
        assert _refused(path, tensors)


def _refused(path: Path, tensors: dict[str, torch.Tensor]) -> bool:
    try:
        loaded = mt.load_file(path)
    except Exception:  # of any kind: safetensors has its own
        return True
    assert sorted(loaded) == sorted(tensors)
    for name, x in tensors.items():
        assert str(loaded[name].tolist()) == str(x.tolist())
        assert loaded[name].dtype is x.dtype
    return False


def test_a_file_without_checksums_still_loads(tmp_path: Path) -> None:
    entries = {"x": torch.ones(2), "x.mask": torch.tensor([True, False])}
    safetensors.save_file(entries, tmp_path / "x", {"masked_tensor": '{"x": "x.mask"}'})
    assert mt.load_file(tmp_path / "x")["x"].tolist() == [1.0, None]


def test_a_save_that_fails_leaves_the_file_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x"
    mt.save_file({"x": mt.masked_tensor([1.0, None])}, path)
    real = safetensors.save_file

    def full(entries: object, filename: str, metadata: object) -> None:
        real(entries, filename, metadata)
        Path(filename).write_bytes(Path(filename).read_bytes()[:20])
        raise OSError(28, "No space left on device")

    for stop in (full, lambda *args: (_ for _ in ()).throw(KeyboardInterrupt)):
        monkeypatch.setattr(safetensors, "save_file", stop)
        with pytest.raises((OSError, KeyboardInterrupt)):
            mt.save_file({"x": torch.zeros(1)}, path)
    assert mt.load_file(path)["x"].tolist() == [1.0, None]
    assert [each.name for each in tmp_path.iterdir()] == ["x"]
    link = tmp_path / "link"
    link.symlink_to(path)
    monkeypatch.undo()
    mt.save_file({"x": torch.zeros(1)}, link)
    assert link.is_symlink()
    assert mt.load_file(path)["x"].tolist() == [0.0]

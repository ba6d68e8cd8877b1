"""Distributed checkpoints of masked tensors: on other ranks, in other placements, converted, and of whole models."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import distributed

if not distributed.is_available():
    pytest.skip("torch was built without torch.distributed", allow_module_level=True)

from torch.distributed import checkpoint
from torch.distributed.checkpoint.format_utils import dcp_to_torch_save
from torch.distributed.tensor import DTensor, Partial, Replicate, Shard, distribute_tensor

import masked_tensor as mt

from .helpers.checkpoints import PLACEMENTS, given, read, written
from .helpers.ranks import alone, gathered

Found = tuple[str, list[dict[str, str]]]


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Found:
    folder = str(tmp_path_factory.mktemp("checkpoints"))
    return folder, gathered(2, written, folder)


@pytest.fixture(scope="module")
def mesh() -> Iterator[Any]:
    with alone() as mesh:
        yield mesh


def test_two_ranks_read_what_they_wrote(found: Found) -> None:
    assert found[1] == [dict.fromkeys(found[1][0], "")] * 2


@pytest.mark.parametrize("name", PLACEMENTS)
def test_one_rank_reads_what_two_wrote(name: str, found: Found, mesh: Any) -> None:
    assert read(f"{found[0]}/{name}", mesh, Shard(1))


def test_it_becomes_one_file(found: Found) -> None:
    whole = torch.load(f"{found[0]}/one.pt", weights_only=True)
    assert whole["x"].tolist() == whole["deep"]["plain"].tolist() == given().tolist()


def test_a_plain_tensor_cannot_receive_masked_entries(found: Found, mesh: Any) -> None:
    for target in (torch.zeros(5, 3), distribute_tensor(torch.zeros(5, 3), mesh, [Shard(0)])):
        with pytest.raises(checkpoint.CheckpointException, match="cannot write a masked tensor"):
            checkpoint.load({"x": target}, checkpoint_id=f"{found[0]}/rows")


def test_a_masked_tensor_receives_plain_values(mesh: Any, tmp_path: Path) -> None:
    checkpoint.save({"x": distribute_tensor(torch.ones(5, 3), mesh, [Shard(0)])}, checkpoint_id=tmp_path)
    x = distribute_tensor(given(), mesh, [Shard(1)])
    checkpoint.load({"x": x}, checkpoint_id=tmp_path)
    assert x.full_tensor().tolist() == torch.ones(5, 3).tolist()


def test_terms_that_are_still_to_be_added_are_refused(mesh: Any, tmp_path: Path) -> None:
    x = DTensor.from_local(given(), mesh, [Partial()])
    with pytest.raises(checkpoint.CheckpointException, match="partial placements"):
        checkpoint.save({"x": x}, checkpoint_id=tmp_path)


@pytest.mark.filterwarnings("ignore::UserWarning:torch.distributed")  # of functions of its own that torch calls
def test_of_tensors_without_memory_only_the_shape_is_asked(found: Found, mesh: Any) -> None:
    state = {"x": distribute_tensor(given(), mesh, [Shard(0)]).to("meta")}
    checkpoint.load(state, checkpoint_id=f"{found[0]}/columns")
    assert state["x"].full_tensor().tolist() == given().tolist()


def test_parts_and_views_share_validity(mesh: Any) -> None:
    x = distribute_tensor(given(), mesh, [Replicate()])
    written = mt.as_masked_tensor(torch.full((3,), 99.0), [True, False, True])
    for target in (x.to_local()[1], x.detach()[2], x.view(15)[9:12], x.redistribute(mesh, [Replicate()])[4]):
        target.copy_(
            written if type(mt.get_data(target)) is torch.Tensor else distribute_tensor(written, mesh, [Replicate()])
        )
    expected = given()
    expected[1:] = written
    assert x.full_tensor().tolist() == expected.tolist()
    with torch.no_grad():
        x.full_tensor().fill_(1.0)  # which keeps the mask
    assert x.to_local().tolist() == (expected * 0 + 1).tolist()
    local = given()
    DTensor.from_local(local, mesh, [Shard(0)]).fill_(2.0)
    assert local.tolist() == (given() * 0 + 2).tolist()
    with pytest.raises(RuntimeError, match="not supported with DTensor"):
        x.as_strided((2, 2), (1, 1))
    tracked = distribute_tensor(given(), mesh, [Replicate()]).requires_grad_() * 1
    with pytest.raises(RuntimeError, match="it lies in parts on a device mesh"):
        tracked.view(15).mul_(2.0)


@pytest.mark.filterwarnings("ignore::UserWarning:torch.distributed")  # there is one process
@pytest.mark.filterwarnings("ignore:torch.distributed is disabled")
def test_packed_tensors_stay_packed(tmp_path: Path) -> None:
    """With the lengths that were stored, whatever those of the target are; gaps, transposes, and without a target."""
    torch.manual_seed(0)

    def batch(*lengths: int) -> mt.MaskedTensor:
        return mt.from_sequences([torch.randn(n, 2) for n in lengths], packed=True)

    gaps = mt.from_sequences([[1.0, None, 2.0], [None], [3.0, None]], packed=True)
    stored = {
        "x": batch(3, 5),
        "leaf": batch(2, 5).requires_grad_(),
        "gaps": gaps,
        "turned": batch(4, 1).transpose(0, 1),
    }
    checkpoint.save(stored, checkpoint_id=tmp_path, no_dist=True)
    targets = {"x": batch(5, 1), "leaf": batch(5, 5).requires_grad_(), "turned": stored["turned"].clone()}
    targets["gaps"] = mt.from_sequences([[1.0] * 3, [2.0], [3.0]], packed=True)
    back = dict(targets)
    checkpoint.load(back, checkpoint_id=tmp_path, no_dist=True)
    for name, x in back.items():
        assert x is targets[name]
        assert x.is_packed
        assert x.requires_grad == (name == "leaf")
        assert x.tolist() == stored[name].tolist()
    assert back["gaps"].lengths().tolist() == [3, 1, 2]
    plain = {"x": batch(5, 5).unpacked()}
    checkpoint.load(plain, checkpoint_id=tmp_path, no_dist=True)
    assert plain["x"].tolist() == stored["x"].tolist()
    dcp_to_torch_save(tmp_path, tmp_path / "one.pt")
    one = torch.load(tmp_path / "one.pt", weights_only=True)
    assert all(x.is_packed and x.tolist() == stored[name].tolist() for name, x in one.items())


def test_a_packed_copy_is_that_of_the_source() -> None:
    """``copy_`` into a packed tensor of other lengths: detached aliases see it, and a view of a part unpacks it."""

    def batch(*lengths: int) -> mt.MaskedTensor:
        return mt.from_sequences([torch.full((n, 1), float(n)) for n in lengths], packed=True)

    x, y = batch(3, 1), batch(1, 3)
    whole = x.detach()
    x.copy_(y)
    assert x.is_packed
    assert x.tolist() == whole.tolist() == y.tolist()
    part = x[:1]
    x.copy_(batch(3, 2))
    assert part.tolist() == batch(3, 2)[:1].tolist()
    assert whole.tolist() == x.tolist() == batch(3, 2).tolist()

"""Masked tensors of DTensors: the mask travels with the data, and torch's tensor parallelism is exact."""

import subprocess
import sys
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import distributed

if not distributed.is_available():
    pytest.skip("torch was built without torch.distributed", allow_module_level=True)

from torch.distributed.tensor import DTensor, Partial, Replicate, Shard, distribute_tensor

import masked_tensor as mt

from .helpers.ranks import alone, gathered

DATA = torch.arange(8.0).view(4, 2)
VALID = DATA % 3 > 0
RECENT = pytest.mark.skipif(torch.__version__ < "2.13", reason="before, torch's DTensors knew fewer ops and placements")


@pytest.fixture(scope="module")
def mesh() -> Iterator[Any]:
    with alone() as mesh:
        yield mesh


def whole(x: Any) -> tuple[Any, Any]:
    return x.full_tensor().tolist(), x.placements


@RECENT
@pytest.mark.parametrize("placement", [Shard(0), Shard(1), Replicate()], ids=["rows", "columns", "whole"])
@pytest.mark.parametrize(
    "valid", [VALID, VALID[:, :1], VALID[:1], torch.tensor(True)], ids=["all", "row", "col", "one"]
)
def test_every_way_to_make_one(mesh: Any, placement: Any, valid: torch.Tensor) -> None:
    x = mt.masked_tensor(DATA, valid)
    expected = x.tolist(), (placement,)
    on_mesh = distribute_tensor(DATA, mesh, [placement])
    mask = distribute_tensor(valid.expand(4, 2).contiguous(), mesh, [Replicate()])
    made = [
        distribute_tensor(x, mesh, [placement]),
        DTensor.from_local(x, mesh, [placement]),
        mt.as_masked_tensor(on_mesh, valid),
        mt.as_masked_tensor(on_mesh, mask),
        mt.masked_tensor(on_mesh, valid),
    ]
    for y in made:
        assert mt.is_masked_tensor(y)
        assert isinstance(mt.get_data(y), DTensor)
        assert whole(y) == expected
        assert y.device_mesh == mesh
        assert y.to_local().tolist() == x.tolist()
        assert whole(y.redistribute(mesh, [Shard(0)])) == (x.tolist(), (Shard(0),))
        assert whole(y + 1)[0] == (x + 1).tolist()


def test_a_packed_tensor_is_unpacked(mesh: Any) -> None:
    x = mt.masked_tensor(DATA[None], torch.tensor([[[True], [True], [False], [False]]]))
    expected = x.tolist()
    for y in (distribute_tensor(x.packed(), mesh, [Shard(0)]), DTensor.from_local(x.packed(), mesh, [Shard(1)])):
        assert y.full_tensor().tolist() == expected
        assert (y * 2).to_local().tolist() == (x * 2).tolist()


def test_gradients_reach_what_it_was_made_of(mesh: Any) -> None:
    x = mt.masked_tensor(DATA, VALID, requires_grad=True)
    y = DTensor.from_local(x, mesh, [Shard(0)])
    y.redistribute(mesh, [Replicate()]).exp().mean().full_tensor().backward()
    expected = mt.masked_tensor(DATA, VALID, requires_grad=True)
    expected.exp().mean().backward()
    assert x.grad.tolist() == expected.grad.tolist()
    leaf = distribute_tensor(expected.detach().requires_grad_(), mesh, [Shard(0)])
    assert leaf.is_leaf
    leaf.exp().mean().full_tensor().backward()
    assert leaf.grad.full_tensor().tolist() == expected.grad.tolist()


def test_a_part_that_is_still_to_be_added(mesh: Any) -> None:
    x = mt.masked_tensor(DATA, VALID)
    y = DTensor.from_local(x, mesh, [Partial()])
    assert whole(y) == (x.tolist(), (Partial(),))


@pytest.mark.parametrize("reduction", ["sum", "product", "max", "min"])
def test_a_masked_entry_is_no_term(mesh: Any, reduction: str) -> None:
    x = mt.as_masked_tensor(torch.where(VALID, DATA, torch.nan), VALID).requires_grad_()
    whole = DTensor.from_local(x, mesh, [Partial(reduction)]).full_tensor()
    assert whole.tolist() == x.tolist()
    whole.sum().backward()
    assert x.grad.filled(0).tolist() == VALID.double().tolist()


def test_an_average_over_ranks_is_refused(mesh: Any) -> None:
    with pytest.raises(mt.UnsupportedOpError, match=r"combined by \['avg'\]: give it Partial\('sum'\)"):
        DTensor.from_local(mt.masked_tensor(DATA, VALID), mesh, [Partial("avg")])


def test_only_those_on_a_mesh_have_placements(mesh: Any) -> None:
    plain, spread = mt.masked_tensor(DATA, VALID), mt.as_masked_tensor(distribute_tensor(DATA, mesh, [Shard(0)]), VALID)
    for name in ("redistribute", "to_local", "full_tensor", "placements", "device_mesh"):
        assert hasattr(spread, name)
        assert not hasattr(plain, name)


def test_it_prints_what_lies_here(mesh: Any) -> None:
    x = mt.as_masked_tensor(distribute_tensor(DATA[:2], mesh, [Shard(0)]), VALID[:2])
    assert repr(x) == (
        "masked_tensor(local=[[    --, 1.0000],\n"
        "                     [2.0000,     --]], size=(2, 2), dtype=torch.float32, device='cpu', "
        f"placements=(Shard(dim=0),), device_mesh={mesh})"
    )


def test_a_mask_lies_where_its_data_does(mesh: Any) -> None:
    on_mesh = distribute_tensor(VALID, mesh, [Shard(0)])
    with pytest.raises(
        TypeError, match=r"mask is a DTensor and the data is not: distribute the data too .*full_tensor"
    ):
        mt.as_masked_tensor(DATA, on_mesh)
    with pytest.raises(ValueError, match="broadcastable to data's shape"):
        mt.as_masked_tensor(distribute_tensor(DATA, mesh, [Shard(0)]), VALID[:3])


OPS = {
    "sort": lambda x: x.sort(0).values,
    "mode": lambda x: x.mode(0).values,
    "median": lambda x: x.median(0).values,
    "softmax": lambda x: x.softmax(1),
    "var": lambda x: x.var(0),
    "cumsum": lambda x: x.cumsum(0),
    "pad": lambda x: F.pad(x, (1, 1)),
    "interpolate": lambda x: F.interpolate(x[None], scale_factor=2, mode="linear"),
    "nearest": lambda x: F.interpolate(x[None], scale_factor=2),
    "conv_transpose": lambda x: F.conv_transpose1d(x[None], x.new_ones(4, 2, 1)),
    "where": lambda x: torch.where(x > 2, x, 0.0),
    "matmul": lambda x: x @ x.T,
    "layer_norm": lambda x: F.layer_norm(x, (2,)),
    "plain": lambda x: x + mt.get_data(x),
}


@RECENT
@pytest.mark.parametrize("op", OPS)
def test_constants_of_rules_lie_on_the_mesh(mesh: Any, op: str) -> None:
    x = mt.masked_tensor(DATA, VALID)
    y = OPS[op](mt.as_masked_tensor(distribute_tensor(DATA, mesh, [Replicate()]), VALID))
    torch.testing.assert_close(y.full_tensor(), OPS[op](x))


def test_torch_may_be_asked_for_its_mesh_later() -> None:
    code = (
        "import masked_tensor, sys; assert 'torch.distributed.tensor' not in sys.modules\n"
        "from torch.distributed.tensor import DTensor\n"
        "assert 'masked' not in DTensor.from_local.__name__\n"
        "masked_tensor.masked_tensor([1.0, None])\nassert 'masked' in DTensor.from_local.__name__"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)


@pytest.fixture(scope="module")
def on_two_ranks() -> list[dict[str, Any]]:
    from .helpers.parallel import all_on_two_ranks

    return gathered(2, all_on_two_ranks)


@RECENT
def test_shards_of_different_length_and_terms_with_other_masked_entries(on_two_ranks: list[dict[str, Any]]) -> None:
    assert [rank["uneven"] for rank in on_two_ranks] == [[], []]


@RECENT
@pytest.mark.parametrize("case", ["tensor parallel", "with fsdp", "staged"])
def test_parallelism_is_exact(case: str, on_two_ranks: list[dict[str, Any]]) -> None:
    for rank in on_two_ranks:
        assert rank[case] < 1e-12


def holds(stage: Any, output: torch.Tensor) -> None:
    """Makes ``output`` what the stage has computed of its first part."""
    if torch.__version__ < "2.15":
        stage.fwd_cache[0] = (output,), []
    else:
        stage._forward_chunk_states[0] = SimpleNamespace(live_outputs=[output], send_pending=[False])


def test_a_pipeline_stage_cannot_send_a_masked_tensor(mesh: Any) -> None:
    from torch.distributed.pipelining import PipelineStage

    stage = PipelineStage(torch.nn.Identity(), 0, 2, torch.device("cpu"))
    stage.act_send_info, stage.stage_index_to_group_rank = {0: [1]}, {0: 0, 1: 0}
    holds(stage, mt.masked_tensor([1.0, None]))
    with pytest.raises(TypeError, match=r"cannot send a masked tensor.*begin the next stage with as_masked_tensor"):
        stage.get_fwd_send_ops(0)
    holds(stage, torch.ones(2))
    assert len(stage.get_fwd_send_ops(0)) == 1

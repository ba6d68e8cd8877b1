"""Packed tensors in and out: nested tensors, packed sequences, loaders; hooks, checkpoints; what moves them."""

from functools import partial

import pytest
import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

import masked_tensor as mt

from .helpers.harness import assert_same

LENGTHS = (2, 5, 1)


def sequences(*features: int) -> list[Tensor]:
    generator = torch.Generator().manual_seed(0)
    return [torch.randn(n, *features, generator=generator, dtype=torch.float64).requires_grad_() for n in LENGTHS]


@pytest.mark.parametrize("features", [(), (3,), (2, 3)])
def test_nested_tensors_come_and_go_as_rows(features: tuple[int, ...]) -> None:
    rows = sequences(*features)
    nested = torch.nested.as_nested_tensor(rows, layout=torch.jagged)
    x, p = mt.from_nested(nested), mt.from_nested(nested, packed=True)
    assert p.is_packed
    assert_same(p, x, "from nested")
    with mt.extend.packing_report() as report:
        back = (p * 2).to_nested()
    assert not report
    assert back.layout is torch.jagged
    back.values().sum().backward()
    for row, ours in zip(rows, back.unbind(), strict=True):
        torch.testing.assert_close(ours, row * 2)
        assert torch.equal(row.grad, torch.full_like(row, 2))


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
def test_what_is_not_jagged_over_time_is_packed_all_the_same() -> None:
    rows = [r.detach() for r in sequences(3)]
    strided = torch.nested.nested_tensor(rows)
    turned = torch.nested.as_nested_tensor(rows, layout=torch.jagged).transpose(1, 2)
    for nested in (strided, turned):
        p = mt.from_nested(nested, packed=True)
        assert p.is_packed
        assert_same(p, mt.from_nested(nested), "from nested")


def test_packed_sequences_go_as_rows() -> None:
    rows = sequences(3)
    p, x = (mt.from_sequences(rows, packed=k) for k in (True, False))
    ours, theirs = p.to_packed_sequence(False), x.to_packed_sequence(False)
    assert torch.equal(ours.data, theirs.data)
    assert torch.equal(ours.batch_sizes, theirs.batch_sizes)
    assert torch.equal(ours.sorted_indices, theirs.sorted_indices)
    assert torch.equal(ours.unsorted_indices, theirs.unsorted_indices)
    ours.data.sum().backward()
    assert all(torch.equal(r.grad, torch.ones_like(r)) for r in rows)
    with pytest.raises(RuntimeError, match="sorted"):
        p.to_packed_sequence()
    assert_same(mt.masked_tensor(ours).packed(), x, "a packed sequence comes in")


def test_sequences_go_as_rows() -> None:
    for side in ("right", "left"):
        rows = sequences(3)
        p = mt.from_sequences(rows, packed=True, padding_side=side)
        assert p.lengths().tolist() == list(LENGTHS)
        assert all(torch.equal(a, b) for a, b in zip(p.unpad(), rows, strict=True))
    turned = mt.from_sequences(rows, packed=True).transpose(1, 2)
    assert all(torch.equal(a, b.T) for a, b in zip(turned.unpad(2), rows, strict=True))
    with pytest.raises(ValueError, match="cannot read the lengths from the mask"):
        mt.masked_tensor([[1.0, None, 2.0]]).packed().unpad()


def test_a_loader_gives_packed_batches() -> None:
    samples = [{"x": r.detach(), "y": k, "scattered": [1.0, None][: k + 1]} for k, r in enumerate(sequences(3)[:2])]
    loader = torch.utils.data.DataLoader(samples, 2, collate_fn=partial(mt.collate, packed=True, padding_side="left"))
    (batch,) = loader
    expected = mt.collate(samples, padding_side="left")
    assert batch["x"].is_packed
    assert batch["scattered"].is_packed
    assert torch.equal(batch["y"], expected["y"])
    for key in ("x", "scattered"):
        assert_same(batch[key], expected[key], key)


def test_hooks_see_packed_gradients_and_may_replace_them() -> None:
    seen = []
    p = mt.from_sequences([r.detach() for r in sequences(3)], packed=True).requires_grad_()
    y = p * 3
    y.register_hook(lambda g: seen.append(g.is_packed) or g * 2)
    p.register_post_accumulate_grad_hook(lambda x: seen.append(x.grad.is_packed))
    y.retain_grad()
    y.sum().backward()
    assert seen == [True, True]
    assert y.grad.is_packed
    assert_same(p.grad, torch.ones_like(p.detach()) * 6, "gradient")


def test_module_hooks_and_checkpoints() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 4), nn.GELU(), nn.Linear(4, 2)).double()
    seen = []
    model[0].register_forward_hook(lambda module, given, out: seen.append(out.is_packed))
    model[1].register_full_backward_hook(lambda module, grad_in, grad_out: None)
    rows = [r.detach() for r in sequences(3)]
    found = []
    for packed in (True, False):
        for run in (
            model,
            partial(checkpoint, model, use_reentrant=False),
            partial(checkpoint, model, use_reentrant=True),
        ):
            x = mt.from_sequences(rows, packed=packed).requires_grad_()
            model.zero_grad()
            run(x).square().mean().backward()
            found.append([x.grad, *(w.grad.clone() for w in model.parameters())])
        assert seen[0] == packed
        seen.clear()
    for other in found[1:]:
        for a, b in zip(found[0], other, strict=True):
            assert_same(a, b, "gradient")


def test_moves_keep_it_packed() -> None:
    p = mt.from_sequences([r.detach() for r in sequences(3)], packed=True)
    for y in (p.to("cpu"), p.cpu(), p.to("cpu", torch.float32), p.to(p), p.share_memory_()):
        assert y.is_packed
        assert_same(y.double(), p.float().double() if y.dtype is torch.float32 else p, "moved")
    with torch.inference_mode():
        q = mt.from_sequences([r.detach() for r in sequences(3)], packed=True)
        assert (q * 2).is_packed
        assert_same(q * 2, p * 2, "in inference mode")


def test_every_unpacking_is_counted() -> None:
    p = mt.from_sequences([r.detach() for r in sequences(3)], packed=True)
    with mt.extend.packing_report() as outer:
        p.flip(1)
        with mt.extend.packing_report() as inner:
            p.flip(1), p.exp()
        torch.atleast_3d([p, p])
    assert {k: v.calls for k, v in inner.items()} == {"aten::flip": 1}
    assert outer["aten::flip"].calls == 2
    assert outer["aten::flip"].bytes == 2 * p.shape.numel() * p.element_size()
    assert "packed  along features" in mt.explain("softmax")
    assert "packed  no packed rule" in mt.explain("flip")


@pytest.mark.parametrize("enforce_sorted", [True, False])
@pytest.mark.parametrize("features", [(), (2,), (2, 3)], ids=str)
def test_a_packed_sequence_enters_without_being_padded(features: tuple[int, ...], enforce_sorted: bool) -> None:
    lengths = [4, 3, 3, 1] if enforce_sorted else [3, 1, 4, 3]
    sequences = [torch.randn(n, *features, requires_grad=True) for n in lengths]
    given = nn.utils.rnn.pack_sequence(sequences, enforce_sorted)
    with mt.extend.packing_report() as report:
        p = mt.from_nested(given, packed=True)
        assert p.is_packed
        (p * 2).sum().backward()
    assert not report
    assert [s.grad.unique().tolist() for s in sequences] == [[2.0]] * 4
    assert_same(p, mt.masked_tensor(given), "packed sequence")
    assert_same(mt.from_nested(given), p, "padded")
    back = p.to_packed_sequence(False)
    for a, b in zip(nn.utils.rnn.unpack_sequence(back), sequences, strict=True):
        assert torch.equal(a, b)

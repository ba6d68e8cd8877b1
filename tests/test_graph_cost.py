"""What compiling costs: work that grows with the masked results inside of a graph is not done."""

import random

import pytest
import torch
from torch import Tensor, nn
from torch._dynamo.testing import CompileCounterWithBackend
from torch._subclasses.functional_tensor import FunctionalTensor

import masked_tensor as mt
from masked_tensor import masks


@pytest.mark.parametrize("dynamic", [False, True])
def test_only_what_leaves_a_graph_is_taken_apart(dynamic: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """The bytes of a mask are not computed for what stays inside."""
    converted, to_bytes = 0, masks.to_bytes

    def count_bytes(mask: Tensor) -> Tensor:
        nonlocal converted
        converted += type(mask) is FunctionalTensor
        return to_bytes(mask)

    monkeypatch.setattr(masks, "to_bytes", count_bytes)
    found = []
    for steps in (1, 9):
        torch.compiler.reset()
        converted = 0
        x = mt.masked_tensor([[1.0, None, 2.0], [None, None, 3.0]]).requires_grad_()

        def chain(x: Tensor, steps: int = steps) -> Tensor:
            for _ in range(steps):
                x = (x * 2).transpose(0, 1) + 1
            return x

        y = torch.compile(chain, backend="aot_eager", fullgraph=True, dynamic=dynamic)(x)
        torch.testing.assert_close(y.filled(0), chain(x).filled(0))
        found.append(converted)
    assert found[0] == found[1]


def test_batches_of_all_sizes_are_as_many_graphs_as_by_hand() -> None:
    net = nn.Sequential(nn.Linear(4, 4), nn.LayerNorm(4))

    def masked(data: Tensor, lengths: Tensor) -> Tensor:
        return net(mt.from_lengths(data, lengths)).softmax(1).square().mean().filled(0.0)

    def by_hand(data: Tensor, lengths: Tensor) -> Tensor:
        valid = (torch.arange(data.shape[1]) < lengths[:, None])[..., None]
        y = net(data).masked_fill(~valid, -torch.inf).softmax(1).masked_fill(~valid, 0)
        return y.square().sum() / (valid.sum() * 4)

    found = []
    for step in (by_hand, masked):
        torch.compiler.reset()
        counter, draw = CompileCounterWithBackend("aot_eager"), random.Random(0)
        run = torch.compile(step, fullgraph=True, backend=counter)
        for _ in range(8):
            batch, time = draw.randint(2, 9), draw.randint(3, 40)
            data, lengths = torch.randn(batch, time, 4), torch.randint(1, time + 1, (batch,))
            loss = run(data, lengths)
            loss.backward()
            torch.testing.assert_close(loss, by_hand(data, lengths))
        found.append(counter.frame_count)
    assert found[0] == found[1] <= 2

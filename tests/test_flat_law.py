"""Generated modules, flat: each sequence as if it were alone, values and gradients of parameters and inputs.

``MASKED_TENSOR_FLAT=2000`` draws so many modules.
"""

import os
import random
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention as stored_before

import masked_tensor as mt
from masked_tensor import settings
from masked_tensor.compat import tree_leaves

WIDTH = 8
DRAWN = int(os.environ.get("MASKED_TENSOR_FLAT", "10"))
GARBAGE = [float("nan"), float("inf"), 1e30]


class Attention(nn.Module):
    """By torch's function: grouped heads, rotary positions, a scale, causal or not."""

    def __init__(self, draw: random.Random) -> None:
        super().__init__()
        self.heads = draw.choice([1, 2, 4])
        self.groups = draw.choice([n for n in (1, 2, 4) if self.heads % n == 0])
        self.causal, self.rotary, self.stored = (draw.random() < 0.5 for _ in range(3))
        self.scale = draw.choice([None, 0.3])
        self.project = nn.Linear(WIDTH, WIDTH + 2 * WIDTH // self.groups)
        self.out = nn.Linear(WIDTH, WIDTH)

    def forward(self, x: Tensor, positions: Tensor) -> Tensor:
        small = WIDTH // self.groups
        q, k, v = self.project(x).split([WIDTH, small, small], -1)
        q = q.unflatten(-1, (self.heads, -1)).transpose(1, 2)
        k, v = (t.unflatten(-1, (self.heads // self.groups, -1)).transpose(1, 2) for t in (k, v))
        if self.rotary and q.shape[-1] > 1:
            q, k = turned(q, positions), turned(k, positions)
        attend = stored_before if self.stored else F.scaled_dot_product_attention
        y = attend(q, k, v, is_causal=self.causal, scale=self.scale, enable_gqa=self.groups > 1)
        return self.out(y.transpose(1, 2).flatten(2))


def turned(x: Tensor, positions: Tensor) -> Tensor:
    """Rotary positions, half of the features against the other half."""
    a, b = x.chunk(2, -1)
    angle = positions[:, None, :, None] / (1.0 + torch.arange(a.shape[-1], dtype=x.dtype))
    return torch.cat([a * angle.cos() - b * angle.sin(), a * angle.sin() + b * angle.cos()], -1)


class ManyHeads(nn.Module):
    """``nn.MultiheadAttention``, which gives weights unless it is told not to."""

    def __init__(self, draw: random.Random) -> None:
        super().__init__()
        own = {"kdim": WIDTH // 2, "vdim": WIDTH // 2} if draw.random() < 0.3 else {}
        self.narrow = nn.Linear(WIDTH, WIDTH // 2) if own else nn.Identity()
        self.over = nn.MultiheadAttention(
            WIDTH, draw.choice([1, 2, 4]), bias=draw.random() < 0.7, batch_first=True, **own
        )
        self.told = draw.choice([{}, {"need_weights": False}])

    def forward(self, x: Tensor, positions: Tensor) -> Tensor:
        key = self.narrow(x)
        y: Tensor = self.over(x, key, key, **self.told)[0]
        return y


class ByStep(nn.Module):
    """What treats each step by itself."""

    def __init__(self, draw: random.Random) -> None:
        super().__init__()
        wide = 2 * WIDTH
        self.over = draw.choice([
            lambda: nn.Sequential(nn.Linear(WIDTH, wide), nn.GELU(), nn.Linear(wide, WIDTH)),
            lambda: nn.Sequential(nn.Linear(WIDTH, wide), nn.GLU(-1)),
            lambda: nn.LayerNorm(WIDTH),
            lambda: nn.RMSNorm(WIDTH),
            lambda: nn.Sequential(nn.Unflatten(-1, (2, -1)), nn.Softmax(-1), nn.Flatten(-2)),
        ])()  # fmt: skip

    def forward(self, x: Tensor, positions: Tensor) -> Tensor:
        y: Tensor = self.over(x)
        return y


class Layer(nn.Module):
    """A layer of torch's own encoder."""

    def __init__(self, draw: random.Random) -> None:
        super().__init__()
        first, heads, act = draw.random() < 0.5, draw.choice([1, 2]), draw.choice(["relu", "gelu"])
        self.over = nn.TransformerEncoderLayer(WIDTH, heads, 12, 0.0, act, batch_first=True, norm_first=first)

    def forward(self, x: Tensor, positions: Tensor) -> Tensor:
        y: Tensor = self.over(x)
        return y


class Residual(nn.Module):
    """A norm, a block, and what went in."""

    def __init__(self, draw: random.Random) -> None:
        super().__init__()
        self.norm, self.block = nn.LayerNorm(WIDTH), draw.choice(BLOCKS)(draw)

    def forward(self, x: Tensor, positions: Tensor) -> Tensor:
        y: Tensor = x + self.block(self.norm(x), positions)
        return y


class Branches(nn.Module):
    """Two blocks side by side."""

    def __init__(self, draw: random.Random) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(draw.choice(BLOCKS)(draw) for _ in range(2))
        self.join = nn.Linear(2 * WIDTH, WIDTH)

    def forward(self, x: Tensor, positions: Tensor) -> Tensor:
        y: Tensor = self.join(torch.cat([block(x, positions) for block in self.blocks], -1))
        return y


BLOCKS: list[Callable[[random.Random], nn.Module]] = [Attention, ManyHeads, ByStep, Layer]
PARTS = [*BLOCKS, Residual, Residual, Branches]
FORMS = ["places", "keywords", "a dict", "a list", "nested"]
OUTPUTS = ["one", "a tuple", "a dict", "nested"]


class Model(nn.Module):
    """Blocks one after the other; inputs and outputs in a form that was drawn."""

    def __init__(self, draw: random.Random) -> None:
        super().__init__()
        self.form, self.gives = draw.choice(FORMS), draw.choice(OUTPUTS)
        self.places = nn.Embedding(16, WIDTH) if draw.random() < 0.5 else None
        self.blocks = nn.ModuleList(draw.choice(PARTS)(draw) for _ in range(draw.randint(1, 4)))

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        x, positions, weights = taken(self.form, args, kwargs)
        h = x * weights[..., None] + (0 if self.places is None else self.places(positions))
        states = [h := block(h, positions) for block in self.blocks]
        if self.gives == "one":
            return h
        parts = h.sum(-1), h.unflatten(-1, (2, -1))
        if self.gives == "a tuple":
            return h, *parts
        return {"h": h, "sum": parts[0]} if self.gives == "a dict" else [h, {"states": states, "parts": parts}]


def given(form: str, x: Any, positions: Any, weights: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The three inputs in one of the forms."""
    return {
        "places": ((x, positions, weights), {}),
        "keywords": ((), {"weights": weights, "positions": positions, "x": x}),
        "a dict": (({"x": x, "positions": positions, "weights": weights},), {}),
        "a list": (([x, positions, weights],), {}),
        "nested": ((x,), {"more": {"rest": [positions, {"weights": weights}]}}),
    }[form]


def taken(form: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Tensor, Tensor, Tensor]:
    """The three inputs out of one of the forms."""
    if form in ("a dict", "keywords"):
        found = args[0] if args else kwargs
        return found["x"], found["positions"], found["weights"]
    if form == "nested":
        positions, rest = kwargs["more"]["rest"]
        return args[0], positions, rest["weights"]
    return args if form == "places" else tuple(args[0])  # type: ignore[return-value]  # three of them


@pytest.mark.parametrize("seed", range(DRAWN))
def test_a_flat_module_gives_what_each_sequence_gives_alone(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    draw = random.Random(seed)
    torch.manual_seed(seed)
    monkeypatch.setattr(settings, "TOGETHER", draw.choice([0, settings.TOGETHER]))  # a call for each length, or one
    model = Model(draw).double()
    lengths = [draw.randint(0, 7) for _ in range(draw.randint(1, 5))]
    lengths[draw.randrange(len(lengths))] = draw.randint(1, 9)
    left, garbage = draw.random() < 0.5, draw.choice(GARBAGE)
    time = max(lengths) + draw.choice([0, 0, 2])
    steps, lasts = torch.arange(time), torch.tensor(lengths)[:, None]
    valid = steps >= time - lasts if left else steps < lasts
    data = torch.randn(len(lengths), time, WIDTH).double()
    if draw.random() < 0.3:
        data = data.permute(2, 1, 0).contiguous().permute(2, 1, 0)  # time does not lie as it is counted
    weights = torch.rand(len(lengths), time).double()
    positions = (valid.cumsum(1) - 1).clamp_min(0)

    x, w = data.clone().requires_grad_(), weights.clone().requires_grad_()
    rows = [(x[b, m][None], positions[b, m][None], w[b, m][None]) for b, m in enumerate(valid) if m.any()]
    outs = [tree_leaves(call(model, row)) for row in rows]
    wanted = [torch.cat([o[0] for o in part]) for part in zip(*outs, strict=True)]
    ways = [torch.randn_like(part) for part in wanted]
    sources = [*model.parameters(), x, w]
    expected = torch.autograd.grad(wanted, sources, ways, allow_unused=True)

    mt.flat(model)
    for packed in (False, True):
        x = data.masked_fill(~valid[..., None], garbage).requires_grad_()
        w = weights.masked_fill(~valid, garbage).requires_grad_()
        masked = [mt.as_masked_tensor(x, valid[..., None]), mt.as_masked_tensor(positions, valid)]
        if draw.random() < 0.5:
            masked[1] = positions.masked_fill(~valid, -1)  # plain beside the batch
        masked.append(mt.as_masked_tensor(w, valid))
        if packed:
            masked = [y.packed() if mt.is_masked_tensor(y) else y for y in masked]
        got = tree_leaves(call(model, masked))
        assert all(y.is_packed and torch.equal(y.lengths(), torch.tensor(lengths)) for y in got)
        found = [y.filled(0)[valid] for y in got]
        grads = torch.autograd.grad(found, [*model.parameters(), x, w], ways, allow_unused=True)
        torch.testing.assert_close(found, wanted)
        with torch.inference_mode():
            again = [y.filled(0)[valid] for y in tree_leaves(call(model, masked))]
        torch.testing.assert_close(again, found)
        for a, b in zip(grads, expected, strict=True):
            torch.testing.assert_close(*(torch.zeros(()) if g is None else g for g in (a, b)))


def call(model: nn.Module, inputs: Any) -> Any:
    args, kwargs = given(model.form, *inputs)  # type: ignore[arg-type]  # a str
    return model(*args, **kwargs)

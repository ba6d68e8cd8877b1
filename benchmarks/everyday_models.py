"""Models and losses of ``everyday.py``: training steps as an expert writes them by hand."""

from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

import masked_tensor as mt

from .everyday_case import FINITE, Case, random_mask
from .packed import batch
from .timing import Candidates, training_step

Losses = dict[str, Callable[[], Tensor]]


def steps(model: nn.Module, losses: Losses) -> Candidates:
    """Forward and backward of each loss, which is what is compared."""
    made = {name: training_step(model, loss) for name, loss in losses.items()}
    return {name: (lambda step=step: step().detach()) for name, step in made.items()}


def mean_squares(error: Tensor, known: Tensor) -> Tensor:
    return torch.where(known, error.square(), 0).sum() / known.sum()


def perceptron(size: int, width: int, dtype: torch.dtype, features: bool = True) -> Candidates:
    """Three Linear, a random mask of the input and in the target, or in the target alone."""
    model = nn.Sequential(
        nn.Linear(64, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 8)
    ).to(dtype)  # fmt: skip
    data, target = torch.randn(size, 64, dtype=dtype), torch.randn(size, 8, dtype=dtype)
    seen, known = random_mask(size, 64), random_mask(size, 8)
    x, y = mt.masked_tensor(data, seen) if features else data, mt.masked_tensor(target, known)

    def by_hand() -> Tensor:
        given = torch.where(seen, data, 0) if features else data
        return mean_squares(model(given) - torch.where(known, target, 0), known)

    def on_finite_data() -> Tensor:
        given = data * seen if features else data
        return ((model(given) - target).square() * known).sum() / known.sum()

    return steps(
        model,
        {
            "plain": lambda: F.mse_loss(model(data), target),
            "by hand": by_hand,
            FINITE: on_finite_data,
            "masked": lambda: ours(model(x), y),
        },
    )


def ours(output: Any, target: Any) -> Tensor:
    return F.mse_loss(output, target).filled(0)  # type: ignore[attr-defined, no-any-return]


def readme(size: int, width: int, dtype: torch.dtype) -> Candidates:
    """The README's model: batch norm and Linear."""
    model = nn.Sequential(nn.BatchNorm1d(width), nn.Linear(width, width)).to(dtype)
    norm, linear = model[0], model[1]
    data, target, seen = (
        torch.randn(size, width, dtype=dtype),
        torch.randn(size, width, dtype=dtype),
        random_mask(size, width),
    )
    x = mt.masked_tensor(data, seen)

    def by_hand() -> Tensor:
        number = seen.sum(0)
        centred = torch.where(seen, data - torch.where(seen, data, 0).sum(0) / number, 0)
        variance = centred.square().sum(0) / number
        with torch.no_grad():
            norm.running_var.lerp_((variance * number / (number - 1)).to(norm.running_var.dtype), 0.1)
            norm.running_mean.lerp_((torch.where(seen, data, 0).sum(0) / number).to(norm.running_mean.dtype), 0.1)
        y = torch.where(seen, centred * (variance + norm.eps).rsqrt() * norm.weight + norm.bias, 0)
        return F.mse_loss(linear(y), target)

    def masked() -> Tensor:
        return ours(model(x), target)

    return steps(model, {"plain": lambda: F.mse_loss(model(data), target), "by hand": by_hand, "masked": masked})


def labels(size: int, dtype: torch.dtype) -> Candidates:
    """Cross entropy of 1000 classes, a third of the labels masked, both ways."""
    scores = torch.randn(size, 1000, dtype=dtype, requires_grad=True)
    target, known = torch.randint(1000, (size,)), random_mask(size)
    y, ignored = mt.masked_tensor(target, known), torch.where(known, target, -100)

    def step(loss: Callable[[], Tensor]) -> Callable[[], Tensor]:
        def run() -> Tensor:
            value = loss()
            value.backward()  # type: ignore[no-untyped-call]
            scores.grad = None
            return value.detach()

        return run

    return {
        "plain": step(lambda: F.cross_entropy(scores, target)),
        "by hand": step(lambda: F.cross_entropy(scores, ignored)),
        "masked": step(lambda: F.cross_entropy(scores, y).filled(0)),  # type: ignore[attr-defined]
    }


def mse(size: int, dtype: torch.dtype) -> Candidates:
    data, target, known = (
        torch.randn(size, dtype=dtype, requires_grad=True),
        torch.randn(size, dtype=dtype),
        random_mask(size),
    )
    y = mt.masked_tensor(target, known)

    def step(loss: Callable[[], Tensor]) -> Callable[[], Tensor]:
        def run() -> Tensor:
            value = loss()
            value.backward()  # type: ignore[no-untyped-call]
            data.grad = None
            return value.detach()

        return run

    return {
        "plain": step(lambda: F.mse_loss(data, target)),
        "by hand": step(lambda: mean_squares(data - torch.where(known, target, 0), known)),
        FINITE: step(lambda: ((data - target).square() * known).sum() / known.sum()),
        "masked": step(lambda: ours(data, y)),
    }


def convolutions(size: int, dtype: torch.dtype) -> Candidates:
    """Four dilated convolutions over time, half of it padding."""
    layers = [nn.Conv1d(16, 16, 3, padding=d, dilation=d) for d in (1, 2, 4, 8)]
    model = nn.ModuleList(layers).to(dtype)
    valid, data = batch((16, size), 0.5)[:, None], torch.randn(16, 16, size, dtype=dtype)
    x, zeros, weight = mt.masked_tensor(data, valid), data * valid, valid / (valid.sum() * 16)

    def run(y: Any, after: Callable[[Any], Any] = lambda y: y) -> Any:
        for layer in model:
            y = after(layer(y).relu())
        return y

    return steps(
        model,
        {
            "plain": lambda: run(data).square().mean(),
            "by hand": lambda: (run(zeros, lambda y: y * valid).square() * weight).sum().to(dtype),
            "masked": lambda: run(x).square().mean().filled(0),
        },
    )


class Net(nn.Module):
    """A U-Net of two levels with group norm."""

    def __init__(self, width: int = 16) -> None:
        super().__init__()

        def block(a: int, b: int) -> nn.Module:
            return nn.Sequential(nn.Conv2d(a, b, 3, padding=1), nn.GroupNorm(4, b), nn.ReLU())

        self.down, self.low, self.up = block(4, width), block(width, 2 * width), block(3 * width, width)
        self.last = nn.Conv2d(width, 1, 1)

    def forward(self, x: Any) -> Any:
        a = self.down(x)
        b = self.low(F.max_pool2d(a, 2))
        b = F.interpolate(b, scale_factor=2.0, mode="nearest")
        return self.last(self.up(torch.cat([a, b], 1)))


def block_by_hand(block: nn.Module, *parts: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
    """A convolution whose result is valid where it sees something, group norm of what is valid, and ReLU.

    ``parts`` of the input, along the channels, have masks (B, 1, H, W) of their own.
    """
    conv, norm, relu = block  # type: ignore[misc]  # a Sequential
    x = conv(torch.cat([torch.where(valid, data, 0) for data, valid in parts], 1))
    some = torch.stack([valid for _, valid in parts]).any(0)
    valid = F.max_pool2d(some.to(x.dtype), 3, 1, 1) > 0
    apart = torch.where(valid, x, 0).unflatten(1, (norm.num_groups, -1))
    number, inside = valid.sum((1, 2, 3)).view(-1, 1, 1, 1, 1) * apart.shape[2], valid[:, None]
    centred = torch.where(inside, apart - apart.sum((2, 3, 4), keepdim=True) / number, 0)
    scale = (centred.square().sum((2, 3, 4), keepdim=True) / number + norm.eps).rsqrt()
    y = (centred * scale).flatten(1, 2) * norm.weight.view(-1, 1, 1) + norm.bias.view(-1, 1, 1)
    return relu(y), valid


def unet(size: int, dtype: torch.dtype) -> Candidates:
    """Clouds hide a tenth of the pixels, which are left out of the statistics; by hand and ours mean the same."""
    model = Net().to(dtype)
    data, seen = torch.randn(8, 4, size, size, dtype=dtype), random_mask(8, 1, size, size, share=0.1)
    x = mt.masked_tensor(data, seen)

    def by_hand() -> Tensor:
        a = block_by_hand(model.down, (data, seen))
        pooled = F.max_pool2d(torch.where(a[1], a[0], -torch.inf), 2)
        some = F.max_pool2d(a[1].to(dtype), 2) > 0
        low, valid = block_by_hand(model.low, (pooled, some))
        wide, known = (F.interpolate(t, scale_factor=2.0, mode="nearest") for t in (low, valid.to(dtype)))
        y, last = block_by_hand(model.up, (wide, known > 0), a)
        return (torch.where(last, model.last(y), 0).square().sum() / last.sum()).to(dtype)

    def masked() -> Tensor:
        with mt.meaning(convolution="any"):
            return model(x).square().mean().filled(0)  # type: ignore[no-any-return]

    return steps(model, {"plain": lambda: model(data).square().mean(), "by hand": by_hand, "masked": masked})


def clouds(size: int, dtype: torch.dtype) -> Candidates:
    """Two blocks of convolution, batch norm, ReLU and pooling; by hand and ours mean the same."""
    from .steps import pixels

    torch.set_default_dtype(dtype)
    try:
        model, losses = pixels(size)
    finally:
        torch.set_default_dtype(torch.float32)
    return steps(model, losses)


def recurrent(size: int, dtype: torch.dtype) -> Candidates:
    """A GRU; by hand a packed sequence."""
    model = nn.GRU(64, 64, batch_first=True).to(dtype)
    valid, data = batch((16, size), 0.5)[..., None], torch.randn(16, size, 64, dtype=dtype)
    lengths, x = valid.sum((1, 2)), mt.masked_tensor(data, valid)
    weight = valid / (valid.sum() * 64)

    def by_hand() -> Tensor:
        packed = pack_padded_sequence(data, lengths, batch_first=True, enforce_sorted=False)
        output = pad_packed_sequence(model(packed)[0], batch_first=True)[0]
        return (output.square() * weight).sum().to(dtype)

    return steps(
        model,
        {
            "plain": lambda: model(data)[0].square().mean(),
            "by hand": by_hand,
            "masked": lambda: model(x)[0].square().mean().filled(0),
        },
    )


def heads(size: int, dtype: torch.dtype) -> list[Tensor]:
    return [torch.randn(4, 4, size, 32, dtype=dtype, requires_grad=True) for _ in range(3)]


def scores(size: int, dtype: torch.dtype) -> Candidates:
    """Attention as two products and a softmax, the scores masked at random."""
    q, k, v = heads(size, dtype)
    seen = random_mask(4, 4, size, size)

    def attend(hide: Callable[[Tensor], Any]) -> Any:
        return hide(q @ k.mT / 32**0.5).softmax(-1)

    def by_hand() -> Tensor:
        return (attend(lambda s: s.masked_fill(~seen, -torch.inf)).nan_to_num(0) @ v).square().mean()

    def masked() -> Tensor:
        return (attend(lambda s: mt.as_masked_tensor(s, seen)).filled(0) @ v).square().mean()  # type: ignore[no-any-return]

    return steps(
        nn.ParameterList([q, k, v]),
        {"plain": lambda: (attend(lambda s: s) @ v).square().mean(), "by hand": by_hand, "masked": masked},
    )


def keys(size: int, dtype: torch.dtype) -> Candidates:
    """scaled_dot_product_attention with a mask of the keys, forward."""
    q, k, v = (t.detach() for t in heads(size, dtype))
    valid = batch((4, size), 0.5)
    hidden = valid[:, None, None]
    keyed = [mt.masked_tensor(t, valid[:, None, :, None]) for t in (k, v)]
    attend = F.scaled_dot_product_attention
    return {
        "plain": lambda: attend(q, k, v),
        "by hand": lambda: attend(q, k, v, attn_mask=hidden),
        "masked": lambda: attend(q, *keyed),
    }


def language(name: str, shape: tuple[int, int, int], kind: str, dtype: torch.dtype) -> Candidates:
    """A model of transformers on a batch of which 47 % is padding; by hand its own attention mask."""
    import transformers

    size, length, width = shape
    layers = 2 if width <= 64 else 4
    valid, tokens = batch((size, length), 0.47), torch.randint(5, 1000, (size, length))
    common = {"vocab_size": 1000, "hidden_size": width, "num_hidden_layers": layers, "num_attention_heads": 4}
    more = {
        "Bert": {"intermediate_size": 4 * width, "hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0},
        "Llama": {"intermediate_size": 3 * width, "num_key_value_heads": 2},
    }[name]
    model = getattr(transformers, f"{name}Model")(
        getattr(transformers, f"{name}Config")(**common, **more, use_cache=False)
    )
    model, weight = model.to(dtype), valid[..., None] / (valid.sum() * width)

    def run(given: Any, **said: Any) -> Any:
        return model(input_ids=given, **said).last_hidden_state.square()

    def masked() -> Tensor:
        x = mt.as_masked_tensor(tokens, valid)
        return run(x.packed() if kind == "packed" else x).mean().filled(0)  # type: ignore[no-any-return]

    return steps(
        model,
        {
            "plain": lambda: run(tokens).mean(),
            "by hand": lambda: (run(tokens, attention_mask=valid.long()) * weight).sum().to(dtype),
            "masked": masked,
        },
    )


LANGUAGE = [
    Case(
        f"{title}, {kind}",
        goal,
        lambda _, dtype, said=(name, shape, kind): language(*said, dtype),
        half=False,
        heavy=True,
    )
    for name, title, shape, kind, goal in (
        ("Bert", "BERT-tiny (B4 T32 H64)", (4, 32, 64), "masked", "1.6"),
        ("Bert", "BERT-small (B16 T128 H256)", (16, 128, 256), "masked", "1.1"),
        ("Bert", "BERT-small (B16 T128 H256)", (16, 128, 256), "packed", "0.75"),
        ("Llama", "Llama-small (B16 T128 H256)", (16, 128, 256), "masked", "1.15"),
        ("Llama", "Llama-small (B16 T128 H256)", (16, 128, 256), "packed", "0.8"),
    )
]
CASES = [
    Case("MLP b256 h64", "1.7", lambda _, dtype: perceptron(256, 64, dtype)),
    Case("MLP b256 h64, targets only", "1.2", lambda _, dtype: perceptron(256, 64, dtype, False)),
    Case("MLP b1024 h256", "1.2", lambda _, dtype: perceptron(1024, 256, dtype), heavy=True),
    Case("MLP b4096 h512", "1.1", lambda _, dtype: perceptron(4096, 512, dtype), half=False, heavy=True),
    Case("README's model b256 h64", "1.8", lambda _, dtype: readme(256, 64, dtype)),
    Case("README's model b4096 h256", "1.1", lambda _, dtype: readme(4096, 256, dtype), heavy=True),
    Case("cross_entropy 4096 x 1000, masked labels", "1.1", lambda _, dtype: labels(4096, dtype), heavy=True),
    Case("mse, masked targets, both ways", "1.1", mse, (1_000, 10_000, 100_000, 1_000_000, 10_000_000)),
    Case("TCN, 4 dilated convolutions", "1.1", lambda _, dtype: convolutions(256, dtype)),
    Case("U-Net with GroupNorm, clouds", "1.3", lambda _, dtype: unet(64, dtype), half=False, heavy=True),
    Case("CNN with BatchNorm, clouds", "1.1", lambda _, dtype: clouds(16, dtype)),
    Case("GRU, padded", "1.1", lambda _, dtype: recurrent(64, dtype), heavy=True),
    Case("attention by hand, random mask", "1.1", lambda _, dtype: scores(128, dtype)),
    Case("sdpa with a key mask", "1.1", lambda _, dtype: keys(256, dtype)),
    *(LANGUAGE if find_spec("transformers") else []),
]

"""``F.multi_head_attention_forward`` at once gives the bits of its parts, which torch's own function runs."""

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.checkpoint import checkpoint

import masked_tensor as mt
from masked_tensor import masks, settings
from masked_tensor.engine.tensor import pair_of
from masked_tensor.functional import torch_attention
from masked_tensor.masks import known

BY_PARTS: Any = F.multi_head_attention_forward.__wrapped__  # type: ignore[attr-defined]  # torch's own
LENGTHS = [5, 0, 3, 1]
WIDTH = 8


def batch(lengths: list[int], width: int = WIDTH, dtype: torch.dtype = torch.float32, packed: bool = False) -> Any:
    torch.manual_seed(len(lengths) + width + max(lengths))
    data = torch.randn(len(lengths), max(lengths), width, dtype=dtype)
    valid = torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]
    garbage = torch.tensor([torch.nan, torch.inf, -torch.inf, 1e30], dtype=dtype)
    data[~valid] = garbage[torch.arange(int((~valid).sum())) % 4][:, None]
    x = mt.masked_tensor(data, valid[..., None].expand(data.shape))
    return x.packed() if packed else x


def layer(width: int = WIDTH, dtype: torch.dtype = torch.float32, **options: Any) -> Any:
    torch.manual_seed(3)
    return nn.MultiheadAttention(width, 2, batch_first=True, dtype=dtype, **options)


CAUSAL = {"is_causal": True, "attn_mask": nn.Transformer.generate_square_subsequent_mask(max(LENGTHS))}


def self_attention(x: Any, y: Any) -> tuple[Any, ...]:
    return x, x, x


def cross(x: Any, y: Any) -> tuple[Any, ...]:
    return x, y, y


def apart(x: Any, y: Any) -> tuple[Any, ...]:
    return x, y, y * 2


def run(model: Any, given: tuple[Any, ...], **options: Any) -> list[Any]:
    """The output and all gradients."""
    leaves = [x.detach().requires_grad_() for x in given]
    for i, x in enumerate(given):
        leaves[i] = leaves[next(j for j, y in enumerate(given) if y is x)]
    torch.manual_seed(7)
    out = model(*leaves, need_weights=False, **options)[0]
    weights = torch.randn(out.shape, dtype=out.dtype)
    wanted = [*dict.fromkeys(leaves), *model.parameters()]
    return [out.detach(), *torch.autograd.grad((out * weights).sum(), wanted)]


def same_bits(found: list[Any], wanted: list[Any]) -> None:
    assert len(found) == len(wanted)
    for a, b in zip(found, wanted, strict=True):
        assert type(a) is type(b)
        if isinstance(a, mt.MaskedTensor):
            assert a.is_packed >= b.is_packed  # its parts may have unpacked what has a dimension of size 1
            assert torch.equal(a.get_mask(), b.get_mask())
            a, b = a.filled(0), b.filled(0)
        assert torch.equal(a, b)
        assert a.dtype is b.dtype


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> Any:
    """How often attention was computed at once."""
    calls: list[Any] = []
    inner = torch_attention._at_once

    def counted(*args: Any) -> Any:
        result = inner(*args)
        calls.append(result)
        return result

    monkeypatch.setattr(torch_attention, "_at_once", counted)
    return calls


def by_parts(monkeypatch: pytest.MonkeyPatch, call: Callable[[], Any]) -> Any:
    with monkeypatch.context() as patched:
        patched.setattr(F, "multi_head_attention_forward", BY_PARTS)
        return call()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16], ids=str)
@pytest.mark.parametrize("packed", [False, True], ids=["strided", "packed"])
@pytest.mark.parametrize(
    ("form", "options"), [(self_attention, {}), (self_attention, CAUSAL), (cross, {}), (apart, {})],
    ids=["self", "causal", "cross", "apart"],
)  # fmt: skip
def test_the_bits_of_its_parts(
    form: Any, options: Any, packed: bool, dtype: torch.dtype, at_once: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    model = layer(dtype=dtype, bias=form is not cross)
    x = batch([5, 2, 3, 1] if packed and form is not self_attention else LENGTHS, dtype=dtype, packed=packed)
    y = batch([2, 1, 4, 1] if packed else [2, 4, 0, 1], dtype=dtype, packed=packed)
    given = form(x, y)
    options = {k: v.to(dtype) if isinstance(v, Tensor) else v for k, v in options.items()}
    found = run(model, given, **options)
    assert len(at_once) == 1
    same_bits(found, by_parts(monkeypatch, lambda: run(model, given, **options)))


@pytest.mark.parametrize("plain", [0, 1], ids=["queries", "keys"])
def test_one_of_them_is_plain(plain: int, at_once: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    pair: list[Any] = [batch(LENGTHS), batch([2, 4, 0, 1])]
    pair[plain] = torch.randn(pair[plain].shape)
    given = cross(*pair)
    found = run(layer(), given)
    assert len(at_once) == 1
    same_bits(found, by_parts(monkeypatch, lambda: run(layer(), given)))


@pytest.mark.parametrize("lengths", [[1], [4, 4], [0, 0, 3]], ids=str)
@pytest.mark.parametrize("packed", [False, True])
def test_sizes(lengths: list[int], packed: bool, at_once: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    given = self_attention(x := batch(lengths, packed=packed), x)
    found = run(layer(), given)
    assert len(at_once) == 1
    same_bits(found, by_parts(monkeypatch, lambda: run(layer(), given)))


def test_own_weights_for_keys_and_values(at_once: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    model = layer()
    model.q_proj_weight, model.k_proj_weight, model.v_proj_weight = map(nn.Parameter, model.in_proj_weight.chunk(3))
    model._qkv_same_embed_dim = False
    del model.in_proj_weight
    model.register_parameter("in_proj_weight", None)
    given = cross(batch(LENGTHS), batch([2, 4, 0, 1]))
    found = run(model, given)
    assert len(at_once) == 1
    same_bits(found, by_parts(monkeypatch, lambda: run(model, given)))


def _with_gaps(x: Any) -> Any:
    return mt.masked_tensor(x.filled(1), torch.rand(x.shape) < 0.8)


BY_THEMSELVES: dict[str, Callable[[Any, Any], Any]] = {
    "weights": lambda model, x: model(x, x, x),
    "a mask of keys": lambda model, x: model(
        x, x, x, key_padding_mask=torch.arange(5).expand(4, 5) > 3, need_weights=False
    ),
    "a mask": lambda model, x: model(x, x, x, attn_mask=torch.ones(5, 5).triu(1) > 0, need_weights=False),
    "entries": lambda model, x: model(*[_with_gaps(x)] * 3, need_weights=False),
    "one sequence": lambda model, x: model(x[0], x[0], x[0], need_weights=False),
    "meanings": lambda model, x: _with_meaning(model, x),
}


def _with_meaning(model: Any, x: Any) -> Any:
    with mt.meaning(product="all"):
        return model(x, x, x, need_weights=False)


@pytest.mark.parametrize("name", BY_THEMSELVES)
def test_the_rest_goes_by_parts(name: str, at_once: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    x, model = batch(LENGTHS), layer()
    torch.manual_seed(2)
    found = BY_THEMSELVES[name](model, x)
    torch.manual_seed(2)
    assert not at_once
    wanted = by_parts(monkeypatch, lambda: BY_THEMSELVES[name](model, x))
    same_bits([a.detach() for a in found if a is not None], [a.detach() for a in wanted if a is not None])


class Watch(torch.overrides.TorchFunctionMode):
    """It notes the functions that it is told of."""

    def __init__(self) -> None:
        super().__init__()
        self.told: list[Any] = []

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.told.append(func)
        return func(*args, **(kwargs or {}))


def test_modes_are_told_of_the_call(at_once: list[Any]) -> None:
    with Watch() as watch:
        layer()(x := batch(LENGTHS), x, x, need_weights=False)
    assert F.multi_head_attention_forward in watch.told
    assert F.linear not in watch.told
    assert len(at_once) == 1
    with torch.device("cpu"):
        layer()(x, x, x, need_weights=False)
    assert len(at_once) == 2


def encoder(**options: Any) -> Any:
    torch.manual_seed(4)
    return nn.TransformerEncoderLayer(WIDTH, 2, 16, batch_first=True, **options)


class Decoder(nn.TransformerDecoderLayer):
    """A layer that looks at itself, and at another batch."""

    def __init__(self, memory: Any, **options: Any) -> None:
        torch.manual_seed(4)
        super().__init__(WIDTH, 2, 16, batch_first=True, **options)
        self.memory = memory

    def forward(self, x: Any) -> Any:  # type: ignore[override]  # the memory is its own
        return super().forward(x, self.memory)


CONTEXTS: dict[str, Callable[[], Any]] = {
    "as it is": nullcontext,
    "autocast": lambda: torch.autocast("cpu", torch.bfloat16),
    "unfused": lambda: sdpa_kernel(SDPBackend.MATH),
}


@pytest.mark.parametrize("context", [*CONTEXTS, "decoder"])
@pytest.mark.parametrize("packed", [False, True], ids=["strided", "packed"])
@pytest.mark.parametrize("way", ["dropout", "none", "checkpoint", "reentrant", "functional_call", "evaluation"])
def test_in_a_layer(way: str, packed: bool, context: str, at_once: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    dropout = 0.3 if way == "dropout" else 0.0
    x, memory = batch([5, 2, 3, 1] if packed else LENGTHS, packed=packed), batch([2, 1, 4, 1], packed=packed)
    model = Decoder(memory, dropout=dropout) if context == "decoder" else encoder(dropout=dropout)
    model.train(way != "evaluation")

    def step() -> list[Any]:
        leaf = x.detach().requires_grad_()
        seen: list[Any] = []
        leaf.register_hook(lambda grad: seen.append(grad))
        handles = [m.register_forward_hook(lambda m, i, o: seen.append(o)) for m in model.modules()]
        torch.manual_seed(1)
        with CONTEXTS.get(context, nullcontext)():
            if way in ("checkpoint", "reentrant"):
                out = checkpoint(model, leaf, use_reentrant=way == "reentrant")
            elif way == "functional_call":
                out = torch.func.functional_call(model, {k: v.detach() * 1 for k, v in model.named_parameters()}, leaf)
            else:
                out = model(leaf)
            out.retain_grad()
            out.square().sum().backward()
        grads = [p.grad for p in model.parameters() if p.grad is not None]
        model.zero_grad()
        for handle in handles:
            handle.remove()
        flat = [a for o in seen for a in (o if isinstance(o, tuple) else (o,)) if a is not None]
        return [out.detach(), leaf.grad, out.grad, *grads, *(a.detach() for a in flat)]

    found = step()
    assert len(at_once) >= (2 if context == "decoder" else 1)
    same_bits(found, by_parts(monkeypatch, step))


@pytest.mark.parametrize("form", [self_attention, cross])
@pytest.mark.parametrize("packed", [False, True], ids=["strided", "packed"])
def test_second_derivative(packed: bool, form: Any, at_once: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    model = layer(dtype=torch.float64)
    x = batch([5, 2, 3, 1] if packed else LENGTHS, dtype=torch.float64, packed=packed)
    other = batch([2, 1, 4, 1], dtype=torch.float64, packed=packed)

    def step() -> list[Any]:
        leaf = x.detach().requires_grad_()
        with sdpa_kernel(SDPBackend.MATH):
            out = model(*form(leaf, other), need_weights=False)[0]
            (first,) = torch.autograd.grad(out.square().sum(), leaf, create_graph=True)
            return list(torch.autograd.grad(first.square().sum(), [leaf, *model.parameters()], allow_unused=True))

    found = step()
    assert at_once
    for a, b in zip(found, by_parts(monkeypatch, step), strict=True):
        torch.testing.assert_close(a, b)


@pytest.mark.parametrize("form", [self_attention, cross])
@pytest.mark.parametrize("packed", [False, True], ids=["strided", "packed"])
def test_compiled_in_one_graph(packed: bool, form: Any) -> None:
    model, given = layer(), (batch([3, 2], packed=packed), batch([2, 4], packed=packed))

    def attend(x: Any, y: Any) -> Any:
        return model(*form(x, y), need_weights=False)[0]

    found = torch.compile(attend, backend="eager", fullgraph=True)(*given)
    torch.testing.assert_close(found, attend(*given))


def test_each_sequence_alone() -> None:
    model, x = layer(), batch(LENGTHS)
    out = model(x, x, x, need_weights=False)[0]
    for i, length in enumerate(LENGTHS):
        if length:
            alone = x[i : i + 1, :length].filled(0)
            torch.testing.assert_close(out[i : i + 1, :length].filled(0), model(alone, alone, alone)[0])
        assert not out[i, length:].get_mask().any()


def test_what_is_kept_with_a_mask_is_bounded_and_dropped_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    mask = (torch.arange(4) < torch.tensor([[3], [1], [0], [2]])).T[..., None].expand(4, 4, WIDTH)
    x, model = mt.as_masked_tensor(torch.randn(4, 4, WIDTH), mask), nn.MultiheadAttention(WIDTH, 2)
    mask = pair_of(x).mask
    model(x, x, x, need_weights=False)
    (found,) = (of.made for of in known.KNOWN.values() if of.mask() is mask)
    assert len(found) == 1
    (shown,) = found.values()
    assert shown.untyped_storage().nbytes() == 4 * 4 * 4  # one number a key, not one for each query and head
    model(x, x, x, need_weights=False)
    assert [id(v) for v in found.values()] == [id(shown)]
    for key in range(2 * settings.KEPT):
        masks.derive(mask, key, torch.zeros, 1)
    assert len(found) <= settings.KEPT
    monkeypatch.setattr(settings, "KEPT_SIZE", 100)
    masks.derive(mask, "large", lambda: torch.zeros(101))
    masks.derive(mask, "large in memory", lambda: torch.zeros(1).expand(101))
    assert "large" not in found
    assert "large in memory" in found
    with torch.inference_mode():
        masks.derive(mask, "of inference", torch.zeros, 1)
    assert "of inference" not in found
    number = len(known.KNOWN)
    del x, mask
    assert len(known.KNOWN) == number - 1


def test_nothing_is_kept_while_a_graph_is_captured(monkeypatch: pytest.MonkeyPatch) -> None:
    mask, made = torch.ones(3, dtype=torch.bool, device="meta"), []
    streams = iter([1, 1, None, 2, 1])
    monkeypatch.setattr(known, "stream_of", lambda x: next(streams))
    for _ in range(5):
        masks.derive(mask, "key", lambda: made.append(1) or torch.zeros(1))
    assert len(made) == 3  # on the first stream, in the graph, on the second stream


@pytest.mark.parametrize("width", [1, 2])
def test_a_query_that_sees_no_key_is_masked_at_any_width(width: int) -> None:
    layer = nn.MultiheadAttention(width, 1)
    query = mt.from_lengths(torch.randn(2, 4, width), [4, 2]).transpose(0, 1)
    keys = mt.from_lengths(torch.randn(2, 3, width), [0, 2]).transpose(0, 1)
    out = layer(query, keys, keys, need_weights=False)[0]
    assert out.mask[..., 0].T.tolist() == [[False] * 4, [True, True, False, False]]
    alone = layer(*(t[:2, 1:].filled(0) for t in (query, keys, keys)), need_weights=False)[0]
    torch.testing.assert_close(out[:2, 1:].filled(0), alone)

"""Calls of all that meets sequences: functional forms, ops of torch's database, modules and losses.

A batch is ``(B, T, 6)``. How most things are called follows from their signature; what is called otherwise, or not at
all, is said here.
"""

import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

import masked_tensor as mt

from ..oracles import FAMILY
from . import database
from .trees import tree_leaves

FEATURES = 6
Function = Callable[..., Any]


@dataclass(frozen=True)
class Call:
    """A call of a batch, and what its results say of the sequences."""

    of: Function  #: ``(x, **said)``
    said: str = ""  #: what is said of a padded batch: "mask", "lengths" or nothing
    joined: bool = False  #: its results are those of all sequences, one after the other
    places: tuple[int, ...] = ()  #: which results are places in time
    front: bool = False  #: what is valid comes first in the results, also of a batch that is padded on the left
    side: str = ""  #: the one side of the padding for which results have the places that a sequence alone has
    least: int = 0  #: steps of the shortest sequence that is taken, but for empty ones
    zero: bool = False  #: where nothing is, the result is 0, and valid
    parameters: tuple[Tensor, ...] = ()

    def __call__(self, x: Any, **said: Any) -> list[Any]:
        return [r for r in tree_leaves(self.of(x, **said)) if isinstance(r, Tensor)]

    @property
    def kinds(self) -> tuple[str, ...]:
        """Of each result, whether it is one of ``steps``, of ``sequences`` or of ``all``."""
        return _kinds(self)


@cache
def _kinds(call: Call) -> tuple[str, ...]:
    """Found out by the shapes that results of batches of other sizes have."""

    def shapes(*shape: int) -> list[torch.Size]:
        x = mt.masked_tensor(torch.rand(shape, dtype=torch.float64) + 0.1, torch.ones(shape, dtype=torch.bool))
        with torch.no_grad():
            return [r.shape for r in call(x, **({"lengths": "full"} if call.said == "lengths" else {}))]

    found = []
    for one, more, longer in zip(shapes(2, 7, FEATURES), shapes(3, 7, FEATURES), shapes(2, 9, FEATURES), strict=True):
        if one[:1] != (2,) or more != (3, *one[1:]) or longer[:1] != (2,) or longer[2:] != one[2:]:
            found.append("all")
        else:
            found.append("sequences" if one == longer else "steps")
    return tuple(found)


# ---------------------------------------------------------------------------------------------------- functional forms


def halves(x: Any) -> tuple[Any, Any]:
    return x[..., :3], x[..., 3:]


def classes(x: Any) -> Any:
    """A class of each step, of 3; any number under the mask."""
    return (x * 100).long().abs() % 3


def sign(x: Any) -> Any:
    return (x.detach() > 0).double() * 2 - 1


def tokens(function: Function, *parts: Any) -> Any:
    """A function of ``(N, ...)``, of all steps; a result of each step goes back to its place."""
    result = function(*(p.flatten(0, 1) for p in parts))
    return result.unflatten(0, parts[0].shape[:2]) if result.dim() else result


LOSSES: dict[str, Callable[[Function, Any, Any], Any]] = {
    "binary_cross_entropy": lambda loss, a, b: loss(a.sigmoid(), b.sigmoid()),
    "binary_cross_entropy_with_logits": lambda loss, a, b: loss(a, b.sigmoid()),
    "cosine_embedding_loss": lambda loss, a, b: tokens(loss, a, b, sign(a[..., 0])),
    "cross_entropy": lambda loss, a, b: loss(a.transpose(1, 2), classes(b[..., 0])),
    "gaussian_nll_loss": lambda loss, a, b: loss(a, b, a.exp()),
    "hinge_embedding_loss": lambda loss, a, b: loss(a, sign(b)),
    "huber_loss": lambda loss, a, b: loss(a, b),
    "kl_div": lambda loss, a, b: loss(a.log_softmax(-1), b.softmax(-1)),
    "l1_loss": lambda loss, a, b: loss(a, b),
    "margin_ranking_loss": lambda loss, a, b: loss(a, b, sign(a - b)),
    "mse_loss": lambda loss, a, b: loss(a, b),
    "multi_margin_loss": lambda loss, a, b: tokens(loss, a, classes(b[..., 0])),
    "multilabel_margin_loss": lambda loss, a, b: tokens(loss, a, classes(b) - 1),
    "multilabel_soft_margin_loss": lambda loss, a, b: tokens(loss, a, (b > 0).double()),
    "nll_loss": lambda loss, a, b: loss(a.log_softmax(-1).transpose(1, 2), classes(b[..., 0])),
    "poisson_nll_loss": lambda loss, a, b: loss(a, b.abs()),
    "smooth_l1_loss": lambda loss, a, b: loss(a, b),
    "soft_margin_loss": lambda loss, a, b: loss(a, sign(b)),
    "triplet_margin_loss": lambda loss, a, b: loss(a, b, a * b),
}  # fmt: skip
MODULE_LOSSES = {
    "BCELoss": "binary_cross_entropy",
    "BCEWithLogitsLoss": "binary_cross_entropy_with_logits",
    "CosineEmbeddingLoss": "cosine_embedding_loss",
    "CrossEntropyLoss": "cross_entropy",
    "GaussianNLLLoss": "gaussian_nll_loss",
    "HingeEmbeddingLoss": "hinge_embedding_loss",
    "HuberLoss": "huber_loss",
    "KLDivLoss": "kl_div",
    "L1Loss": "l1_loss",
    "MSELoss": "mse_loss",
    "MarginRankingLoss": "margin_ranking_loss",
    "MultiLabelMarginLoss": "multilabel_margin_loss",
    "MultiLabelSoftMarginLoss": "multilabel_soft_margin_loss",
    "MultiMarginLoss": "multi_margin_loss",
    "NLLLoss": "nll_loss",
    "PoissonNLLLoss": "poisson_nll_loss",
    "SmoothL1Loss": "smooth_l1_loss",
    "SoftMarginLoss": "soft_margin_loss",
}
REDUCTIONS = ("none", "sum", "mean")


def losses(name: str, make: Function) -> list[Call]:
    """A loss with each reduction; ``make(reduction)`` is called with input and target."""
    return [Call(lambda x, r=r: LOSSES[name](make(r), *halves(x))) for r in REDUCTIONS]


def _rolling(what: str, **more: Any) -> list[Call]:
    said = [{}, {"center": True}, {"min_periods": 1}, {"closed": "both", "min_periods": 2}, {"step": 2}]
    return [
        Call(
            lambda x, s=s, **known: getattr(mt.rolling(x, 3, 1, **s, **known), what)(**more),
            "lengths",
            side="right" if "step" in s else "",
        )
        for s in said
    ]


def _heads(x: Any) -> Any:
    return x.unflatten(-1, (2, 3)).transpose(1, 2)


WINDOWS = {name: {} for name in ("count", "max", "mean", "median", "min", "std", "sum", "var")}
WINDOWS["quantile"] = {"q": 0.3}
NO_WINDOW = {"fill_value": "a constant", "min_periods": "a constant", "windows": "the windows, each as it is"}
FORMS: dict[str, list[Call]] = {
    **{name: losses(name, lambda r, name=name: partial(getattr(mt, name), reduction=r)) for name in LOSSES},
    "average": [Call(mt.average, joined=True), Call(lambda x: mt.average(x, 1, weights=x.abs()))],
    "batch_norm": [
        Call(lambda x: mt.batch_norm(x.transpose(1, 2), None, None, training=True).transpose(1, 2), joined=True)
    ],
    "bfill": [Call(partial(mt.bfill, dim=1, limit=limit), "lengths") for limit in (None, 1)],
    "corrcoef": [Call(lambda x: mt.corrcoef(x.flatten(0, 1).T))],
    "cov": [Call(lambda x: mt.cov(x.flatten(0, 1).T))],
    "dist": [Call(lambda x: mt.dist(*halves(x)))],
    "ffill": [Call(partial(mt.ffill, dim=1, limit=limit), "lengths") for limit in (None, 1)],
    "group_norm": [Call(lambda x: mt.group_norm(x.transpose(1, 2), 2).transpose(1, 2))],
    "instance_norm": [Call(lambda x: mt.instance_norm(x.transpose(1, 2)).transpose(1, 2), least=2)],
    "interpolate": [
        Call(partial(mt.interpolate, dim=1, **more), "lengths")
        for more in ({}, {"method": "nearest"}, {"limit": 1, "limit_direction": "both"}, {"limit_area": "inside"})
    ],
    "layer_norm": [Call(lambda x: mt.layer_norm(x, (FEATURES,)))],
    "local_response_norm": [Call(lambda x: mt.local_response_norm(x.transpose(1, 2), 2).transpose(1, 2))],
    "log_prob": [Call(lambda x: mt.log_prob(torch.distributions.Normal(torch.zeros(()).double(), 1.0), x))],
    "logaddexp": [Call(lambda x: mt.logaddexp(*halves(x)))],
    "masked_select": [Call(lambda x: mt.masked_select(x, torch.ones(x.shape, dtype=torch.bool)).compressed())],
    "nanquantile": [Call(partial(mt.nanquantile, q=0.3, dim=dim)) for dim in (1, -1, None)],
    "quantile": [Call(partial(mt.quantile, q=0.3, dim=dim)) for dim in (1, -1, None)],
    "rms_norm": [Call(lambda x: mt.rms_norm(x, (FEATURES,)))],
    "rolling": [call for what, more in WINDOWS.items() for call in _rolling(what, **more)],
    "scaled_dot_product_attention": [
        Call(lambda x, c=c: mt.scaled_dot_product_attention(*[_heads(x)] * 3, is_causal=c).transpose(1, 2))
        for c in (False, True)
    ],
    "shift": [Call(partial(mt.shift, periods=n, dim=1), "lengths") for n in (1, -2)],
    "unique": [Call(lambda x: mt.unique(x.detach()))],
    "unique_consecutive": [Call(lambda x: mt.unique_consecutive(x.detach()))],
}  # fmt: skip
WRITES = "writes where the caller says"
NO_FORM = dict.fromkeys(("masked_fill", "masked_fill_", "masked_scatter", "masked_scatter_"), WRITES)
PLACES = {
    **dict.fromkeys(("argmax", "argmin", "argsort"), (0,)),
    **dict.fromkeys(("cummax", "cummin", "kthvalue", "max", "median", "min", "mode", "nanmedian", "sort"), (1,)),
    **dict.fromkeys(("max.reduction_with_dim", "min.reduction_with_dim", "topk"), (1,)),
}
FRONT = ("sort", "argsort", "msort", "topk")  # along time


def _by_signature(name: str, form: Function) -> Iterator[Call]:
    """Along time, the features, both and all, as far as a form takes these."""
    takes = inspect.signature(form).parameters
    said = "mask" if "mask" in takes else ""
    dim = takes.get("dim")
    if dim is None:
        yield Call(form, said)
        return
    zero = name == "count_nonzero"
    yield Call(partial(form, dim=1), said, places=PLACES.get(name, ()), front=name in FRONT, zero=zero)
    yield Call(partial(form, dim=-1), said, zero=zero)
    if dim.default is None and name not in PLACES:  # of a place in all of a batch, a sequence knows nothing
        yield Call(form, said, joined=True)
        if "Dim" in str(dim.annotation):
            yield Call(partial(form, dim=(1, 2)), said)


# ------------------------------------------------------------------------------------------------ ops of the database

FAMILIES = ("scan", "reduction", "moment", "order", "extremes", "quantile", "topk", "softmax", "norm")
OPS: dict[str, list[Call]] = {
    "aminmax": [Call(lambda x, dim=dim: torch.aminmax(x, dim=dim)) for dim in (1, -1, None)],
    "count_nonzero": [Call(lambda x, dim=dim: torch.count_nonzero(x, dim), zero=True) for dim in (1, -1, None)],
    "cumulative_trapezoid": [Call(lambda x: torch.cumulative_trapezoid(x, dim=1))],
    "kthvalue": [Call(lambda x: torch.kthvalue(x, 1, 1), places=(1,))],
    "linalg.vector_norm": [Call(lambda x, p=p: torch.linalg.vector_norm(x, p, 1)) for p in (2, 1, 3.0)],
    "dist": [Call(lambda x: torch.dist(*halves(x)))],
    "max.reduction_no_dim": [Call(torch.max)],
    "min.reduction_no_dim": [Call(torch.min)],
    "msort": [Call(lambda x: torch.msort(x.transpose(0, 1)).transpose(0, 1), front=True)],
    "nanquantile": [Call(lambda x: torch.nanquantile(x, 0.3, 1))],
    "norm": [Call(lambda x, p=p: torch.norm(x, p, 1)) for p in (1, 3.0)],
    "norm.fro": [Call(lambda x: torch.norm(x, "fro", 1))],
    "norm.inf": [Call(lambda x: torch.norm(x, float("inf"), 1))],
    "quantile": [Call(lambda x: torch.quantile(x, 0.3, 1))],
    "softmax.with_dtype": [Call(lambda x: torch.softmax(x.float(), 1, torch.float64))],
    "log_softmax.with_dtype": [Call(lambda x: torch.log_softmax(x.float(), 1, torch.float64))],
    "nn.functional.softmin": [Call(lambda x: F.softmin(x, 1))],
    "nn.functional.softmin.with_dtype": [Call(lambda x: F.softmin(x.float(), 1, dtype=torch.float64))],
    "topk": [Call(lambda x: torch.topk(x, 1, 1), places=(1,))],
    "torch.ops.aten._safe_softmax.default": [Call(lambda x: torch.ops.aten._safe_softmax(x, 1))],
    "trapezoid": [Call(lambda x: torch.trapezoid(x, dim=1), least=2)],
    "trapz": [Call(lambda x: torch.trapz(x, dim=1), least=2)],
    **{f"{name}.unbiased": [Call(lambda x, name=name: getattr(torch, name)(x, 1, False))]
       for name in ("var", "std", "var_mean", "std_mean")},
}  # fmt: skip
NO_OP = {"sum_to_size": "a size", "trace": "of a matrix", "nanmean": "the functional form"}


def _by_convention(name: str) -> Iterator[Call]:
    op = database.ENTRIES[name].op
    for dim in (1, -1):
        yield Call(
            lambda x, dim=dim: op(x, dim),
            places=PLACES.get(name, ()) if dim == 1 else (),
            front=dim == 1 and name in FRONT,
        )


# ------------------------------------------------------------------------------------------------------------- modules


def _image(x: Any, dims: int) -> Any:
    """Of that many dimensions, the first of which is time, and one channel or those of a step."""
    if dims == 1:
        return x.transpose(1, 2)
    return x.unsqueeze(1) if dims == 2 else x.unsqueeze(1).unsqueeze(-1).expand(-1, -1, -1, -1, 3)


BY_NATURE = "its regions depend on the size of the input"
LAZY = "another layer once it was called"
NO_MODULE = {
    "nn.FractionalMaxPool2d": BY_NATURE,
    "nn.FractionalMaxPool3d": BY_NATURE,
    **{f"nn.Lazy{kind}{d}d": LAZY for kind in ("Conv", "ConvTranspose") for d in (1, 2, 3)},
}
IMAGES: dict[str, list[tuple[tuple[Any, ...], dict[str, Any]]]] = {
    "AdaptiveAvgPool": [((1,), {})],
    "AdaptiveMaxPool": [((1,), {})],
    "AvgPool": [((3,), {"stride": 1, "padding": 1}), ((2,), {"stride": 2}),
                ((3,), {"stride": 1, "padding": 1, "count_include_pad": False})],
    "BatchNorm": [(("channels",), {})],
    "CircularPad": [((1,), {})],
    "ConstantPad": [((1, 0.5), {})],
    "Conv": [(("channels", 4, 3), {"padding": 1}), (("channels", 2, 2), {}), (("channels", 2, 2), {"stride": 2}),
             (("channels", 2, 3), {"padding": 2, "dilation": 2}), (("channels", 2, 3), {"padding": "same"})],
    "ConvTranspose": [(("channels", 2, 3), {"padding": 1}), (("channels", 2, 3), {}),
                      (("channels", 2, 3), {"stride": 2})],
    "InstanceNorm": [(("channels",), {}), (("channels",), {"affine": True})],
    "LPPool": [((2, 2), {"stride": 1}), ((2, 2), {})],
    "MaxPool": [((3,), {"stride": 1, "padding": 1}), ((2,), {}), ((2,), {"stride": 1, "dilation": 2})],
    "ReflectionPad": [((1,), {})],
    "ReplicationPad": [((1,), {})],
    "Softmax": [((), {})],
    "ZeroPad": [((1,), {})],
}  # fmt: skip

LEAST = {"AvgPool3d": 3, "InstanceNorm": 2, "ReflectionPad": 2}  # torch takes nothing shorter


def _images(kind: str, dims: int) -> Iterator[Call]:
    channels = FEATURES if dims == 1 else 1
    for args, more in IMAGES[kind]:
        args = tuple(channels if a == "channels" else a for a in args)
        net = made(getattr(nn, f"{kind}{dims}d"), *args, **more)
        stride = more.get("stride", 2 if kind in ("LPPool", "MaxPool") else 1)
        yield _of(
            net,
            lambda x, net=net: net(_image(x, dims)).transpose(1, 2),
            joined=kind == "BatchNorm",
            least=LEAST.get(f"{kind}{dims}d", LEAST.get(kind, 0)),
            side="right" if stride != 1 or (kind == "ConvTranspose" and "padding" not in more) else "",
        )


def made(kind: Function, *args: Any, **more: Any) -> nn.Module:
    torch.manual_seed(len(str(args)))
    net: nn.Module = kind(*args, **more)
    return net.double()


def _of(net: nn.Module, call: Function | None = None, **more: Any) -> Call:
    return Call(call or net, parameters=tuple(net.parameters()), **more)


def _recurrent(kind: type[nn.Module]) -> Iterator[Call]:
    def run(x: Any, net: nn.Module) -> Any:
        out, last = net(x)
        return out, [h.transpose(0, 1) for h in tree_leaves(last)]

    for more in ({}, {"bidirectional": True, "num_layers": 2}):
        net = made(kind, FEATURES, 4, batch_first=True, **more)
        yield _of(net, partial(run, net=net))


def _attention() -> Iterator[Call]:
    net = made(nn.MultiheadAttention, FEATURES, 2, batch_first=True)
    yield _of(net, lambda x: net(x, x, x, need_weights=False)[0])

    def causal(x: Any) -> Any:
        later = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).triu(1)
        return net(x, x, x, need_weights=False, attn_mask=later)[0]

    yield _of(net, causal)


def _ctc(x: Any) -> Any:
    batch, time = x.shape[:2]
    says = x.log_softmax(-1).transpose(0, 1)
    labels = torch.tensor([[1, 2]]).expand(batch, 2)
    return F.ctc_loss(says, labels, torch.full((batch,), time), torch.full((batch,), 2), reduction="none")


def _cell(kind: type[nn.Module]) -> Call:
    net = made(kind, FEATURES, 4)

    def run(x: Any) -> Any:
        state = None
        for step in x.unbind(1):
            state = net(step, state)
        return state

    return _of(net, run)


_small = {"dim_feedforward": 8, "dropout": 0.0, "batch_first": True}


def _linear_loss() -> dict[str, list[Call]]:
    """torch 2.11 has none."""
    if not hasattr(nn, "LinearCrossEntropyLoss"):
        return {}
    linear = made(nn.LinearCrossEntropyLoss, 3, 3)
    return {
        "nn.LinearCrossEntropyLoss": [
            _of(linear, lambda x: linear(halves(x)[0].flatten(0, 1), classes(x[..., 3]).flatten()))
        ]
    }


@cache
def _modules() -> dict[str, list[Call]]:
    decoder, bilinear = made(nn.TransformerDecoderLayer, FEATURES, 2, **_small), made(nn.Bilinear, 3, 3, 4)
    transformer = made(nn.Transformer, FEATURES, 2, 1, 1, **_small)
    table, bag = made(nn.Embedding, 3, 4), made(nn.EmbeddingBag, 3, 4, mode="mean")
    layer = made(nn.TransformerEncoderLayer, FEATURES, 2, **_small)
    first = made(nn.TransformerEncoderLayer, FEATURES, 2, norm_first=True, **_small)
    return _linear_loss() | {
        **{
            f"nn.{name}": losses(form, lambda r, name=name: getattr(nn, name)(reduction=r))
            for name, form in MODULE_LOSSES.items()
        },
        **{f"nn.{kind.__name__}": list(_recurrent(kind)) for kind in (nn.RNN, nn.LSTM, nn.GRU)},
        **{f"nn.{kind.__name__}": [_cell(kind)] for kind in (nn.RNNCell, nn.LSTMCell, nn.GRUCell)},
        "nn.Bilinear": [_of(bilinear, lambda x: bilinear(*(h.contiguous() for h in halves(x))))],
        "nn.CTCLoss": [Call(_ctc)],
        "nn.Embedding": [_of(table, lambda x: table(classes(x[..., 0])))],
        "nn.EmbeddingBag": [_of(bag, lambda x: bag(classes(x[..., 0])))],
        "nn.GroupNorm": [_of(n := made(nn.GroupNorm, 2, FEATURES), lambda x: n(x.transpose(1, 2)).transpose(1, 2))],
        "nn.LayerNorm": [_of(made(nn.LayerNorm, FEATURES))],
        "nn.Linear": [_of(made(nn.Linear, FEATURES, 4)), _of(made(nn.Linear, FEATURES, 4, bias=False))],
        "nn.LocalResponseNorm": [Call(lambda x: nn.LocalResponseNorm(2)(x.transpose(1, 2)).transpose(1, 2))],
        "nn.LogSoftmax": [Call(nn.LogSoftmax(d)) for d in (1, -1)],
        "nn.MultiheadAttention": list(_attention()),
        "nn.RMSNorm": [_of(made(nn.RMSNorm, FEATURES))],
        "nn.Softmax": [Call(nn.Softmax(d)) for d in (1, -1)],
        "nn.Softmin": [Call(nn.Softmin(d)) for d in (1, -1)],
        "nn.Threshold": [Call(nn.Threshold(0.1, 20.0))],
        "nn.Transformer": [_of(transformer, lambda x: transformer(x, x))],
        "nn.TransformerDecoderLayer": [_of(decoder, lambda x: decoder(x, x))],
        "nn.TransformerEncoder": [_of(made(nn.TransformerEncoder, layer, 1, enable_nested_tensor=False))],
        "nn.TransformerEncoderLayer": [_of(layer), _of(first)],
        **{f"nn.{kind}{d}d": list(_images(kind, d)) for kind in IMAGES if kind != "Softmax" for d in (1, 2, 3)},
        "nn.Softmax2d": [Call(lambda x: nn.Softmax2d()(x.transpose(1, 2).unsqueeze(-1)).squeeze(-1).transpose(1, 2))],
    }


# ---------------------------------------------------------------------------------------------------------- all of them


def calls() -> dict[str, list[Call]]:
    """All of them by name. What joins a list of the package joins these, or raises here."""
    found = {}
    for name in mt.functional.__all__:
        if name not in NO_FORM:
            found[name] = FORMS.get(name) or list(_by_signature(name, getattr(mt, name)))
    for name in sorted(database.ENTRIES):
        if FAMILY.get(name) in FAMILIES and name not in NO_OP:
            found[f"torch.{name}"] = OPS.get(name) or list(_by_convention(name))
    modules = _modules()
    for name in sorted({*database.MODULES, *modules}):
        if name not in NO_MODULE:
            net = modules.get(name) or [_of(made(getattr(nn, name[3:])))]
            found[name] = net
    return found


def plainly(call: Call) -> Call:
    """The same of the data and ``mask=``."""
    return replace(call, of=lambda x, **said: call.of(x.get_data(), mask=x.get_mask(), **said))

"""The check of a flat module: two short sequences together, in both orders, against each of them alone."""

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from ... import settings
from ...compat import tree_leaves, tree_map
from ...packing.grid import grid_of_lengths
from . import transformers
from .attention import OwnMaskError
from .call import run
from .tokens import FlatTokens

BATCH_NORMS = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d, nn.SyncBatchNorm)
SHORT = (5, 3)  #: the lengths of the two sequences, unless a configuration names a window
TOLERANCE = {torch.float64: 1e-8, torch.float32: 1e-4, torch.float16: 2e-2, torch.bfloat16: 5e-2}


def what_differs(
    module: nn.Module, forward: Callable[..., Any], args: Any, kwargs: Any, tokens: FlatTokens
) -> str | None:
    """Why a module cannot be flat, or None."""
    if mixing := next((p for p in module.modules() if isinstance(p, BATCH_NORMS)), None):
        return refusal(module, f"it has a {type(mixing).__name__}, whose statistics join all sequences")
    with _undisturbed(module), torch.no_grad():
        try:
            differs = _difference(module, forward, args, kwargs, tokens)
        except OwnMaskError as error:
            differs = str(error).removeprefix("mt.flat: ")
    return None if differs is None else refusal(module, differs)


def refusal(module: nn.Module, why: str) -> str:
    """What is said of a module that cannot be flat."""
    base = getattr(module, "base_model", None)
    ways = "call it on the masked batch without mt.flat: mt.flat(module, False)"
    if isinstance(base, nn.Module) and base is not module:
        ways = f"make the model inside of it flat, mt.flat(model.base_model), or {ways}"
    return (
        f"mt.flat: {type(module).__name__} does not keep sequences apart on flat tokens: {why}. What mixes steps by "
        "anything but attention (convolutions and recurrent layers over time, batch norms, relative biases, "
        f"batch_first=False) cannot be flat; {ways}"
    )


@contextmanager
def _undisturbed(module: nn.Module) -> Iterator[None]:
    """Evaluation mode; modes, buffers and random state are afterwards as they were."""
    training = [part for part in module.modules() if part.training]
    buffers = [(b, b.clone()) for b in module.buffers()]
    devices = {p.device for p in (*module.parameters(), *module.buffers()) if p.device.type == "cuda"}
    kind = next((p.device.type for p in module.parameters()), "cpu")
    with (
        torch.random.fork_rng(devices=[d.index or 0 for d in devices]),
        torch.autocast(kind, enabled=False),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore")  # such as of a checkpoint, that nothing requires a gradient
        module.eval()
        try:
            yield
        finally:
            for part in training:
                part.training = True
            for buffer, before in buffers:
                if not torch.equal(buffer, before):
                    with torch.no_grad():
                        buffer.copy_(before)


def _difference(
    module: nn.Module, forward: Callable[..., Any], args: Any, kwargs: Any, tokens: FlatTokens
) -> str | None:
    """What differs, or None."""
    sizes = SHORT
    if narrow := [n for n in transformers.windows(module) if n <= settings.TRIED]:
        sizes = (max(narrow) + 4, max(narrow) + 2)
    drawn = _draw(module, args, kwargs, tokens, sum(sizes))
    parts = {0: slice(0, sizes[0]), 1: slice(sizes[0], sum(sizes))}
    alone = {i: _alone(module, forward, _cut(drawn, [where], sum(sizes))) for i, where in parts.items()}
    if (mixed := _mixed_batch(module, forward, drawn, sizes)) is not None:
        return mixed
    worst = 0.0
    for order in ((0, 1), (1, 0)):
        lengths = [sizes[i] for i in order]
        grid = grid_of_lengths(lengths, "right", tokens.grid.device)
        row = FlatTokens(tokens.values, grid)
        inside_args, inside_kwargs = _cut(drawn, [parts[i] for i in order], sum(sizes))
        together = _compared(run(module, forward, inside_args, inside_kwargs, row))
        starts = [0, lengths[0]]
        for place, i in enumerate(order):
            expected = _compared(alone[i])
            if len(expected) != len(together):
                return "it gives other outputs for two sequences than for one"
            for got, wanted in zip(together, expected, strict=True):
                found = _part(got, wanted, starts[place], sizes[i], sum(sizes), place)
                if isinstance(found, str):
                    return found
                scale = max(1.0, float(wanted.abs().max())) if wanted.numel() else 1.0
                gap = float((found - wanted).abs().max()) / scale if wanted.numel() else 0.0
                limit = TOLERANCE.get(got.dtype, 0.0)
                if not gap <= limit:
                    worst = max(worst, gap) if gap == gap else float("nan")
    if worst != 0.0:
        return f"two sequences together differ by {worst:.2g} from each of them alone"
    return None


def _mixed_batch(module: nn.Module, forward: Callable[..., Any], drawn: Any, sizes: tuple[int, int]) -> str | None:
    """What differs where two sequences of one length are rows of a plain batch: whether dimension 0 is the batch."""
    total, size = sum(sizes), min(sizes)
    rows = [slice(0, size), slice(sizes[0], sizes[0] + size)]

    def stack(x: Any) -> Any:
        if isinstance(x, Tensor) and x.dim() > 1 and tuple(x.shape[:2]) == (1, total):
            return torch.cat([x[:, row] for row in rows])
        return x

    both = _compared(_alone(module, forward, tree_map(stack, drawn)))
    for place, row in enumerate(rows):
        single = _compared(_alone(module, forward, _cut(drawn, [row], total)))
        for many, one in zip(both, single, strict=True):
            part = many[place : place + 1] if many.dim() else many
            scale = max(1.0, float(one.abs().max())) if one.numel() else 1.0
            if many.dim() and part.shape == one.shape and one.numel():
                gap = float((part - one).abs().max()) / scale
                if not gap <= TOLERANCE.get(one.dtype, 0.0):
                    why = "dimension 0 is not its batch"
                    return f"rows of a plain batch differ by {gap:.2g} from each of them alone: {why}"
    return None


def _part(got: Tensor, wanted: Tensor, start: int, size: int, total: int, place: int) -> Tensor | str:
    """Of what two sequences give together, the part of one of them."""
    if got.dim() == wanted.dim() and got.dim() > 1 and tuple(got.shape[:2]) == (1, total):
        part = got[:, start : start + size]
    elif got.dim() > 0 and got.shape[0] == 2:
        part = got[place : place + 1]
    else:
        part = got
    if part.shape == wanted.shape and part is not got:
        return part
    return (
        f"an output of shape {tuple(wanted.shape)} of {size} steps alone is of shape {tuple(got.shape)} for {total} "
        "steps of two sequences"
    )


def _alone(module: nn.Module, forward: Callable[..., Any], given: Any) -> Any:
    """Plain sequences as a batch of their own, by the module as it is."""
    args, kwargs = given
    if transformers.wanted(module, forward, kwargs)[1]:
        kwargs = {**kwargs, "use_cache": False}
    return forward(module, *args, **kwargs)


def _draw(module: nn.Module, args: Any, kwargs: Any, tokens: FlatTokens, number: int) -> Any:
    """``number`` tokens like those that were given; no labels."""
    many = tokens.grid.index.shape[0]
    chosen = torch.randint(0, many, (number,))
    table = next((p for p in module.modules() if isinstance(p, nn.Embedding)), None)

    def draw(x: Any) -> Any:
        if not (isinstance(x, Tensor) and x.dim() > 1 and tuple(x.shape[:2]) == (1, many)):
            return x
        some = x.index_select(1, chosen.to(x.device)).detach().clone()
        if some.is_floating_point() or some.is_complex():
            return some + torch.randn_like(some) * (1 + some.abs().mean())
        if some.dtype is torch.int64 and x.dim() == 2 and x is tokens.values:
            ids = x.unique()
            if ids.shape[0] < 8 and table is not None:
                low = min(3, table.num_embeddings - 1)
                return torch.randint(low, table.num_embeddings, some.shape, device=x.device)
        return some

    return tree_map(draw, (args, {name: value for name, value in kwargs.items() if name != "labels"}))


def _cut(drawn: Any, parts: list[slice], total: int) -> Any:
    """The tokens of some sequences, one after the other."""

    def cut(x: Any) -> Any:
        if isinstance(x, Tensor) and x.dim() > 1 and tuple(x.shape[:2]) == (1, total):
            return torch.cat([x[:, part] for part in parts], 1)
        return x

    return tree_map(cut, drawn)


def _compared(out: Any) -> list[Tensor]:
    return [x for x in tree_leaves(out) if isinstance(x, Tensor) and (x.is_floating_point() or x.is_complex())]

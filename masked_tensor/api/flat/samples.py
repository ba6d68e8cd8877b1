"""What the check of a flat module draws: two short sequences like the input; and which parts of outputs it compares."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from ... import settings
from ...compat import tree_leaves, tree_map
from ...kernels.precision import rounds_noticeably
from ...packing.grid import grid_of_lengths
from . import transformers
from .tokens import FlatTokens

TOLD = ("labels", "start_positions", "end_positions", "next_sentence_label")  #: what only a loss reads
SHORT = (5, 3)  #: the lengths of the two sequences, unless a configuration names a window
#: Many models compute a part in float32, whatever their dtype; what mixes sequences differs by far more.
TOLERANCE = {torch.float64: 1e-5, torch.float32: 1e-4, torch.float16: 2e-2, torch.bfloat16: 5e-2}


def sizes_tried(module: nn.Module, given: Any, tokens: FlatTokens) -> tuple[int, int]:
    """The lengths of the two sequences; together they are as long as nothing else that is known beside them."""
    reach = [(p.kernel_size[0] - 1) * p.dilation[0] for p in module.modules() if isinstance(p, nn.Conv1d)]
    narrow = [n for n in (*transformers.windows(module), *reach) if n <= settings.TRIED]
    first, second = (max(narrow) + 4, max(narrow) + 2) if narrow else SHORT
    many = (1, tokens.grid.index.shape[0])
    beside = [x for x in tree_leaves(given) if isinstance(x, Tensor) and tuple(x.shape[:2]) != many]
    known = [*module.parameters(), *module.buffers(), *beside]
    taken = {n for x in known for n in x.shape}
    while first + second in taken:
        first += 1
    return first, second


def row_of(tokens: FlatTokens, lengths: tuple[int, ...]) -> FlatTokens:
    """Sequences of these lengths, one after the other."""
    return FlatTokens(tokens.values, grid_of_lengths(lengths, "right", tokens.grid.device))


def draw(module: nn.Module, args: Any, kwargs: Any, tokens: FlatTokens, number: int) -> Any:
    """``number`` tokens like those that were given; no labels."""
    many = tokens.grid.index.shape[0]
    chosen = torch.randint(0, many, (number,))
    table = next((p for p in module.modules() if isinstance(p, nn.Embedding)), None)

    def some_of(x: Any) -> Any:
        if not (isinstance(x, Tensor) and x.dim() > 1 and tuple(x.shape[:2]) == (1, many)):
            return x
        some = x.index_select(1, chosen.to(x.device)).detach().clone()
        if some.is_floating_point() or some.is_complex():
            some = some.where(some.isfinite(), 0)
            return some + torch.randn_like(some) * (1 + some.abs().mean())
        if some.dtype is torch.int64 and x.dim() == 2 and x is tokens.values:
            ids = x.unique()
            if ids.shape[0] < 8 and table is not None:
                low = min(3, table.num_embeddings - 1)
                return torch.randint(low, table.num_embeddings, some.shape, device=x.device)
        return some

    return tree_map(some_of, (args, {name: value for name, value in kwargs.items() if name not in TOLD}))


def cut(drawn: Any, parts: list[slice], total: int) -> Any:
    """The tokens of some sequences, one after the other."""

    def piece(x: Any) -> Any:
        if isinstance(x, Tensor) and x.dim() > 1 and tuple(x.shape[:2]) == (1, total):
            return torch.cat([x[:, part] for part in parts], 1)
        return x

    return tree_map(piece, drawn)


def compared(module: nn.Module, out: Any) -> list[Tensor]:
    """The outputs that are compared: numbers; if there are none, all others, such as the classes that were chosen.

    Which class is the largest may be a matter of rounding in half precision, where only shapes are compared.
    """
    found = [x for x in tree_leaves(out) if isinstance(x, Tensor)]
    numbers = [x for x in found if x.is_floating_point() or x.is_complex()]
    half = not numbers and any(rounds_noticeably(p.dtype) for p in module.parameters())
    return numbers or [x.long() * (0 if half else 1) for x in found]


def gap(found: Tensor, wanted: Tensor) -> float:
    """By how much they differ, measured by what is wanted; 0 within the tolerance of their dtype."""
    same = (found == wanted) | ((found != found) & (wanted != wanted))
    differs = (found - wanted).abs().masked_fill(same, 0)
    finite = wanted.abs()[wanted.isfinite()]
    by = float(differs.max()) if differs.numel() else 0.0
    by /= max(1.0, float(finite.max()) if finite.numel() else 1.0)
    return 0.0 if by <= TOLERANCE.get(found.dtype, 0.0) else by if by == by else torch.inf


def is_telling(outputs: list[Tensor]) -> bool:
    """Whether outputs take many values; signs, or what a norm over two features gives, hide much of what differs."""
    if not outputs:
        return True
    values = torch.cat([x.real.flatten().double() for x in outputs])
    return len(values.round(decimals=2).unique()) > min(settings.TELLING, len(values) // 2)


def part_of(got: Tensor, wanted: Tensor, start: int, size: int, total: int, place: int) -> Tensor | str:
    """The part of one sequence in the joint output of two."""
    if got.dim() == wanted.dim() and got.dim() > 1 and tuple(got.shape[:2]) == (1, total):
        part = got[:, start : start + size]
    elif got.dim() > 0 and got.shape[0] == 2:
        part = got[place : place + 1]
    else:
        part = got
    if part.shape == wanted.shape and part is not got:
        return part
    if got.shape == wanted.shape:
        return f"an output of shape {tuple(got.shape)} belongs to all steps together, not to a step or a sequence"
    return (
        f"an output has shape {tuple(wanted.shape)} for one sequence of {size} steps, but {tuple(got.shape)} for two "
        f"sequences of {total} steps together"
    )


def run_alone(module: nn.Module, forward: Callable[..., Any], given: Any) -> Any:
    """Plain sequences as a batch of their own, by the module as it is."""
    args, kwargs = given
    if transformers.wanted(module, forward, kwargs)[1]:
        kwargs = {**kwargs, "use_cache": False}
    return forward(module, *args, **kwargs)

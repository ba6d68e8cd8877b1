"""The check of a flat module: two short sequences together, in both orders, against each of them alone."""

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from ... import settings
from ...compat import tree_map
from ...kernels.precision import rounds_noticeably
from . import parts, transformers
from .attention import ATTENTION, OwnMaskError, Within
from .beside import of_other_steps
from .call import run
from .multi_head import MULTI_HEAD
from .samples import compared, cut, draw, gap, is_telling, part_of, row_of, run_alone, sizes_tried
from .tokens import FlatTokens

BATCH_NORMS = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d, nn.SyncBatchNorm)
PADDING_MASKS = ("src_key_padding_mask", "tgt_key_padding_mask", "key_padding_mask")  #: torch's names, of its own steps


@dataclass(frozen=True)
class Found:
    """What is wrong with a module, or None; whether parts of it run apart, and whether it reads ends of sequences.

    ``fails``: a sequence alone raises; ``pooled``: an output is not one of tokens; ``tells``: outputs take many
    values; ``sure``: and differ by little where they are alike.
    ``order`` says of each call of attention whether it is among the tokens, and is empty if all are; ``others`` how
    many keys those had that are not.
    """

    refusal: str | None = None
    apart: bool = False
    reads: bool = False
    fails: bool = False
    pooled: bool = False
    tells: bool = False
    sure: bool = False
    order: tuple[bool, ...] = ()
    others: tuple[int, ...] = ()


def what_differs(module: nn.Module, forward: Callable[..., Any], args: Any, kwargs: Any, tokens: FlatTokens) -> Found:
    """Why a module cannot be flat, or how it can; parts that have to run apart are made so."""
    if mixing := next((p for p in module.modules() if isinstance(p, BATCH_NORMS)), None):
        return Found(refusal(module, f"it has a {type(mixing).__name__}, whose statistics join all sequences"))
    if (why := transformers.depends_on_length(module)) is not None:
        return Found(refusal(module, why))
    with _undisturbed(module), torch.no_grad():
        given = (module, forward, args, kwargs, tokens)
        found = _difference(given, apart=False)
        known = parts.has_any(module)
        if found.refusal is None and _reads_labels_by_step(*given):
            shape = tuple(kwargs["labels"].shape)
            return Found(
                f"mt.flat: {type(module).__name__} reads labels= of shape {shape} as if each belonged to a step; give "
                "labels of steps in the shape of the batch"
            )
        if found.refusal is not None and _found_parts(*given):
            again = _difference(given, apart=True)
            if again.refusal is None and (again.sure or parts.are_masked(module)):
                return Found(apart=True)
            if not known:
                parts.restore(module)
    if found.refusal is None:
        return found
    if (padding := next((k for k, v in kwargs.items() if k in PADDING_MASKS and v is not None), None)) is not None:
        return Found(f"mt.flat: leave out {padding}: flat tokens have no padding, and attention knows each sequence")
    return Found(_failure(module, found.refusal) if found.fails else refusal(module, found.refusal), fails=found.fails)


def not_compiled(module: nn.Module, found: Found) -> str | None:
    """Why a flat module runs in eager code alone, or None."""
    if not (found.apart or found.reads):
        return None
    return (
        f"mt.flat: parts of {type(module).__name__} see each sequence apart, which compiled code does not do; call it "
        "outside of torch.compile"
    )


def _found_parts(module: nn.Module, forward: Callable[..., Any], args: Any, kwargs: Any, tokens: FlatTokens) -> bool:
    """Whether there are submodules with attention of their own; they run apart from now on."""
    joining: dict[nn.Module, bool] = {}
    seen: dict[nn.Module, parts.Roles] = {}
    first = sizes_tried(module, (args, kwargs), tokens)
    for sizes in (first, (first[0] + 1, first[1] + 2)):
        number = sum(sizes)
        given = draw(module, args, kwargs, tokens, number)
        stack: list[nn.Module] = []
        within = parts.watching(row_of(tokens, sizes), joining, stack)
        try:
            with parts.watched(module, stack, seen, number):
                run(module, forward, given[0], given[1], within)
        except Exception:  # of a model that cannot run over all tokens at once
            return False
    found = parts.outermost(module, joining)
    if any(part not in seen for part in found):
        return False
    for part in found:
        seen[part].attends = any(joining.get(inner, False) for inner in part.modules())
        parts.make_apart(part, seen[part])
    return bool(found)


def _failure(module: nn.Module, why: str) -> str:
    """What is said of a module that raises without being flat."""
    return (
        f"mt.flat: {type(module).__name__} raises on plain sequences like those of this batch, without mt.flat as "
        f"well, on {why}. First call it on a plain batch; only if it fails because sequences are short, "
        "mt.flat(module, check=False) skips this check"
    )


def refusal(module: nn.Module, why: str) -> str:
    """What is said of a module that cannot be flat."""
    base = getattr(module, "base_model", None)
    ways = "undo mt.flat with mt.flat(module, False), and call the module on the masked batch"
    if isinstance(base, nn.Module) and base is not module:
        ways = f"make the model inside of it flat, mt.flat(model.base_model), or {ways}"
    elif next(module.children(), None) is not None:
        ways = f"make only the part that mixes steps by attention flat, such as mt.flat(model.encoder), or {ways}"
    ways = ways[0].upper() + ways[1:]
    return (
        f"mt.flat: {type(module).__name__} does not keep sequences apart on flat tokens: {why}. Only attention may mix "
        "steps; convolutions and recurrent layers over time, batch norms and batch_first=False cannot be flat. "
        f"{ways}"
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


def _difference(given: tuple[Any, ...], apart: bool) -> Found:
    """What differs, and what was seen."""
    module, _, args, kwargs, tokens = given
    sizes = sizes_tried(module, (args, kwargs), tokens)
    for _ in range(settings.DRAWS):
        found = _of_one_draw(*given, sizes=sizes, apart=apart)
        if found.refusal is not None or found.tells:
            break
    if found.refusal is None and found.pooled:  # of one step, whose neighbours are others' on both sides
        short = _of_one_draw(*given, sizes=(sizes[0], 1), apart=apart)
        return found if short.refusal is None or short.fails else short
    return found


def _of_one_draw(
    module: nn.Module, forward: Callable[..., Any], args: Any, kwargs: Any, tokens: FlatTokens, *,
    sizes: tuple[int, int], apart: bool,
) -> Found:  # fmt: skip
    """What differs, and what was seen."""
    drawn, total = draw(module, args, kwargs, tokens, sum(sizes)), sum(sizes)
    cuts = {0: slice(0, sizes[0]), 1: slice(sizes[0], total)}
    try:
        alone = {i: compared(module, run_alone(module, forward, cut(drawn, [c], total))) for i, c in cuts.items()}
    except Exception as error:
        said = f"a sequence of {min(sizes)} or {max(sizes)} steps: {type(error).__name__}: {error}"
        return Found(said, fails=True)
    if (mixed := _mixed_batch(module, forward, drawn, sizes)) is not None:
        return Found(mixed)
    seen: list[tuple[bool, int]] = []
    reads = pooled = False
    for order in ((0, 1), (1, 0)):
        lengths = (sizes[order[0]], sizes[order[1]])
        within = Within(row_of(tokens, lengths), apart)
        within.mode.seen = seen = []
        try:
            inside_args, inside_kwargs = cut(drawn, [cuts[i] for i in order], total)
            together = compared(module, run(module, forward, inside_args, inside_kwargs, within))
        except OwnMaskError as error:
            return Found(str(error).removeprefix("mt.flat: "))
        except Exception as error:  # of what runs on each alone
            return Found(f"on two together it raises {type(error).__name__}: {error}")
        if (why := _unlike(together, alone, order, sizes)) is not None:
            return Found(why)
        reads = reads or within.mode.read
        pooled = pooled or any(tuple(x.shape[:2]) != (1, total) for x in together)
    if (why := _joined(module, forward, cut(drawn, [cuts[0]], total), row_of(tokens, sizes[:1]), seen)) is not None:
        return Found(why)
    others = tuple({n for among, n in seen if not among})
    calls = tuple(among for among, _ in seen) if others else ()
    tells = is_telling(alone[0] + alone[1])
    sure = tells and not any(rounds_noticeably(x.dtype) or not x.dtype.is_floating_point for x in alone[0])
    return Found(reads=reads, pooled=pooled, tells=tells, sure=sure, order=calls, others=others)


def _unlike(
    together: list[Tensor], alone: dict[int, list[Tensor]], order: tuple[int, int], sizes: tuple[int, int]
) -> str | None:
    """What of two sequences together, in an order, is unlike each of them alone."""
    worst = 0.0
    for place, i in enumerate(order):
        if len(alone[i]) != len(together):
            return "it gives other outputs for two sequences than for one"
        for got, wanted in zip(together, alone[i], strict=True):
            found = part_of(got, wanted, sizes[order[0]] if place else 0, sizes[i], sum(sizes), place)
            if isinstance(found, str):
                return found
            worst = max(gap(found, wanted), worst)
    return None if worst == 0.0 else f"two sequences together differ by {worst:.2g} from each of them alone"


def _joined(module: nn.Module, forward: Callable[..., Any], given: Any, tokens: FlatTokens, seen: Any) -> str | None:
    """Whether keys beside the tokens are more for more tokens, as where entries were joined to the tokens."""
    keys = [n for among, n in seen if not among]
    if not keys:
        return None
    fewer: list[tuple[bool, int]] = []
    within = Within(tokens)
    within.mode.seen = fewer
    args, kwargs = given
    run(module, forward, args, kwargs, within)
    if keys == [n for among, n in fewer if not among]:
        return None
    return f"its attention is over {max(keys)} keys, which are the tokens of all sequences and more"


def _reads_labels_by_step(
    module: nn.Module, forward: Callable[..., Any], args: Any, kwargs: Any, tokens: FlatTokens
) -> bool:
    """Whether labels ``(B, C)`` that are numbers are read as if each belonged to a step: not for 5 steps and for 3."""
    labels = kwargs.get("labels")
    if not of_other_steps(labels, tokens):
        return False
    total = sum(sizes := sizes_tried(module, (args, kwargs), tokens))
    drawn_args, drawn_kwargs = draw(module, args, kwargs, tokens, total)
    for size in sizes:
        given = cut((drawn_args, drawn_kwargs), [slice(0, size)], total)
        try:
            run_alone(module, forward, (given[0], {**given[1], "labels": labels[:1]}))
        except Exception:
            return True
    return False


def _mixed_batch(module: nn.Module, forward: Callable[..., Any], drawn: Any, sizes: tuple[int, int]) -> str | None:
    """What differs where two sequences of one length are rows of a plain batch: whether dimension 0 is the batch."""
    total, size = sum(sizes), min(sizes)
    rows = [slice(0, size), slice(sizes[0], sizes[0] + size)]

    def stack(x: Any) -> Any:
        if isinstance(x, Tensor) and x.dim() > 1 and tuple(x.shape[:2]) == (1, total):
            return torch.cat([x[:, row] for row in rows])
        return x

    why = "dimension 0 is not its batch"
    try:
        with Attending(len(rows), size) as attending:
            both = compared(module, run_alone(module, forward, tree_map(stack, drawn)))
    except Exception:  # a head that takes no batch without a padding token
        return None
    if attending.over_rows:
        return f"attention runs over the rows of a plain batch: {why}"
    for place, row in enumerate(rows):
        single = compared(module, run_alone(module, forward, cut(drawn, [row], total)))
        for many, one in zip(both, single, strict=True):
            part = many[place : place + 1] if many.dim() else many
            if many.dim() and part.shape == one.shape and (by := gap(part, one)) != 0.0:
                return f"rows of a plain batch differ by {by:.2g} from each of them alone: {why}"
    return None


class Attending(TorchFunctionMode):
    """Sees attention that runs over the rows of a plain batch, whatever a norm behind it leaves to compare."""

    over_rows = False

    def __init__(self, rows: int, steps: int) -> None:
        super().__init__()
        self.rows, self.steps = rows, steps

    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """The call, as it is."""
        kwargs = kwargs or {}
        if function is ATTENTION or function is MULTI_HEAD:
            shape = (args[0] if args else kwargs["query"]).shape
            found = (shape[0], shape[-2]) if function is ATTENTION else (shape[-2], shape[0])
            self.over_rows = self.over_rows or (len(shape) > 2 and found == (self.steps, self.rows))
        return function(*args, **kwargs)

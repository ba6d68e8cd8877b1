"""From a masked case to the same case over sparse data, and the law that every row keeps in every layout.

The law: a call on sparse masked tensors equals the call on strided ones, where valid, values and gradients; or it
raises UnsupportedOpError, which names ``to_dense()``.  Where the strided call raises, the sparse one does.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor

import masked_tensor as mt
from masked_tensor import MaskedTensor, layouts
from masked_tensor.engine.tensor import pair_of
from masked_tensor.errors import UnsupportedOpError

from . import harness
from .backward import differentiate
from .database import Sample
from .harness import Masked, differentiable, is_record, poisoned
from .trees import tree_leaves, tree_map

LAYOUTS = ("coo", "hybrid coo", "csr", "csc", "bsr", "bsc", "batched csr")
#: A masked tensor in each layout, without its masked entries.
CONVERT: dict[str, Callable[[Tensor], Tensor]] = {
    "coo": lambda x: x.to_sparse(),
    "csr": lambda x: x.to_sparse_csr(),
    "csc": lambda x: x.to_sparse_csc(),
    "bsr": lambda x: x.to_sparse_bsr((1, 2)),
    "bsc": lambda x: x.to_sparse_bsc((1, 2)),
}
_ERRORS = (RuntimeError, ValueError, IndexError, TypeError)


def check(case: Sample, counts: Counter[str], drawn: bool = False) -> None:
    """Raises AssertionError if the law is broken; ``counts`` says how often it was kept and how.

    Of results that are ``drawn`` at random only the validity is compared: what is stored is drawn in another order.
    """
    dense = harness.build((case.args, case.kwargs))
    expected = outcome(case.op, *dense)
    failed = isinstance(expected, Exception)
    slopes = [] if failed or drawn or not harness.plain_has_gradient(case) else gradients(case.op, *dense)
    for layout in LAYOUTS:
        for number, (args, kwargs) in enumerate(sparse_cases(case, layout)):
            what = f"{layout}, {'all' if number == 0 else 'the first'} sparse"
            actual = outcome(case.op, args, kwargs)
            if isinstance(actual, UnsupportedOpError) and not failed:
                assert "to_dense()" in str(actual), f"{what}: refused without a way out: {actual}"
                counts["refused"] += 1
            elif failed:
                assert isinstance(actual, Exception), f"{what}: the strided call raises {expected!r}"
                counts["both raise"] += 1
            else:
                assert not isinstance(actual, Exception), f"{what}: {type(actual).__name__}: {actual}"
                _same(actual, expected, what, values=not drawn)
                counts["equal"] += 1
                if slopes:
                    found = outcome(lambda *a, **k: gradients(case.op, a, k), args, kwargs)
                    if isinstance(found, RuntimeError) and "that autograd tracks: use x = op(x" in str(found):
                        counts["refused"] += 1  # a write in place
                        continue
                    assert not isinstance(found, Exception), f"{what}: {type(found).__name__}: {found}"
                    _same_gradients(found, slopes, what)
                    counts["gradients"] += 1


# --------------------------------------------------------------------------------------------------------------- cases


def sparse_cases(case: Sample, layout: str, seed: int = 0) -> Iterator[tuple[Any, Any]]:
    """``(args, kwargs)`` with sparse masked tensors: all that fit, in COO also the first of several alone."""
    records = list(harness.masked_leaves((case.args, case.kwargs)))
    fitting = [i for i, r in enumerate(records) if fits(r.data.shape, layout)]
    for chosen in [fitting, fitting[:1]][: min(len(fitting), 2 if layout == "coo" else 1)]:
        generator, number = torch.Generator().manual_seed(seed), iter(range(len(records)))

        def make(value: Any, chosen: Any = chosen, generator: Any = generator, number: Any = number) -> Any:
            if isinstance(value, Masked):
                sparse = next(number) in chosen
                return stored(value, layout, generator) if sparse else mt.masked_tensor(value.data, value.mask)
            return value.detach().clone() if isinstance(value, Tensor) else value

        yield tree_map(make, (case.args, case.kwargs), is_leaf=is_record)


def fits(shape: torch.Size, layout: str) -> bool:
    """Whether the layout can hold a tensor of ``shape``."""
    if layout in ("coo", "hybrid coo"):
        return len(shape) >= (1 if layout == "coo" else 2)
    return (len(shape) > 2 if layout == "batched csr" else len(shape) == 2) and shape.numel() > 0


def stored(x: Masked, layout: str, generator: torch.Generator) -> MaskedTensor:
    """The record in a sparse layout; a third of its masked-out elements are stored too, as NaN."""
    shape = x.data.shape
    kept = x.mask | (torch.rand(shape, generator=generator) < 0.3)
    if layout == "batched csr":  # which stores as many elements in every batch
        rows = kept.reshape(-1, shape[-2] * shape[-1])
        rank = torch.argsort(torch.argsort(~rows, dim=1, stable=True), dim=1, stable=True)
        kept = (rank < rows.sum(1).max()).view(shape)
    pattern = _converted(torch.arange(1, shape.numel() + 1).view(shape) * kept, layout)
    place = layouts.values(pattern)  # 0 where a block was filled up
    here = (place - 1).clamp_min(0)
    valid = (place > 0) & x.mask.reshape(-1)[here]
    data = poisoned(x.data.reshape(-1)[here], valid, float("nan"))
    return mt.as_masked_tensor(layouts.with_values(pattern, data), layouts.with_values(pattern, valid))


def _converted(number: Tensor, layout: str) -> Tensor:
    if layout == "coo":
        return number.to_sparse_coo()
    if layout == "hybrid coo":
        return number.to_sparse(1)
    if layout in ("bsr", "bsc"):
        block = tuple(2 if n % 2 == 0 else 1 for n in number.shape)
        return number.to_sparse_bsr(block) if layout == "bsr" else number.to_sparse_bsc(block)
    return number.to_sparse_csc() if layout == "csc" else number.to_sparse_csr()


# ---------------------------------------------------------------------------------------------------------- comparison


def outcome(op: Any, args: Any, kwargs: Any) -> Any:
    """The results, or the error that was raised."""
    torch.manual_seed(1)
    try:
        return tree_leaves(op(*args, **kwargs))
    except _ERRORS as error:
        return error


def seen(x: Any) -> Any:
    """A result of any layout as a record."""
    if type(x) is MaskedTensor and layouts.is_sparse(pair_of(x).data):
        pair = pair_of(x)
        return Masked(_dense(pair.data.detach()), _dense(pair.mask))
    return harness.seen(x.to_dense() if isinstance(x, Tensor) and layouts.is_sparse(x) else x)


def _dense(x: Tensor) -> Tensor:
    empty = torch.zeros(x.shape.numel(), dtype=x.dtype)
    return empty.index_put((layouts.keys(x),), layouts.values(x)).view(x.shape)


def _same(actual: list[Any], expected: list[Any], what: str, values: bool = True) -> None:
    assert len(actual) == len(expected), f"{what}: {len(actual)} results, expected {len(expected)}"
    for i, (a, e) in enumerate(zip(map(seen, actual), map(seen, expected), strict=True)):
        if isinstance(e, Masked) and isinstance(a, Masked) and not values:
            a, e = Masked(a.mask, a.mask), Masked(e.mask, e.mask)
        harness.assert_same(a, e, f"{what}, result {i}")


def gradients(op: Any, args: Any, kwargs: Any) -> list[Any]:
    """Of a weighted sum of all that is valid in the results, with respect to every floating tensor."""
    leaves = [v for v in tree_leaves((args, kwargs)) if isinstance(v, Tensor) and differentiable(v)]
    for x in leaves:
        x.requires_grad_()
    torch.manual_seed(1)
    out = [o for o in tree_leaves(op(*args, **kwargs)) if isinstance(o, Tensor) and o.requires_grad]
    generator, total = torch.Generator().manual_seed(3), torch.zeros(())
    for o in out:
        o = o.to_dense() if layouts.is_sparse(o) else o
        plain = o.filled(0) if type(o) is MaskedTensor else o
        plain = torch.view_as_real(plain.resolve_conj()).sum(-1) if plain.is_complex() else plain
        weight = torch.rand(plain.shape, generator=generator, dtype=torch.float64)
        total = total + (plain * weight.to(plain.dtype)).sum()
    return list(differentiate(total, leaves, allow_unused=True)) if out else []


def _same_gradients(actual: list[Any], expected: list[Any], what: str) -> None:
    assert len(actual) == len(expected), f"{what}: no gradient comes back"
    for i, (a, e) in enumerate(zip(map(seen, actual), map(seen, expected), strict=True)):
        if a is None or e is None:
            given = e if a is None else a
            assert given is None or not given.data[given.mask].any(), f"{what}: gradient {i} is {a}, not {e}"
        else:
            harness.assert_same(a, e, f"{what}, gradient {i}")

"""Every public functional form x input layout x mask layout x dim x keepdim against the note's pseudo-code.

``python -m tests.matrix`` prints, by input layout, how many functions pass, how many are refused with the documented
error, and the number of calls.  A function that is neither a row here nor listed as refused fails the test; so does one
that is listed as refused and has a form.
"""

import itertools
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

import masked_tensor.functional as masked
from masked_tensor.errors import UnsupportedOpError

from .conftest import table
from .helpers.examples import INPUTS, example, masks_of
from .oracles import groups, losses
from .oracles import sparse as oracle

INF, NAN = float("inf"), float("nan")

# Functions without a form for sparse inputs, each with the reason; all say so and name to_dense().
REFUSED = {
    **dict.fromkeys(("masked_fill", "masked_fill_", "masked_scatter", "masked_scatter_"), "writes outside the pattern"),
    "masked_select": "its result is strided: to_dense() first says so",
    "logaddexp": "exp(0) = 1: every unspecified element would take part (the peer's form is strided only, too)",
    **dict.fromkeys(
        losses.OVER_CLASSES, "the classes or features of a row are combined with each other first: the rows are dense"
    ),
}


@dataclass(frozen=True)
class Case:
    """One call, and what is to be checked of its result."""

    call: Callable[[], Any]
    check: Callable[[Any], None]


Row = Callable[[Tensor], Iterator[Case]]


def judge(name: str, layout: str, first: int = 0, every: int = 1) -> tuple[str, int]:
    """``passes`` or ``refused``, and the number of calls; raises AssertionError for what is wrong.

    Of the cases the one at ``first`` is called, and from there on each one that is a multiple of ``every`` further.
    """
    x = INPUTS[layout]()
    refused = x.layout is not torch.strided and name.split()[0] in REFUSED
    number = 0
    for case in itertools.islice(ROWS[name](x), first, None, every):
        number += 1
        error = None
        try:
            out = case.call()
        except UnsupportedOpError as reason:
            error = str(reason)
        if error is None:
            assert not refused, f"{name} has a form for {layout}: take it out of REFUSED"
            case.check(out)
        else:
            wording = f"masked_tensor.{name.split()[0]} does not support {x.layout} inputs; use input.to_dense()"
            assert refused, f"{name} of {layout} is refused, but not listed as such: {error}"
            assert error.startswith(wording), error
    assert number, f"{name} of {layout}: no case"
    return "refused" if refused else "passes", number


# ----------------------------------------------------------------------------------------------------------- reductions


def every_dim(ndim: int) -> list[Any]:
    return [None, *range(ndim), -1, *itertools.combinations(range(ndim), 2), (-1, 0)]


def one_dim(ndim: int) -> list[Any]:
    return [None, *range(ndim), -1]


def int_dim(ndim: int) -> list[Any]:
    return [*range(ndim), -1]


@dataclass(frozen=True)
class Reduces:
    """``form(x, dim=, keepdim=, mask=)`` is ``function`` of the shown elements; ``at``: a position among all."""

    form: Callable[..., Any]
    function: Callable[[Tensor], Tensor]
    empty: Any
    dims: Callable[[int], list[Any]] = every_dim
    at: bool = False

    def __call__(self, x: Tensor) -> Iterator[Case]:
        dense = x.to_dense()
        for dim, (name, mask), keepdim in itertools.product(
            self.dims(x.dim()), masks_of(x.shape).items(), (False, True)
        ):
            dims = tuple(range(x.dim())) if dim is None else (dim,) if isinstance(dim, int) else dim
            arguments = self.function, dense, mask, tuple(sorted(d % x.dim() for d in dims)), keepdim
            expected = (
                partial(oracle.position, *arguments) if self.at else partial(oracle.reduction, *arguments, self.empty)
            )
            what = f"mask {name}, dim {dim}, keepdim {keepdim}"
            yield Case(
                partial(self.form, x, dim=dim, keepdim=keepdim, mask=mask),
                lambda out, expected=expected, what=what: compare(out, x, *expected(), what),
            )


def compare(out: Tensor, x: Tensor, expected: Tensor, valid: Tensor, what: str) -> None:
    assert out.dtype == expected.dtype, f"{what}: {out.dtype}, not {expected.dtype}"
    assert out.shape == expected.shape, f"{what}: {tuple(out.shape)}, not {tuple(expected.shape)}"
    if x.layout is torch.strided or out.dim() == 0:
        assert out.layout is torch.strided, what
        torch.testing.assert_close(out, expected, equal_nan=True, msg=lambda m: f"{what}: {m}")
        return
    check_pattern(out)
    fits = x.layout is torch.sparse_coo or out.dim() == 2
    assert out.layout is (x.layout if fits else torch.sparse_coo), f"{what}: {out.layout}"
    dense = out.to_dense()
    assert not (dense[~valid] != 0).any(), f"{what}: something where nothing is valid"
    torch.testing.assert_close(dense[valid], expected[valid], equal_nan=True, msg=lambda m: f"{what}: {m}")


def check_pattern(x: Tensor) -> None:
    """torch's own invariants of the layout."""
    if x.layout is torch.sparse_coo:
        torch._validate_sparse_coo_tensor_args(x._indices(), x._values(), x.shape, x.is_coalesced())
    else:
        by_rows = x.layout in (torch.sparse_csr, torch.sparse_bsr)
        indices = (x.crow_indices(), x.col_indices()) if by_rows else (x.ccol_indices(), x.row_indices())
        torch._validate_sparse_compressed_tensor_args(*indices, x.values(), x.shape, x.layout)


def result(form: Callable[..., Any], index: int, **keywords: Any) -> Callable[..., Tensor]:
    return lambda *args, **more: form(*args, **more, **keywords)[index]  # type: ignore[no-any-return]


def values(form: Callable[..., Any]) -> Callable[..., Tensor]:
    """The values of a form that gives indices, too, where it is given a dim."""

    def first(*args: Any, **more: Any) -> Tensor:
        result = form(*args, **more)
        return result if isinstance(result, Tensor) else result.values  # type: ignore[no-any-return]

    return first


def variance(v: Tensor) -> Tensor:
    return v.var(correction=1) if v.numel() > 1 else v.new_tensor(NAN)


def norm(ord: float) -> tuple[Callable[..., Tensor], Callable[[Tensor], Tensor], float]:
    form = lambda x, **keywords: masked.norm(x, ord, **keywords)  # noqa: E731
    return form, lambda v: torch.linalg.vector_norm(v, ord), 0 if ord >= 0 else INF


def quantile(form: Any, function: Any, q: float, kind: str) -> Reduces:
    return Reduces(
        lambda x, **keywords: form(x, q, interpolation=kind, **keywords),
        lambda v: function(v, q, interpolation=kind),
        NAN,
        one_dim,
    )


REDUCTIONS: dict[str, Reduces] = {
    "sum": Reduces(masked.sum, torch.sum, 0),
    "prod": Reduces(masked.prod, torch.prod, 1),
    "mean": Reduces(masked.mean, torch.mean, NAN),
    "amax": Reduces(masked.amax, torch.amax, -INF),
    "amin": Reduces(masked.amin, torch.amin, INF),
    "aminmax min": Reduces(result(masked.aminmax, 0), torch.amin, INF),
    "aminmax max": Reduces(result(masked.aminmax, 1), torch.amax, -INF),
    "any": Reduces(masked.any, lambda v: v.ne(0).any(), False),
    "all": Reduces(masked.all, lambda v: v.ne(0).all(), True),
    "count_nonzero": Reduces(masked.count_nonzero, torch.count_nonzero, 0),
    "logsumexp": Reduces(masked.logsumexp, lambda v: v.logsumexp(0), -INF),
    "nansum": Reduces(masked.nansum, torch.nansum, 0),
    "nanmean": Reduces(masked.nanmean, torch.nanmean, NAN),
    "var": Reduces(masked.var, variance, NAN),
    "std": Reduces(partial(masked.std, correction=0), lambda v: v.std(correction=0), NAN),
    "var_mean var": Reduces(result(masked.var_mean, 0), variance, NAN),
    "var_mean mean": Reduces(result(masked.var_mean, 1), torch.mean, NAN),
    "std_mean std": Reduces(result(masked.std_mean, 0), lambda v: variance(v).sqrt(), NAN),
    "std_mean mean": Reduces(result(masked.std_mean, 1), torch.mean, NAN),
    **{f"norm {ord}": Reduces(*norm(ord)) for ord in (2, 0, 1, 3, -1, INF, -INF)},
    "median": Reduces(values(masked.median), torch.median, NAN, one_dim),
    "nanmedian": Reduces(values(masked.nanmedian), torch.nanmedian, NAN, one_dim),
    "quantile": quantile(masked.quantile, torch.quantile, 0.35, "linear"),
    "nanquantile": quantile(masked.nanquantile, torch.nanquantile, 0.7, "nearest"),
    "mode values": Reduces(result(masked.mode, 0), oracle.most_frequent, NAN, int_dim),
    "max values": Reduces(result(masked.max, 0), torch.amax, -INF, int_dim),
    "min values": Reduces(result(masked.min, 0), torch.amin, INF, int_dim),
    "argmax": Reduces(masked.argmax, torch.argmax, 0, one_dim, at=True),
    "argmin": Reduces(masked.argmin, torch.argmin, 0, one_dim, at=True),
    "max indices": Reduces(result(masked.max, 1), torch.argmax, 0, int_dim, at=True),
    "min indices": Reduces(result(masked.min, 1), torch.argmin, 0, int_dim, at=True),
    "mode indices": Reduces(result(masked.mode, 1), oracle.last_mode, 0, int_dim, at=True),
}

# ---------------------------------------------------------------------------------------------------------- elementwise


@dataclass(frozen=True)
class Along:
    """``form(x, dim, mask=)`` is ``function`` of the shown and stored elements of every slice, ``hidden`` elsewhere."""

    form: Callable[..., Any]
    function: Callable[[Tensor], Tensor]
    hidden: float = 0

    def __call__(self, x: Tensor) -> Iterator[Case]:
        for dim, (name, mask) in itertools.product(int_dim(x.dim()), masks_of(x.shape).items()):
            given = self.marked(x.to_dense(), dim % x.dim())
            expected = partial(oracle.elementwise, self.function, x, mask, dim % x.dim(), given)
            what = f"mask {name}, dim {dim}"
            yield Case(
                partial(self.form, x, dim, mask=mask),
                lambda out, expected=expected, what=what: in_place(out, x, *expected(), self.hidden, what),
            )

    def marked(self, dense: Tensor, dim: int) -> Tensor:
        return dense


class Positions(Along):
    """The function gives positions: each element carries its own along, as the last two digits."""

    def marked(self, dense: Tensor, dim: int) -> Tensor:
        position = torch.arange(dense.shape[dim]).view(-1, *[1] * (dense.dim() - dim - 1))
        return dense * 100 + position

    @staticmethod
    def of(scan: Callable[..., Any]) -> Callable[[Tensor], Tensor]:
        def function(v: Tensor) -> Tensor:
            value = torch.floor(v / 100)
            return (v - 100 * value)[scan(value, 0).indices].long()

        return function


def in_place(out: Tensor, x: Tensor, expected: Tensor, valid: Tensor, hidden: float, what: str) -> None:
    assert out.layout is x.layout, what
    assert out.dtype is expected.dtype, what
    values = out.to_dense()
    torch.testing.assert_close(values[valid], expected[valid], msg=lambda m: f"{what}: {m}")
    assert (values[oracle.specified(x) & ~valid] == hidden).all(), f"{what}: not {hidden} where the mask hides"


def normalize(ord: float) -> Along:
    return Along(lambda x, dim, mask: masked.normalize(x, ord, dim, mask=mask), lambda v: F.normalize(v, ord, 0))


ALONG: dict[str, Along] = {
    "softmax": Along(masked.softmax, lambda v: v.softmax(0)),
    "log_softmax": Along(masked.log_softmax, lambda v: v.log_softmax(0), -INF),
    "softmin": Along(masked.softmin, lambda v: (-v).softmax(0)),
    "normalize": normalize(2),
    "normalize inf": normalize(INF),
    "cumsum": Along(masked.cumsum, lambda v: v.cumsum(0)),
    "cumprod": Along(masked.cumprod, lambda v: v.cumprod(0)),
    "logcumsumexp": Along(masked.logcumsumexp, lambda v: v.logcumsumexp(0)),
    "cummax values": Along(result(masked.cummax, 0), lambda v: v.cummax(0).values),
    "cummin values": Along(result(masked.cummin, 0), lambda v: v.cummin(0).values),
    "cummax indices": Positions(result(masked.cummax, 1), Positions.of(torch.cummax)),
    "cummin indices": Positions(result(masked.cummin, 1), Positions.of(torch.cummin)),
}


def layer(name: str) -> Row:
    """A norm layer's function: the statistics of every group of shown and stored elements."""

    def row(x: Tensor) -> Iterator[Case]:
        form, group, scaled = groups.layers(tuple(x.shape))[name]
        statistics = groups.root_mean_square if name.startswith("rms") else groups.standardized
        for mask_name, mask in masks_of(x.shape).items():

            def check(out: Tensor, mask: Any = mask, mask_name: str = mask_name) -> None:
                expected, valid = groups.grouped(statistics, x, mask, group, x.to_dense())
                in_place(out, x, scaled(expected), valid, 0, f"mask {mask_name}")

            yield Case(partial(form, x, mask), check)

    return row


def local_response_norm(x: Tensor) -> Iterator[Case]:
    x = example((2, 4, 6)) if x.layout is torch.strided else x  # torch takes three dimensions
    for size, (name, mask) in itertools.product((2, 3), masks_of(x.shape).items()):
        visible = oracle.flags(mask, x.shape)
        dense = torch.where(visible, x.to_dense(), 0)
        deep = dense if x.dim() > 2 else dense.unsqueeze(-1)
        expected = F.local_response_norm(deep, size, 0.5, 0.75, 2.0).reshape(x.shape)
        arguments = x, expected, visible & oracle.specified(x), 0, f"mask {name}"
        yield Case(
            partial(masked.local_response_norm, x, size, 0.5, 0.75, 2.0, mask=mask),
            lambda out, arguments=arguments: in_place(out, *arguments),
        )


LAYERS: dict[str, Row] = {name: layer(name) for name in groups.layers((2, 2))}
LAYERS["local_response_norm"] = local_response_norm


# --------------------------------------------------------------------------------------------- whole tensors, and pairs


def whole(form: Callable[..., Any], function: Callable[[Tensor], Any]) -> Row:
    """``form(x, mask=)`` is ``function`` of the list of shown elements."""

    def row(x: Tensor) -> Iterator[Case]:
        for name, mask in masks_of(x.shape).items():
            expected = function(x.to_dense()[oracle.flags(mask, x.shape)])
            yield Case(partial(form, x, mask=mask), lambda out, e=expected, n=name: close(out, e, f"mask {n}"))

    return row


def close(out: Any, expected: Any, what: str) -> None:
    torch.testing.assert_close(out, expected, equal_nan=True, msg=lambda m: f"{what}: {m}")


def dist(p: float) -> Row:
    """The other tensor shows its own part."""

    def row(x: Tensor) -> Iterator[Case]:
        other = x.to_dense().flip(0) + 1
        for name, mask in masks_of(x.shape).items():
            visible = oracle.flags(mask, x.shape)
            expected = torch.dist(x.to_dense()[visible], other[visible], p)
            yield Case(
                partial(masked.dist, x, other, p, mask=mask), lambda out, e=expected, n=name: close(out, e, f"mask {n}")
            )

    return row


def logaddexp(x: Tensor) -> Iterator[Case]:
    other = x.to_dense().flip(-1) / 2
    for (name, mask), (second, more) in itertools.product(masks_of(x.shape).items(), masks_of(x.shape).items()):
        left = torch.where(oracle.flags(mask, x.shape), x.to_dense(), -INF)
        right = torch.where(oracle.flags(more, x.shape), other, -INF)
        expected = torch.logaddexp(left, right)
        yield Case(
            partial(masked.logaddexp, x, other, input_mask=mask, other_mask=more),
            lambda out, e=expected, n=f"masks {name} and {second}": close(out, e, n),
        )


def chosen(form: Callable[..., Any], function: Callable[[Tensor, Tensor], Tensor]) -> Row:
    """``form(x, mask)``, with a mask that chooses elements."""

    def row(x: Tensor) -> Iterator[Case]:
        for name, mask in masks_of(x.shape).items():
            if mask is not None:
                expected = function(x.to_dense().clone(), oracle.flags(mask, x.shape))
                yield Case(partial(form, x.clone(), mask), lambda out, e=expected, n=name: close(out, e, n))

    return row


SOURCE = torch.arange(100.0, 200.0, dtype=torch.float64)
WHOLE: dict[str, Row] = {
    "unique": whole(masked.unique, torch.unique),
    "unique counts": whole(
        lambda x, mask: masked.unique(x, return_counts=True, mask=mask), lambda v: torch.unique(v, return_counts=True)
    ),
    "unique_consecutive": whole(masked.unique_consecutive, torch.unique_consecutive),
    "max of all": whole(masked.max, torch.max),
    "min of all": whole(masked.min, torch.min),
    **{f"dist {p}": dist(p) for p in (0, 1, 2, 3, INF)},
    "logaddexp": logaddexp,
    "masked_fill": chosen(lambda x, mask: masked.masked_fill(x, mask, 7.0), lambda x, m: x.masked_fill(m, 7.0)),
    "masked_fill_": chosen(lambda x, mask: masked.masked_fill_(x, mask, 7.0), lambda x, m: x.masked_fill(m, 7.0)),
    "masked_scatter": chosen(
        lambda x, mask: masked.masked_scatter(x, mask, SOURCE), lambda x, m: x.masked_scatter(m, SOURCE)
    ),
    "masked_scatter_": chosen(
        lambda x, mask: masked.masked_scatter_(x, mask, SOURCE), lambda x, m: x.masked_scatter(m, SOURCE)
    ),
    "masked_select": chosen(masked.masked_select, lambda x, m: x[m]),
}


# --------------------------------------------------------------------------------------------------------------- losses


KINDS = ("none", "mean", "sum")


def loss(name: str) -> Row:
    """A loss of the elements shown in both, by the oracles of the class's own losses."""
    form = getattr(masked, name)
    form = partial(form, var=0.5) if name == "gaussian_nll_loss" else form

    def row(x: Tensor) -> Iterator[Case]:
        x = losses.given(name, x)
        dense = x.to_dense()
        rest = losses.SPECS[name].rest(dense)
        target_masks = None, losses.known(rest[-1])
        for (mask_name, mask), kind, known in itertools.product(masks_of(x.shape).items(), KINDS, target_masks):
            shown = oracle.flags(mask, x.shape)

            def check(
                out: Tensor, shown: Tensor = shown, kind: str = kind, known: Any = known, n: str = mask_name
            ) -> None:
                expected = losses.expected(name, dense, shown, rest, known, kind)
                close(out.to_dense() if out.dim() else out, expected, f"mask {n}, target mask {known}, {kind}")

            yield Case(partial(form, x, *rest, reduction=kind, mask=mask, target_mask=known), check)

    return row


ROWS: dict[str, Row] = {**REDUCTIONS, **ALONG, **LAYERS, **WHOLE, **{name: loss(name) for name in losses.SPECS}}


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    for line in table([(layout, *judge(name, layout)) for layout, name in itertools.product(INPUTS, ROWS)]):
        print(line)

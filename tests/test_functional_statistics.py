"""Ranks, covariances and attention with masks: against scipy, pandas and torch on what is valid."""

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.autograd import gradcheck

import masked_tensor as mt
from masked_tensor import MaskedTensor
from masked_tensor.functional.reductions.rank import Ties

NAN, INF = float("nan"), float("inf")
TIES = ("average", "min", "max", "dense", "ordinal")


def example(seed: int, shape: tuple[int, ...], dtype: torch.dtype = torch.float64) -> tuple[Tensor, Tensor]:
    """Small numbers with ties, and a mask."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(0, 4, shape, generator=generator).to(dtype), torch.rand(shape, generator=generator) < 0.6


# --------------------------------------------------------------------------------------------------------------- ranks


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.int64, torch.uint8, torch.bool])
@pytest.mark.parametrize("method", TIES)
def test_ranks_are_scipys(method: Ties, dtype: torch.dtype) -> None:
    """What is masked is what scipy leaves out as NaN."""
    stats = pytest.importorskip("scipy.stats")
    for seed, dim in itertools.product(range(8), (None, 0, 1, -1)):
        x, mask = example(seed, (4, 5), dtype)
        mask[1] = seed % 2 == 0  # a row with nothing valid
        plain = np.where(mask, x.double(), NAN)
        expected = torch.from_numpy(stats.rankdata(plain, method, axis=dim, nan_policy="omit").reshape(4, 5))
        dirty = x if dtype.is_floating_point is False else torch.where(mask, x, NAN)
        found = mt.rankdata(dirty, method, dim=dim, mask=mask)
        assert found.dtype is (
            torch.int64
            if method != "average"
            else torch.promote_types(dtype, torch.float32)
            if dtype.is_floating_point
            else torch.float32
        )
        assert torch.equal(found.double(), expected.nan_to_num(0))
        masked = mt.rankdata(mt.as_masked_tensor(dirty, mask), method, dim=dim)
        assert type(masked) is MaskedTensor
        assert torch.equal(masked.get_mask(), mask)
        assert torch.equal(masked.filled(0), found)
        whole = mt.rankdata(x, method, axis=dim)  # type: ignore[call-arg]
        assert torch.equal(
            whole.double(), torch.from_numpy(stats.rankdata(x.double(), method, axis=dim).reshape(4, 5)).double()
        )


@pytest.mark.parametrize("layout", ["coo", "csr"])
@pytest.mark.parametrize("method", TIES)
def test_sparse_ranks_are_those_of_what_is_stored(method: Ties, layout: str) -> None:
    x, mask = example(3, (4, 6))
    given = x.to_sparse_coo() if layout == "coo" else x.to_sparse_csr()
    for dim, m in itertools.product((0, 1), (None, mask)):
        found = mt.rankdata(given, method, dim=dim, mask=m)
        valid = (x != 0) & (mask if m is not None else True)
        assert torch.equal(found.to_dense(), mt.rankdata(x, method, dim=dim, mask=valid))
        assert found.layout is given.layout
    with pytest.raises(mt.UnsupportedOpError, match=r"rankdata\(dim=None\) does not support"):
        mt.rankdata(given, method)


def test_ranks_of_nan_of_nothing_and_of_one() -> None:
    x = torch.tensor([NAN, 1.0, INF, NAN, -INF])
    assert mt.rankdata(x, "min").tolist() == [4, 2, 3, 4, 1]
    assert mt.rankdata(torch.tensor([0.0, -0.0]), "min").tolist() == [1, 1]
    assert mt.rankdata(torch.zeros(0, 3), dim=0).shape == mt.rankdata(torch.zeros(0, 3)).shape == (0, 3)
    assert mt.rankdata(torch.tensor(5.0)).item() == 1
    assert mt.rankdata(mt.masked_tensor(torch.tensor(1.0), torch.tensor(False))).tolist() is None
    large = torch.arange(70000).flip(0).half().float()
    assert mt.rankdata(large, "max").max() == 70000
    assert not mt.rankdata(torch.ones(2, requires_grad=True)).requires_grad


# ----------------------------------------------------------------------------------------------------------- quantiles


@pytest.mark.parametrize("ends", [(0.4, 0.4), (0.0, 1.0), (0.5, 0.5), (0.0, 0.0), (1 / 3, 1 / 3), (1.0, 1.0)])
@pytest.mark.parametrize("layout", ["strided", "coo", "csr"])
def test_quantiles_have_scipys_plotting_positions(layout: str, ends: tuple[float, float]) -> None:
    mstats = pytest.importorskip("scipy.stats.mstats")
    q, (alphap, betap) = [0.0, 0.05, 0.3, 0.5, 0.8, 1.0], ends
    for seed, dim in itertools.product(range(6), (0, 1)):
        x, mask = example(seed, (7, 5))
        x = x * torch.rand(x.shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
        mask[:1], mask[:, :1] = True, True
        wanted = np.stack(
            [
                np.asarray(mstats.mquantiles(row[m].numpy(), q, alphap, betap))
                for row, m in zip(x.movedim(dim, -1), mask.movedim(dim, -1), strict=True)
            ],
            1,
        )
        given = {"strided": torch.where(mask, x, NAN), "coo": x.to_sparse_coo(), "csr": x.to_sparse_csr()}[layout]
        for form in (mt.quantile, mt.nanquantile):
            found = form(given, q, dim, mask=mask, alphap=alphap, betap=betap)
            torch.testing.assert_close(found.to_dense(), torch.from_numpy(wanted))
        if layout == "strided":
            masked = mt.quantile(mt.as_masked_tensor(given, mask), q, dim, alphap=alphap, betap=betap)
            torch.testing.assert_close(masked.filled(0), torch.from_numpy(wanted))
            leaf = given.clone().requires_grad_()
            (grad,) = torch.autograd.grad(mt.quantile(leaf, q, dim, mask=mask, alphap=alphap, betap=betap).sum(), leaf)
            assert not bool(grad[~mask].any())
            torch.testing.assert_close(grad.sum(), torch.tensor(float(len(q) * x.shape[1 - dim]), dtype=x.dtype))


# --------------------------------------------------------------------------------------------------------- covariances


@pytest.mark.parametrize("name", ["cov", "corrcoef"])
def test_pairs_of_variables_are_pandas(name: str) -> None:
    pandas = pytest.importorskip("pandas")
    for seed, least in itertools.product(range(6), (None, 1, 3, 5)):
        generator = torch.Generator().manual_seed(seed)
        x = torch.randn(4, 9, generator=generator, dtype=torch.float64)
        mask = torch.rand(4, 9, generator=generator) < 0.6
        frame = pandas.DataFrame(torch.where(mask, x, NAN).T.numpy())
        theirs = frame.cov(min_periods=least) if name == "cov" else frame.corr(min_periods=least or 1)
        expected = torch.from_numpy(theirs.to_numpy(copy=True))
        form: Callable[..., Any] = getattr(mt, name)
        for dirt in (NAN, INF, 1e30):
            dirty = torch.where(mask, x, dirt)
            found = form(dirty, mask=mask, min_count=least)
            torch.testing.assert_close(found, expected, equal_nan=True)
            masked = form(mt.as_masked_tensor(dirty, mask), min_count=least)
            assert torch.equal(masked.get_mask(), ~expected.isnan())
            torch.testing.assert_close(masked.filled(NAN), expected, equal_nan=True)
            filled = form(dirty, mask=mask, min_count=least, fill_value=7.0)
            torch.testing.assert_close(filled, expected.nan_to_num(7.0))


@pytest.mark.filterwarnings("ignore:cov.*degrees of freedom")  # of no observations
def test_weights_and_gradients_of_covariances() -> None:
    x, mask = example(1, (3, 8))
    x = x + torch.randn(3, 8, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    mask[:, :3] = True
    f, a = torch.arange(1, 9), torch.rand(8, dtype=torch.float64)
    given = mt.as_masked_tensor(x, mask)
    options: list[dict[str, Any]] = [
        {},
        {"fweights": f},
        {"aweights": a, "correction": 0},
        {"fweights": f, "aweights": a},
    ]
    for option in options:
        torch.testing.assert_close(mt.cov(x, **option), torch.cov(x, **option))
        torch.testing.assert_close(
            mt.cov(x, mask=mask, **option), torch.cov(given, **option).filled(NAN), equal_nan=True
        )
        assert gradcheck(lambda x, o=option: mt.cov(x, mask=mask, min_count=2, **o).nan_to_num(0), x.requires_grad_())
        x = x.detach()
    (grad,) = torch.autograd.grad(mt.corrcoef(d := torch.where(mask, x, NAN).requires_grad_(), mask=mask).sum(), d)
    assert not bool(grad[~mask].any())
    assert bool(grad.isfinite().all())
    left_out = mt.masked_tensor([True] * 6 + [False] * 2, [True] * 6 + [False] * 2).to(torch.int64)
    found = mt.cov(x, fweights=left_out, min_count=7)
    assert type(found) is MaskedTensor
    assert found.count() == 0
    assert mt.cov(x[0], mask=mask[0]).dim() == 0
    assert mt.cov(x.bfloat16(), mask=mask).dtype is torch.bfloat16
    assert mt.cov(torch.ones(2, 0), min_count=1).shape == (2, 2)
    with pytest.raises(mt.UnsupportedOpError, match="cov does not support"):
        mt.cov(x.to_sparse_coo(), mask=mask)


# ----------------------------------------------------------------------------------------------------------- attention


def operands(dtype: torch.dtype = torch.float64, heads: int = 2) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    q, k, v = (
        torch.randn(3, h, n, 4, generator=generator, dtype=torch.float64).to(dtype)
        for h, n in ((4, 5), (heads, 6), (heads, 6))
    )
    return q, k, v, torch.tensor([[True] * 6, [True, False, True, True, False, False], [False] * 6])


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
@pytest.mark.parametrize("dirt", [NAN, INF, 1e30])
@pytest.mark.parametrize("option", ["", "bool", "float", "causal", "scale"])
def test_attention_sees_the_valid_keys(option: str, dirt: float, dtype: torch.dtype) -> None:
    """Each batch entry is what torch gives of its valid keys alone; zeros, and no gradients, where there are none."""
    q, k, v, mask = operands(dtype)
    generator = torch.Generator().manual_seed(1)
    some = torch.rand(5, 6, generator=generator) < 0.6
    some[:, 0] = True
    attn: Tensor | None = {"bool": some, "float": torch.randn(5, 6, generator=generator).to(dtype)}.get(option)
    causal = option == "causal"
    scale = 0.3 if option == "scale" else None
    hidden = ~mask[:, None, :, None]
    q, k, v = (t.detach().requires_grad_() for t in (q, k.masked_fill(hidden, dirt), v.masked_fill(hidden, dirt)))
    options: dict[str, Any] = {"scale": scale, "enable_gqa": True}
    found = mt.scaled_dot_product_attention(q, k, v, attn, 0.0, causal, key_mask=mask, **options)
    weight = torch.randn(found.shape, generator=generator, dtype=torch.float64).to(dtype)
    grads = torch.autograd.grad((found * weight).sum(), (q, k, v))
    for b, keys in enumerate(mask):
        if not keys.any():
            assert not bool(found[b].any())
            assert not any(bool(g[b].any()) for g in grads)
            continue
        part = [q.detach()[b], k.detach()[b][:, keys], v.detach()[b][:, keys]]
        part = [t.requires_grad_() for t in part]
        user = torch.ones(5, 6, dtype=torch.bool).tril() if causal else attn
        user = None if user is None else user[:, keys]
        want = torch.nn.functional.scaled_dot_product_attention(*part, user, **options)
        expected = torch.autograd.grad((want * weight[b]).sum(), part)
        close: dict[str, Any] = {"atol": 2e-2, "rtol": 2e-2} if dtype is torch.bfloat16 else {}
        torch.testing.assert_close(found[b], want, **close)
        for i, (g, e) in enumerate(zip(grads, expected, strict=True)):
            torch.testing.assert_close(g[b] if i == 0 else g[b][:, keys], e, **close)
            assert i == 0 or not bool(g[b][:, ~keys].any())


def test_masks_of_keys_in_other_shapes() -> None:
    q, k, v, mask = operands(heads=4)
    form = mt.scaled_dot_product_attention
    expected = form(q, k, v, key_mask=mask)
    torch.testing.assert_close(form(q, k, v, key_mask=mask[:, None]), expected)
    torch.testing.assert_close(form(q, k, v, key_mask=mask[:, None].expand(3, 4, 6)), expected)
    torch.testing.assert_close(form(q, k, v, key_mask=mask.int()), expected)
    torch.testing.assert_close(form(q[:, 0], k[:, 0], v[:, 0], key_mask=mask), expected[:, 0])
    torch.testing.assert_close(form(q[1, 0], k[1, 0], v[1, 0], key_mask=mask[1]), expected[1, 0])
    for masked in itertools.product((False, True), repeat=3):
        if any(masked):
            given = [
                mt.as_masked_tensor(t, torch.ones_like(t, dtype=torch.bool)) if m else t
                for t, m in zip((q, k, v), masked, strict=True)
            ]
            found = form(given[0], given[1], given[2], key_mask=mask)
            assert type(found) is MaskedTensor
            assert torch.equal(found.get_mask()[..., 0].any(-1).any(-1), mask.any(-1))
            torch.testing.assert_close(found.filled(0), expected)
    assert form(q, k[:, :, :0], v[:, :, :0], key_mask=mask[:, :0]).shape == q.shape
    assert gradcheck(
        lambda q, k, v: form(q, k, v, key_mask=mask), [t.requires_grad_() for t in (q, k, v)], fast_mode=True
    )


# ---------------------------------------------------------------------------------------------------------- time series


def test_plain_series_have_nan_where_gaps_remain() -> None:
    pandas = pytest.importorskip("pandas")
    x, mask = example(5, (9, 3))
    frame = pandas.DataFrame(torch.where(mask, x, NAN).numpy())
    for found, theirs in (
        (mt.ffill(x, 0, mask=mask), frame.ffill()),
        (mt.bfill(x, 0, limit=1, mask=mask), frame.bfill(limit=1)),
        (mt.interpolate(x, 0, mask=mask), frame.interpolate()),
        (mt.rolling(x, 3, 0, min_periods=2, mask=mask).mean(), frame.rolling(3, min_periods=2).mean()),
        (mt.rolling(x, 2, 0, mask=mask).std(), frame.rolling(2).std()),
        (mt.rolling(x, 2, 0).max(), pandas.DataFrame(x.numpy()).rolling(2).max()),
    ):
        assert type(found) is Tensor
        torch.testing.assert_close(found, torch.from_numpy(theirs.to_numpy(copy=True)), equal_nan=True)
    for call in (lambda **o: mt.ffill(x.long(), 0, mask=mask, **o), lambda **o: mt.rolling(x.long(), 2, 0, **o).sum()):
        with pytest.raises(
            ValueError, match=r"what stays masked is NaN in a plain result, which torch\.int64 does not"
        ):
            call()
        assert call(fill_value=-1).dtype is torch.int64

"""What the law tests over the database do not reach: row-constant masks, payload tracking, fused and casted forms."""

import pytest
import torch
from torch.nn import functional as F

import masked_tensor as mt
from masked_tensor.engine import dispatch
from masked_tensor.engine.tensor import pair_of
from masked_tensor.extend import Payload

from .helpers.database import Sample
from .helpers.harness import PAYLOADS, Masked, assert_same, masked_case, run
from .laws import laws
from .oracles.matmul import add, contract

NAN = float("nan")


def padded(batch=3, time=5, channels=4, dtype=torch.float64, payload=NAN):
    data = torch.randn(batch, time, channels, dtype=dtype)
    rows = torch.arange(time) < torch.tensor([time, 2, 0])[:batch, None]
    mask = rows.unsqueeze(-1).expand(data.shape)
    return data, mask, mt.as_masked_tensor(data.masked_fill(~mask, payload), mask)


def test_padding_stays_compact_through_linear():
    _, _, x = padded()
    mask = pair_of(x).mask
    weight, bias = torch.randn(7, 4, dtype=torch.float64), torch.randn(7, dtype=torch.float64)
    out = pair_of(F.linear(x, weight, bias))
    assert out.mask.stride()[-1] == 0
    assert torch._C._is_alias_of(out.mask, mask), "a row-constant mask is passed on, not computed"


def test_padding_costs_no_product_of_masks():
    _, _, x = padded()
    weight = torch.randn(7, 4, dtype=torch.float64)
    with torch.profiler.profile() as profile:
        F.linear(x, weight)
    products = [e.key for e in profile.key_averages() if e.key in {"aten::mm", "aten::addmm", "aten::bmm"}]
    calls = sum(e.count for e in profile.key_averages() if e.key in products)
    assert calls == 1


@pytest.mark.parametrize("payload", PAYLOADS)
def test_the_weight_gradient_is_plain_and_finite(payload):
    data, mask, x = padded(payload=payload)
    weight = torch.randn(7, 4, dtype=torch.float64, requires_grad=True)
    bias = torch.randn(7, dtype=torch.float64, requires_grad=True)
    F.linear(x, weight, bias).square().sum().backward()
    reference = [weight.detach().requires_grad_(), bias.detach().requires_grad_()]
    F.linear(data[mask[..., 0]], *reference).square().sum().backward()
    for parameter, expected in zip((weight, bias), reference, strict=True):
        assert type(parameter.grad) is torch.Tensor
        torch.testing.assert_close(parameter.grad, expected.grad)


@pytest.mark.parametrize("holder", ["row", "entry"])
def test_an_infinite_weight_sends_no_nan_to_a_masked_entry(holder):
    data, mask, _ = padded()
    if holder == "entry":
        mask = torch.rand(data.shape, generator=torch.Generator().manual_seed(0)) < 0.5
    x = mt.masked_tensor(data, mask).requires_grad_()
    weight = torch.randn(7, 4, dtype=torch.float64)
    weight[0, 0] = float("inf")
    F.linear(x, weight).sum().backward()
    assert (pair_of(x.grad).data[~mask] == 0).all()


def test_a_tracked_product_hands_on_zeros():
    _, _, x = padded()
    weight = torch.randn(7, 4, dtype=torch.float64, requires_grad=True)
    out = pair_of(F.linear(x, weight, torch.ones(7, dtype=torch.float64)))
    assert out.payload is Payload.ZERO
    assert (out.data[~out.mask] == 0).all()
    assert pair_of(F.linear(x, weight.detach())).payload is Payload.ANY


@pytest.mark.parametrize("op", [torch.addmm, torch.addmv, torch.addbmm, torch.baddbmm, torch.addr])
def test_a_summand_with_beta_zero_takes_no_part(op):
    shapes = {
        torch.addmm: ((3, 5), (3, 4), (4, 5), "nk,km->nm"),
        torch.addmv: ((3,), (3, 4), (4,), "nk,k->n"),
        torch.addbmm: ((3, 5), (2, 3, 4), (2, 4, 5), "bnk,bkm->nm"),
        torch.baddbmm: ((2, 3, 5), (2, 3, 4), (2, 4, 5), "bnk,bkm->bnm"),
        torch.addr: ((3, 5), (3,), (5,), "n,m->nm"),
    }
    *sizes, equation = shapes[op]
    sample = Sample(op, tuple(torch.randn(s, dtype=torch.float64) for s in sizes), {"beta": 0, "alpha": 0.5})
    case = masked_case(sample, "random")
    for payload in (None, *PAYLOADS):
        (out,), _ = run(case, payload)
        assert_same(out, add(case.args[0], contract(equation, *case.args[1:]), 0, 0.5), op.__name__)


@pytest.mark.parametrize("use_gelu", [False, True])
def test_addmm_activation(use_gelu):
    sample = Sample(torch._addmm_activation, (torch.randn(5), torch.randn(3, 4), torch.randn(4, 5)))
    case = masked_case(sample, "random")
    total = add(case.args[0], contract("nk,km->nm", *case.args[1:]))
    data = F.gelu(total.data) if use_gelu else total.data.relu()  # as torch does on the CPU
    whole = torch._addmm_activation(*sample.args, use_gelu=use_gelu)
    everything = mt.as_masked_tensor(sample.args[0], torch.tensor(True))
    found = torch._addmm_activation(everything, *sample.args[1:], use_gelu=use_gelu)
    torch.testing.assert_close(found.filled(), whole)
    for payload in (None, *PAYLOADS):
        out = torch._addmm_activation(*run_args(case, payload), use_gelu=use_gelu)
        assert_same(out, Masked(data, total.mask), "activation")


def run_args(case, payload):
    from .helpers.harness import build

    return build(case.args, payload)


def test_autocast_rounds_values_but_no_mask():
    _, mask, x = padded(dtype=torch.float32)
    valid = torch.rand(5, 3000, generator=torch.Generator().manual_seed(0)) < 0.5
    y = mt.masked_tensor(torch.ones(5, 3000), valid)
    with torch.autocast("cpu", torch.bfloat16):
        out = pair_of(F.linear(x, torch.randn(7, 4)))
        product = pair_of(y @ y.T)
    assert out.data.dtype is torch.bfloat16
    assert torch.equal(out.mask, mask[..., :1].expand(3, 5, 7))
    assert product.mask.all()


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.int64, torch.complex64])
def test_other_dtypes(dtype):
    a, b = (torch.randint(-4, 5, s).to(dtype) for s in ((3, 4), (4, 5)))
    case = masked_case(Sample(torch.mm, (a, b)), "random")
    for payload in (None, *PAYLOADS):
        (out,), _ = run(case, payload)
        assert_same(out, contract("nk,km->nm", *case.args), str(dtype))


def test_an_empty_contraction_is_zero_as_nothing_in_it_is_masked():
    x = mt.masked_tensor(torch.ones(2, 0), torch.ones(2, 0, dtype=torch.bool))
    for y in (torch.ones(0, 3), mt.masked_tensor(torch.ones(0, 3))):
        for out in (x @ y, y.mT @ x.mT, F.linear(x, y.mT), torch.einsum("ij,jk->ik", x, y), x.unsqueeze(0) @ y):
            assert pair_of(out).mask.all()
            assert (pair_of(out).data == 0).all()


def test_a_masked_bias_masks_its_output():
    _, mask, x = padded()
    bias = mt.masked_tensor(torch.ones(2, dtype=torch.float64), torch.tensor([True, False]))
    out = pair_of(F.linear(x, torch.ones(2, 4, dtype=torch.float64), bias))
    assert torch.equal(out.mask, mask[..., :2] & torch.tensor([True, False]))


def test_vmap_decomposes_to_the_same_rules():
    data, mask, x = padded(payload=NAN)
    weight = torch.randn(6, 7, 4, dtype=torch.float64)
    out = torch.vmap(lambda w: F.linear(x, w))(weight)
    expected = torch.stack([torch.where(mask, data, 0) @ w.T for w in weight])
    assert_same(out, Masked(expected, mask[..., :1].expand(6, 3, 5, 7)), "vmap")


test_law = laws("matmul")


# --------------------------------------------------------------------------------------- products that need every term


def needs(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Where the valid entries of a row and of a column are in the same places, and there are any."""
    return torch.stack([torch.stack([(r == c).all() & r.any() for c in b.mT]) for r in a])


MASKS = {
    "random": lambda: torch.rand(6, 5) > 0.3,
    "rows": lambda: (torch.arange(6) % 3 > 0)[:, None].expand(6, 5),
    "columns": lambda: (torch.arange(5) < 3).expand(6, 5),
    "all": lambda: torch.ones(()).bool().expand(6, 5),
    "none": lambda: torch.zeros(()).bool().expand(6, 5),
}


@pytest.mark.parametrize("second", MASKS)
@pytest.mark.parametrize("first", MASKS)
def test_with_every_term(first: str, second: str) -> None:
    """Every valid entry needs its partner; two masked entries make no term.  Plain and sparse operands, too."""
    torch.manual_seed(0)
    a, b = MASKS[first](), MASKS[second]().mT
    x, y = mt.as_masked_tensor(torch.randn(6, 5), a), mt.as_masked_tensor(torch.randn(5, 6), b)
    whole = torch.ones(5, 6).bool()
    with mt.meaning(product="all"):
        assert torch.equal((x @ y).get_mask(), needs(a, b))
        assert torch.equal(F.linear(x, y.mT).get_mask(), needs(a, b))
        assert torch.equal(torch.einsum("ik,kj->ij", x, y).get_mask(), needs(a, b))
        assert torch.equal((x @ torch.randn(5, 6)).get_mask(), needs(a, whole))
        sparse = mt.as_masked_tensor(torch.randn(6, 5).masked_fill(~a, 0).to_sparse())
        assert torch.equal((sparse @ y).get_mask(), needs(a, b))
        assert torch.equal((sparse @ torch.randn(5, 6)).get_mask(), needs(a, whole))


# ----------------------------------------------------------------------------------------------------- grouped products


def grouped_by_hand(a: torch.Tensor, b: torch.Tensor, offs: list[int]) -> torch.Tensor:
    starts = [0, *offs[:-1]]
    groups = [slice(start, end) for start, end in zip(starts, offs, strict=True)]
    if a.dim() == b.dim() == 2:
        return torch.stack([a[:, g] @ b[g] for g in groups])
    if a.dim() == 2:
        return torch.cat([a[g] @ b[i] for i, g in enumerate(groups)])
    return torch.cat([a[i] @ b[:, g] for i, g in enumerate(groups)], 1)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("masked", ["left", "both"])
@pytest.mark.parametrize(
    ("left", "right"), [((16, 8), (3, 8, 16)), ((8, 16), (16, 8)), ((3, 4, 8), (8, 16))], ids=["rows", "sum", "columns"]
)
def test_grouped_products(left, right, masked, dtype) -> None:
    """An output is a product of its group; what lies behind the last group is masked."""
    generator = torch.Generator().manual_seed(0)
    a, b = (torch.randn(shape, generator=generator).to(dtype) for shape in (left, right))
    offs = [2, 2, 12]
    ma = torch.rand(left, generator=generator) < 0.6
    mb = torch.rand(right, generator=generator) < 0.6 if masked == "both" else torch.ones(right, dtype=torch.bool)
    x = mt.as_masked_tensor(torch.where(ma, a, torch.nan), ma).requires_grad_()
    y = mt.as_masked_tensor(torch.where(mb, b, torch.nan), mb) if masked == "both" else b
    y = y.detach().requires_grad_()
    out = torch.nn.functional.grouped_mm(x, y, offs=torch.tensor(offs, dtype=torch.int32))
    plain = [torch.where(m, v, 0).requires_grad_() for m, v in ((ma, a), (mb, b))]
    expected = grouped_by_hand(*plain, offs)
    seen = grouped_by_hand(ma.float(), mb.float(), offs) > 0
    part = tuple(slice(0, n) for n in expected.shape)
    assert torch.equal(out.get_mask()[part], seen)
    assert out.count() == seen.sum()
    torch.testing.assert_close(out.filled(0)[part], torch.where(seen, expected, 0))
    out.sum().backward()
    torch.where(seen, expected, 0).sum().backward()
    for got, m, p in zip((x, y), (ma, mb), plain, strict=True):
        grad = got.grad.filled(0) if masked == "both" or got is x else got.grad
        torch.testing.assert_close(
            grad, torch.where(m, p.grad, 0), rtol=2e-2 if dtype is torch.bfloat16 else 1e-5, atol=1e-5
        )


def test_scaled_grouped_products_are_refused() -> None:
    x = mt.as_masked_tensor(torch.ones(4, 8), True)
    with pytest.raises(mt.UnsupportedOpError, match="_scaled_grouped_mm is not supported"):
        torch.ops.aten._scaled_grouped_mm(x, torch.ones(2, 8, 8), torch.ones(1), torch.ones(1))


@pytest.mark.parametrize(
    ("equation", "shapes"),
    [
        ("bqhd,bkhd->bhqk", [(2, 3, 2, 4), (2, 5, 2, 4)]), ("...ij,...jk->...ik", [(2, 3, 4), (1, 4, 5)]),
        ("i,j", [(3,), (4,)]), ("ij,kl->i", [(2, 1), (2, 2)]), ("ij,jk,kl->il", [(3, 4), (4, 5), (5, 2)]),
        ("ij->j", [(3, 4)]), ("ii,i->i", [(3, 3), (3,)]), ("ij,jk->ik", [(3, 0), (0, 2)]),
    ],
)  # fmt: skip
def test_einsum_at_once_is_einsum_of_its_parts(
    equation: str, shapes: list[tuple[int, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Values, masks, gradients and their gradients."""
    torch.manual_seed(0)
    given = [(torch.randn(s, dtype=torch.float64), torch.rand(s) > 0.4) for s in shapes]

    def found() -> list[torch.Tensor]:
        xs = [mt.masked_tensor(torch.where(m, d, torch.nan), m, requires_grad=True) for d, m in given]
        result = torch.einsum(equation, *xs)
        first = torch.autograd.grad(result.filled(0).square().sum(), xs, create_graph=True)
        second = torch.autograd.grad(sum(g.filled(0).square().sum() for g in first), xs)
        return [result.get_mask(), *(t.detach().filled(0) for t in (result, *first, *second))]

    at_once = found()
    monkeypatch.setattr(dispatch, "_is_usual", lambda x: False)
    for a, b in zip(at_once, found(), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("shape", [(8, 3), (3,), (2, 4, 3), (0, 3)])
@pytest.mark.parametrize("which", ["input", "weight", "both"])
def test_linear_with_a_vector_as_weight(shape: tuple[int, ...], which: str) -> None:
    generator = torch.Generator().manual_seed(0)
    x, weight = torch.randn(shape, generator=generator, dtype=torch.float64), torch.tensor([1.0, -2.0, 3.0]).double()
    seen, kept = torch.rand(shape, generator=generator) < 0.6, torch.tensor([True, False, True])
    seen, kept = (seen if which != "weight" else seen | True), (kept if which != "input" else kept | True)
    a = mt.as_masked_tensor(x.masked_fill(~seen, torch.nan), seen) if which != "weight" else x
    b = mt.as_masked_tensor(weight.masked_fill(~kept, torch.inf), kept) if which != "input" else weight
    result = torch.nn.functional.linear(a, b)
    expected = torch.nn.functional.linear(x * seen, weight * kept)
    assert torch.equal(result.mask, (seen & kept).any(-1))
    torch.testing.assert_close(result.filled(0), expected * (seen & kept).any(-1))

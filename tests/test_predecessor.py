"""What torch.masked gets wrong is right here, and the numbers of its tutorials reproduce.

Numbers after # are issues of pytorch/pytorch.
"""

import pytest
import torch
import torch.nn.functional as F
from torch import tensor

import masked_tensor as mt
from masked_tensor import as_masked_tensor, masked_tensor, testing

NAN, INF = float("nan"), float("inf")
T, X = True, False


def masked(values: list, dtype: torch.dtype = torch.float32) -> mt.MaskedTensor:
    """A masked tensor from nested lists with None where it is masked; NaN lies under the mask."""

    def fill(v):
        return [fill(w) for w in v] if isinstance(v, list) else (NAN if v is None else float(v))

    data = tensor(fill(values), dtype=torch.float64)
    return as_masked_tensor(data.to(dtype), ~data.isnan())


def same(actual: torch.Tensor, expected: list, tolerance: float = 1e-4) -> None:
    def flat(v):
        return [x for w in v for x in flat(w)] if isinstance(v, list) else [v]

    got, want = flat(actual.tolist()), flat(expected)
    assert len(got) == len(want)
    for g, w in zip(got, want, strict=True):
        if w is None:
            assert g is None, got
        else:
            assert g == pytest.approx(w, abs=tolerance, nan_ok=True), got


# ------------------------------------------------------------------------------------------------------ seven bars


def test_bar_1_variance_with_nan_under_the_mask_has_a_finite_gradient() -> None:
    x = as_masked_tensor(tensor([1.0, NAN, 4.0]), tensor([T, X, T])).requires_grad_()
    x.var(correction=0).backward()
    assert x.grad.get_data().tolist() == [-1.5, 0.0, 1.5]
    plain = tensor([1.0, NAN, 4.0], requires_grad=True)
    mt.var(plain, correction=0, mask=tensor([T, X, T])).backward()
    assert plain.grad.tolist() == [-1.5, 0.0, 1.5]


def test_bar_2_missing_targets_do_not_poison_the_weights() -> None:
    torch.manual_seed(0)
    net, x = torch.nn.Linear(3, 1), torch.randn(4, 3)
    target = as_masked_tensor(tensor([[1.0], [NAN], [2.0], [INF]]), tensor([[T], [X], [T], [X]]))
    loss = F.mse_loss(net(x), target)
    loss.backward()
    got = net.weight.grad.clone()
    net.zero_grad()
    rows = tensor([0, 2])
    expected = F.mse_loss(net(x[rows]), tensor([[1.0], [2.0]]))
    expected.backward()
    torch.testing.assert_close(loss.item(), expected.item())
    torch.testing.assert_close(got, net.weight.grad)


@pytest.mark.parametrize("garbage", [NAN, INF, 1e30])
def test_bar_3_garbage_in_a_masked_key_or_value_stays_there(garbage: float) -> None:
    torch.manual_seed(0)
    q, k, v = (torch.randn(1, 1, 3, 4) for _ in range(3))
    valid = tensor([T, T, X]).view(1, 1, 3, 1)
    bad = [torch.where(valid, t, tensor(garbage)).requires_grad_() for t in (k, v)]
    out = F.scaled_dot_product_attention(q, *(as_masked_tensor(t, valid) for t in bad))
    expected = F.scaled_dot_product_attention(q, k[:, :, :2], v[:, :, :2])
    torch.testing.assert_close(out.filled(NAN), expected)
    out.square().sum().backward()
    assert all(t.grad.isfinite().all() for t in bad)


@pytest.mark.parametrize("garbage", [NAN, INF, 1e30])
def test_bar_3_garbage_in_a_masked_visit_does_not_reach_multihead_attention(garbage: float) -> None:
    torch.manual_seed(0)
    module, x = torch.nn.MultiheadAttention(4, 2, batch_first=True), torch.randn(1, 3, 4)
    padded = torch.cat([x[:, :2], torch.full((1, 1, 4), garbage)], 1)
    masked = as_masked_tensor(padded, tensor([T, T, X]).view(1, 3, 1))
    for need_weights in (True, False):
        out, weights = module(masked, masked, masked, need_weights=need_weights)
        expected, expected_weights = module(x[:, :2], x[:, :2], x[:, :2], need_weights=need_weights)
        torch.testing.assert_close(out[:, :2].filled(NAN), expected)
        if need_weights:
            torch.testing.assert_close(weights[:, :2, :2].filled(NAN), expected_weights)
        found = torch.autograd.grad(out.square().sum(), list(module.parameters()))
        wanted = torch.autograd.grad(expected.square().sum(), list(module.parameters()))
        torch.testing.assert_close(found, wanted)


def test_bar_4_an_ignored_nan_row_leaves_the_gradients_finite() -> None:
    logits = tensor([[1.0, 2.0, 0.5], [NAN, NAN, NAN]], requires_grad=True)
    x = as_masked_tensor(logits, tensor([[T], [X]]))
    F.cross_entropy(x, tensor([1, -100])).backward()
    expected = tensor([[1.0, 2.0, 0.5]], requires_grad=True)
    F.cross_entropy(expected, tensor([1])).backward()
    torch.testing.assert_close(logits.grad, torch.cat([expected.grad, torch.zeros(1, 3)]))


class Stack(torch.nn.Module):
    """Convolutions, both norms, pooling and a bidirectional LSTM over (batch, channels, time)."""

    def __init__(self) -> None:
        super().__init__()
        nn = torch.nn
        self.layers = nn.Sequential(
            nn.Conv1d(3, 8, 3, padding=1), nn.GroupNorm(2, 8), nn.GELU(),
            nn.Conv1d(8, 8, 5, padding=2), nn.BatchNorm1d(8), nn.ReLU(), nn.MaxPool1d(3, 1, 1), nn.AvgPool1d(3, 1, 1),
        )  # fmt: skip
        self.lstm = nn.LSTM(8, 4, 2, batch_first=True, bidirectional=True)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.lstm(self.layers(x).transpose(1, 2))[0].mean(1)


def test_bar_5_padding_changes_nothing_in_a_stack_that_knows_nothing_of_it() -> None:
    torch.manual_seed(0)
    lengths, x = [7, 1, 4], torch.randn(3, 3, 9)
    testing.check_padding_invariance(Stack().eval(), x, lengths, dim=2)


def test_bar_5_batch_norm_learns_from_the_valid_entries_alone() -> None:
    torch.manual_seed(0)
    rows, padded_norm, norm = [torch.randn(n, 3) for n in (7, 1, 4)], torch.nn.BatchNorm1d(3), torch.nn.BatchNorm1d(3)
    padded = mt.from_sequences(rows, padding_value=NAN).transpose(1, 2)
    out, expected = padded_norm(padded).transpose(1, 2), norm(torch.cat(rows))
    torch.testing.assert_close(out[out.get_mask()].filled(NAN), expected.flatten())
    torch.testing.assert_close(padded_norm.running_mean, norm.running_mean)
    torch.testing.assert_close(padded_norm.running_var, norm.running_var)


# --------------------------------------------------------------------------------- known failures, strided tensors


def test_a_masked_tensor_given_to_a_functional_form_keeps_its_own_mask() -> None:
    x = as_masked_tensor(tensor([[0.0, 1.0, 2.0]]), tensor([[T, X, T]]))
    same(mt.mean(x, 1), [1.0])
    same(mt.var(x, 1), [2.0])
    same(mt.std(x, 1), [1.4142])
    assert all(type(f(x, 1)) is mt.MaskedTensor for f in (mt.mean, mt.var, mt.std))


@pytest.mark.parametrize(
    ("dtype", "size", "at"),
    [(torch.bfloat16, 2000, 1001), (torch.float16, 5000, 4097), (torch.uint8, 400, 300)],
)
def test_indices_are_int64(dtype: torch.dtype, size: int, at: int) -> None:
    data = torch.zeros(size, dtype=dtype)
    data[at] = 1
    mask = torch.ones(size, dtype=torch.bool)
    index = mt.argmax(data, 0, mask=mask)
    assert index.dtype is torch.int64
    assert index == at
    assert as_masked_tensor(data, mask).argmax() == at


def test_no_sentinel_is_confused_with_a_value() -> None:
    assert mt.argmax(tensor([5.0, -INF]), 0, mask=tensor([X, T])) == 1
    assert mt.argmin(tensor([5, 127], dtype=torch.int8), 0, mask=tensor([X, T])) == 1
    assert as_masked_tensor(tensor([5.0, -INF]), tensor([X, T])).argmax() == 1
    values, index = as_masked_tensor(tensor([NAN, -INF, -INF]), tensor([X, T, T])).max(0)
    assert values == -INF
    assert index == 1


def test_median_refuses_complex_and_keeps_large_integers() -> None:
    with pytest.raises((RuntimeError, NotImplementedError, TypeError)):
        mt.median(tensor([1j, 2j]), 0, mask=tensor([T, T]))
    assert mt.median(tensor([2**24 + 1, 0]), 0, mask=tensor([T, X])).values == 2**24 + 1
    assert mt.median(tensor([1.0, NAN, 3.0])).isnan()


def test_median_over_everything_is_a_full_reduction() -> None:
    x = tensor([[5.0, 1.0], [3.0, 9.0]])
    assert mt.median(x, None) == 3.0
    values, index = mt.median(x, (0, 1))
    assert (values, index) == (3.0, 2)  # where it is in x.flatten()
    assert mt.median(x, None, mask=tensor([[T, X], [T, T]])) == 5.0


def test_integer_scans_and_logsumexp_promote_as_torch() -> None:
    data = torch.full((3,), 100, dtype=torch.int8)
    assert mt.cumsum(data, 0, mask=torch.ones(3, dtype=torch.bool)).tolist() == [100, 200, 300]
    assert mt.cumsum(tensor([T, T]), 0).tolist() == [1, 2]
    same(mt.logsumexp(tensor([1, 2, 4]), 0), 4.1698)


@pytest.mark.parametrize("dirt", [NAN, INF, -INF, 1e30])
def test_moments_have_finite_gradients_whatever_lies_under_the_mask(dirt: float) -> None:
    for function, slope in ((mt.var, 2.0), (mt.std, 0.5**0.5)):
        x = tensor([[1.0, 3.0, dirt], [dirt, dirt, dirt]], requires_grad=True)
        function(x, 1, mask=tensor([[T, T, X], [X, X, X]]))[0].backward()  # the row with nothing valid is not in it
        torch.testing.assert_close(x.grad, tensor([[-slope, slope, 0.0], [0.0, 0.0, 0.0]]))


def test_standard_deviation_of_one_value_has_zero_gradient() -> None:
    x = tensor([3.0, NAN], requires_grad=True)
    mt.std(x, 0, unbiased=False, mask=tensor([T, X])).backward()
    assert x.grad.tolist() == [0.0, 0.0]


def test_amax_on_bool_and_integer_median_with_an_empty_row() -> None:
    assert mt.amax(tensor([[T, X]]), 1, mask=tensor([[X, T]])).tolist() == [False]
    assert mt.amin(tensor([[T, X]]), 1, mask=tensor([[T, X]])).tolist() == [True]
    assert mt.median(tensor([[1, 2], [3, 4]]), 1, mask=tensor([[T, X], [X, X]])).values.tolist() == [1, 0]
    result = as_masked_tensor(tensor([[1, 2], [3, 4]]), tensor([[T, X], [X, X]])).median(1)
    assert result.values.tolist() == [1, None]


def test_hybrid_tensors_reduce_over_dense_dimensions() -> None:
    x = tensor([[1.0, 2.0], [0.0, 0.0], [3.0, -4.0]]).to_sparse(1)
    for function, expected in ((mt.prod, [2, 0, -12]), (mt.amax, [2, 0, 3]), (mt.amin, [1, 0, -4])):
        assert function(x, 1).to_dense().tolist() == expected


@pytest.mark.parametrize("convert", [torch.clone, torch.Tensor.to_sparse_coo, torch.Tensor.to_sparse_csr])
def test_what_torch_refuses_stays_refused(convert) -> None:
    numbers, flags = convert(tensor([[1, 2], [3, 4]])), convert(tensor([[T, X], [X, T]]))
    for call in (
        lambda mask: mt.softmax(numbers, 1, mask=mask),
        lambda mask: mt.log_softmax(numbers, 1, mask=mask),
        lambda mask: mt.logcumsumexp(numbers, 1, mask=mask),
        lambda mask: mt.norm(numbers, 2, 1, mask=mask),
        lambda mask: mt.mean(numbers, 1, mask=mask),
        lambda mask: mt.argmax(flags, 1, mask=mask),
        lambda mask: mt.amax(convert(torch.ones(2, 0)), 1),
    ):
        for mask in (None, tensor([[T, T], [T, X]])):
            with pytest.raises((RuntimeError, IndexError)):
                call(mask)


# ------------------------------------------------------------------------------------------- the tutorials' numbers

TABLE = [
    [6, 10, None], [9, None, None], [4, None, None], [7, -10, -2], [0, 9, None], [None, 5, 7], [None, -10, None],
    [None, None, 12],
]  # fmt: skip


def test_overview_repr_and_arithmetic() -> None:
    m = masked_tensor(torch.arange(5.0), tensor([T, T, X, T, X]))
    assert "[0.0000, 1.0000, --, 3.0000, --]" in " ".join(repr(m).split())
    same(m.cos(), [1, 0.5403, None, -0.9900, None])
    same(m + m, [0, 2, None, 6, None])


def test_overview_different_masks_are_anded_or_refused_on_request() -> None:
    data, mask = torch.arange(5.0), tensor([T, T, X, T, X])
    a, b = masked_tensor(data, mask), masked_tensor(data, ~mask)
    same(a + b, [None] * 5)
    with mt.meaning(mismatch="raise"), pytest.raises(ValueError, match="mask"):
        a + b


def test_overview_the_sum_of_sums_is_not_the_sum() -> None:
    data = torch.arange(10.0).reshape(2, 5)
    mask0, mask1 = tensor([[X, X, T, T, T], [T, T, T, X, X]]), tensor([[T, T, T, X, X], [X, X, T, T, T]])
    a, b = masked_tensor(data, mask0), masked_tensor(data + 10, mask1)
    same((a + b).sum(0), [None, None, 38, None, None])
    same(a.sum(0) + b.sum(0), [15, 17, 38, 21, 23])
    same(a.to_tensor(0).sum(0) + b.to_tensor(0).sum(0), [15, 17, 38, 21, 23])
    same((data + (data + 10)).sum(0), [30, 34, 38, 42, 46])


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("sum", [16, 9, 4, -5, 9, 12, -10, 12]),
        ("mean", [8, 9, 4, -1.6667, 4.5, 6, -10, 12]),
        ("prod", [60, 9, 4, 140, 0, 35, -10, 12]),
        ("amin", [6, 9, 4, -10, 0, 5, -10, 12]),
        ("amax", [10, 9, 4, 7, 9, 7, -10, 12]),
    ],
)
def test_overview_reductions(name: str, expected: list) -> None:
    x = masked(TABLE)
    same(getattr(x, name)(1), expected)
    plain = mt.masked_tensor(x.filled(123.0), x.get_mask())
    same(getattr(mt, name)(plain.get_data(), 1, mask=x.get_mask()), expected)


def test_overview_indexing() -> None:
    x = masked(TABLE)
    same(x[0], [6, 10, None])
    same(x[tensor([0, 2])], [[6, 10, None], [4, None, None]])
    chosen = x[x.get_mask()]
    assert chosen.dim() == 1
    assert chosen.get_mask().all()
    same(chosen, [6, 10, 9, 4, 7, -10, -2, 0, 9, 5, 7, -10, 12])


def test_overview_gradients() -> None:
    torch.manual_seed(22)
    data = torch.randn(2, 2, 3) * 5
    mask = torch.randint(2, (2, 2, 3), dtype=torch.bool)
    x = masked_tensor(data, mask, requires_grad=True)
    total = x.sum()
    assert total.item() == pytest.approx(-2.9655, abs=1e-4)
    total.backward()
    assert x.grad.get_mask().equal(mask)
    assert (x.grad.filled(1) == 1).all()


def test_overview_fully_masked_sum() -> None:
    x = masked_tensor(torch.ones(2, 2), torch.zeros(2, 2, dtype=torch.bool), requires_grad=True)
    total = x.sum()
    assert not total.get_mask()
    with pytest.warns(mt.MaskedLossWarning):
        total.backward()
    same(x.grad, [[None, None], [None, None]])
    assert (x.grad.get_data() == 0).all()


def test_overview_masked_times_plain() -> None:
    x, y = masked([3, None]).requires_grad_(), tensor([2.0, 1.0], requires_grad=True)
    z = x * y
    same(z, [6, None])
    z.sum().backward()
    same(x.grad, [2, None])
    assert y.grad.tolist() == [3.0, 0.0]  # a plain tensor's gradient is plain, with an exact 0


def test_overview_means() -> None:
    data = torch.arange(24.0).reshape(2, 3, 4)
    x = masked_tensor(data, data % 2 == 0)
    same(x[0], [[0, None, 2, None], [4, None, 6, None], [8, None, 10, None]])
    x = torch.arange(16.0)
    y = x * x.fmod(4)
    assert y.mean() == 12.5
    z = mt.masked_invalid(torch.where(y == 0, NAN, y))
    assert z.mean().item() == pytest.approx(16.6667, abs=1e-4)
    assert z.nanmean().item() == pytest.approx(16.6667, abs=1e-4)
    assert z.argmin() == 1


def test_safe_softmax() -> None:  # #55056
    torch.manual_seed(0)
    mask = tensor([[T, X, X], [T, X, T], [X, X, X]])
    data = torch.randn(3, 3)
    out = masked_tensor(data, mask).softmax(0)
    assert out.get_mask().tolist() == mask.tolist()
    assert out[:2, 0].sum().item() == pytest.approx(1)
    assert out[1, 2].item() == pytest.approx(1)
    assert data.masked_fill(~mask, -INF).softmax(0)[:, 1].isnan().all()


def test_nan_operators() -> None:  # #61474, #21987, #63870
    y = torch.arange(32.0)
    x = y * y.fmod(4)
    x = torch.where(x == 0, NAN, x)
    m = mt.masked_invalid(x)
    assert m.mean().item() == pytest.approx(32.6667, abs=1e-4)
    assert torch.nanmean(m).item() == pytest.approx(32.6667, abs=1e-4)
    assert x.nanmean().item() == pytest.approx(32.6667, abs=1e-4)
    empty = mt.masked_invalid(torch.full((4,), NAN)).mean()
    assert not empty.get_mask()


def test_gradient_of_the_branch_not_taken() -> None:  # #10729
    x = tensor([-10.0, -5, 0, 5, 10, 50, 60, 70, 80, 90, 100])
    mask = x < 0
    mx, my = masked_tensor(x, mask, requires_grad=True), masked_tensor(torch.ones_like(x), ~mask, requires_grad=True)
    torch.where(mask, torch.exp(mx), my).sum().backward()
    same(mx.grad, [4.54e-5, 0.0067379] + [None] * 9, 1e-6)
    plain = x.clone().requires_grad_()
    torch.where(plain < 0, torch.exp(plain), torch.ones(11)).sum().backward()
    assert plain.grad.isnan().tolist() == [False] * 9 + [True, True]


def test_division_by_zero_in_the_branch_not_taken() -> None:  # #52248
    a = masked_tensor(tensor(1.0), tensor(False), requires_grad=True)
    value = torch.where(tensor(False), a / 0, tensor(1.0))
    assert value.item() == 1.0
    value.backward()
    assert not a.grad.get_mask()
    assert a.grad.get_data() == 0


def test_nansum_gradient() -> None:  # #67180
    a, b = mt.masked_invalid(tensor([1.0, 2.0, NAN])), tensor(1.0, requires_grad=True)
    (a * b).sum().backward()
    assert b.grad == 3.0
    plain = tensor(1.0, requires_grad=True)
    torch.nansum(tensor([1.0, 2.0, NAN]) * plain).backward()
    assert plain.grad.isnan()


def test_masking_after_the_bad_operation() -> None:  # #4132
    x, div = tensor([1.0, 1.0], requires_grad=True), tensor([0.0, 1.0])
    y = x / div
    as_masked_tensor(y, div != 0).sum().backward()
    # The mask is applied after the division, whose own backward multiplies the exact 0 by 1/0: use a masked divisor.
    assert x.grad[1] == 1.0
    x.grad = None
    (x / as_masked_tensor(div, div != 0)).sum().backward()
    assert x.grad.tolist() == [0.0, 1.0]


def test_demand_negative_dims_where_maximum_max() -> None:  # #115624, #129272, #128641, #92350
    x = masked([[1, None, 3], [None, None, 0]]).requires_grad_()
    same(x.sum(-1), [4, 0])
    same(torch.where(x > 1, x, -x), [[-1, None, 3], [None, None, 0]])
    torch.maximum(x, torch.zeros(2, 3)).sum().backward()
    same(x.grad, [[1, None, 1], [None, None, 0.5]])
    assert x.max().item() == 3
    same(x.permute(1, 0), [[1, None], [None, None], [3, 0]])  # #149720


def test_demand_centering_by_the_row_mean() -> None:
    x = masked([[1, None, 3], [None, None, 5]])
    same(x - x.mean(1, keepdim=True), [[-1, None, 1], [None, None, 0]])


def test_demand_moving_a_masked_tensor_moves_its_mask() -> None:  # #147140
    x = masked([1, None]).to("meta")
    assert x.get_mask().device.type == "meta"


def test_views_write_through() -> None:
    x = masked([[1, None], [3, 4]])
    x[0] = tensor([7.0, 8.0])
    x.view(-1).mul_(2)
    same(x, [[14, 16], [6, 8]])

"""The checks find what they are for."""

import pytest
import torch
from torch import nn

import masked_tensor as mt
from masked_tensor.testing import assert_close, check_invisible_data, check_padding_invariance, poison


def test_poison_changes_nothing_visible():
    x = mt.masked_tensor([1.0, 2.0], [True, False], requires_grad=True)
    assert torch.isnan(poison(x)._pair.data[1])
    assert poison(x).requires_grad
    assert_close(x, poison(x, 1e30))
    assert poison(mt.masked_tensor(torch.ones(2).half(), [True, False]), 1e30)._pair.data[1] == torch.inf
    assert poison(mt.masked_tensor([1, 2], [True, False]))._pair.data.tolist() == [1, 2**63 - 1]


def test_assert_close_says_what_differs():
    x, y = mt.masked_tensor([1.0, 2.0], [True, False]), mt.masked_tensor([1.0, 2.0], [True, True])
    with pytest.raises(AssertionError, match="The masks differ at 1 of 2 places"):
        assert_close(x, y)
    with pytest.raises(AssertionError, match=r"torch.Size\(\[2\]\) != torch.Size\(\[3\]\)"):
        assert_close(x, torch.zeros(3))
    with pytest.raises(AssertionError, match="not close"):
        assert_close(x, mt.masked_tensor([5.0, 2.0], [True, False]))


def test_torchs_own_assert_close_compares_masks():
    x = mt.masked_tensor([[1.0, 2.0], [3.0, 4.0]], [[True, False], [True, True]])
    torch.testing.assert_close(x, poison(x))
    torch.testing.assert_close([x, {"a": x}], [x + 1e-7, {"a": poison(x, 1e30)}])
    torch.testing.assert_close(x[0, 1], poison(x)[0, 1])  # nothing valid
    torch.testing.assert_close(x.to_sparse(), x.to_sparse())
    for other in (mt.masked_tensor(torch.ones(2, 2)), x.filled(2.0), poison(x).roll(1), x[:, :1].expand(2, 2)):
        for a, b in ((x, other), (other, x)):
            with pytest.raises(AssertionError, match=r"The masks differ at [1-4] of 4 places"):
                torch.testing.assert_close(a, b)
    with pytest.raises(AssertionError, match=r"Mismatched elements: 1 / 4(.|\n)*at index \(1, 0\)"):
        torch.testing.assert_close(x, mt.masked_tensor([[1.0, 7.0], [3.5, 4.0]], x.mask))
    with pytest.raises(AssertionError, match="dtype"):
        torch.testing.assert_close(x, x.double())


def test_a_function_that_looks_under_the_mask_is_found():
    x = mt.masked_tensor([[1.0, 2.0, 3.0]], [[True, True, False]])
    check_invisible_data(lambda t: t.softmax(-1).sum(), x)
    check_invisible_data(nn.Linear(3, 2), x)
    with pytest.raises(AssertionError, match="depend on the masked-out data"):
        check_invisible_data(lambda t: t._pair.data.sum(), x)


class Leaky(nn.Module):
    """Throws the mask away in the middle."""

    def __init__(self):
        super().__init__()
        self.first = nn.Conv1d(3, 3, 3, padding=1)
        self.bad = Exit()
        self.last = nn.Conv1d(3, 2, 3, padding=1)

    def forward(self, x):
        return self.last(self.bad(self.first(x)))


class Exit(nn.Module):
    def forward(self, x):
        return x.filled(0) if isinstance(x, mt.MaskedTensor) else x


def test_the_first_submodule_that_differs_is_named():
    torch.manual_seed(0)
    x = torch.randn(3, 3, 8)
    with pytest.raises(AssertionError, match=r"the first submodule that differs is 'bad' \(Exit\), row 1"):
        check_padding_invariance(Leaky(), x, [8, 5, 2], dim=2)


@pytest.mark.parametrize("batch_first", [False, True])
def test_models_that_keep_it(batch_first):
    torch.manual_seed(0)
    rnn = nn.LSTM(3, 4, bidirectional=True, batch_first=batch_first)
    x = torch.randn(3, 6, 3) if batch_first else torch.randn(6, 3, 3)
    check_padding_invariance(rnn, x, torch.tensor([6, 4, 1]), batch_dim=1 - batch_first, dim=int(batch_first))
    net = nn.Sequential(nn.Conv2d(1, 4, 3, stride=2), nn.ReLU(), nn.MaxPool2d(2), nn.AdaptiveAvgPool2d(1), nn.Flatten())
    check_padding_invariance(net, torch.randn(3, 1, 12, 12), [12, 9, 7], dim=3)


def test_padding_invariance_allows_gradients_to_round():
    """Their sums have terms that are larger than the sum: here one seed in eight was a false alarm."""
    for seed in range(60):
        torch.manual_seed(seed)
        model = nn.Sequential(nn.Conv1d(4, 8, 3, padding=1), nn.GroupNorm(2, 8))
        check_padding_invariance(model, torch.randn(3, 4, 10), [10, 4, 7], dim=2)


def test_padding_invariance_finds_a_wrong_gradient():
    class Scaled(torch.autograd.Function):
        """The identity, whose gradient depends on how long the batch is."""

        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, grad):
            return grad * (1 + 1e-3 * grad.shape[-1])

    class Wrong(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Conv1d(4, 8, 1)

        def forward(self, x):
            return Scaled.apply(self.layer(x))

    with pytest.raises(AssertionError, match=r"the gradient of 'layer\.weight' differs"):
        check_padding_invariance(Wrong(), torch.randn(3, 4, 10), [10, 4, 7], dim=2)


def test_padding_invariance_of_a_model_with_a_parameter_that_is_not_used():
    class Spare(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer, self.spare = nn.Linear(4, 2), nn.Linear(4, 2)

        def forward(self, x):
            return self.layer(x)

    check_padding_invariance(Spare(), torch.randn(3, 5, 4), [5, 2, 3], dim=1)


def test_a_parameter_that_takes_no_part_may_be_there() -> None:
    module = nn.Sequential(nn.Linear(3, 2))
    module.register_parameter("spare", nn.Parameter(torch.ones(2)))
    check_invisible_data(module, mt.masked_tensor([[1.0, None, 2.0]]))


def test_padding_invariance_of_a_function():
    check_padding_invariance(torch.tanh, torch.randn(3, 6, 8), [6, 2, 4])
    check_padding_invariance(lambda x: x.mean(1), torch.randn(3, 6, 8), [6, 2, 4])
    with pytest.raises(AssertionError, match="row 1"):
        check_padding_invariance(lambda x: x / x.shape[1], torch.randn(3, 6, 8), [6, 2, 4])

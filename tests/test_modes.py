"""Context managers."""

import pytest
import torch

import masked_tensor as mt
from masked_tensor import MaskMismatchError, mask_mismatch

X = mt.masked_tensor([1.0, 2.0, 3.0], [True, False, True])
Y = mt.masked_tensor([1.0, 2.0, 3.0], [True, True, True])


def test_different_masks_raise_on_request() -> None:
    with mask_mismatch("raise"), pytest.raises(MaskMismatchError, match=r"as_masked_tensor.*filled"):
        X + Y
    assert (X + Y).tolist() == [2.0, None, 6.0]


def test_equal_masks_plain_operands_and_numbers_do_not() -> None:
    other = mt.masked_tensor([5.0, 5.0, 5.0], X.get_mask().clone())
    with mask_mismatch():
        assert (X * other + torch.ones(3) + 1).tolist() == [7.0, None, 17.0]


def test_masks_are_compared_after_broadcasting() -> None:
    rows = mt.masked_tensor(torch.ones(2, 3), X.get_mask())
    with mask_mismatch("raise"):
        assert (rows + X).count() == 4
        with pytest.raises(MaskMismatchError):
            rows + Y


def test_contexts_nest_and_end() -> None:
    with mask_mismatch("raise"):
        with mask_mismatch("and"):
            assert (X + Y).count() == 2
        with pytest.raises(MaskMismatchError):
            X - Y
    with pytest.raises(ZeroDivisionError), mask_mismatch("raise"):
        raise ZeroDivisionError
    assert (X + Y).count() == 2


def test_the_gradient_is_not_concerned() -> None:
    x = mt.masked_tensor([1.0, 2.0, 3.0], [True, False, True], requires_grad=True)
    with mask_mismatch("raise"):
        (x * x.exp() + x).sum().backward()
    assert x.grad.count() == 2


def test_another_rule_is_refused() -> None:
    with pytest.raises(ValueError, match="'and', 'raise'"), mask_mismatch("or"):
        pass

"""The wording of errors: what was wrong, and the way out.  Arguments stay as they were."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from expecttest import assert_expected_inline

import masked_tensor as mt

ones = torch.ones


def message(error: type[Exception], call: Callable[[], Any]) -> str:
    with pytest.raises(error) as raised:
        call()
    return str(raised.value)


def test_masks() -> None:
    def make(data: torch.Tensor, mask: object) -> Callable[[], Any]:
        return lambda: mt.masked_tensor(data, mask)

    assert_expected_inline(
        message(TypeError, make(ones(2, 3), ones(3, 2))),
        """mask must be a bool tensor broadcastable to data's shape (2, 3), got float32 (3, 2); use mask.bool()""",
    )
    assert_expected_inline(
        message(ValueError, make(ones(2, 3), ones(3, 2).bool())),
        """mask must be a bool tensor broadcastable to data's shape (2, 3), got bool (3, 2)""",
    )
    assert_expected_inline(
        message(ValueError, make(ones(3), ones(2, 3).bool())),
        """mask must be a bool tensor broadcastable to data's shape (3,), got bool (2, 3)""",
    )
    assert_expected_inline(
        message(ValueError, make(ones(3), ones(3).bool().to_sparse())),
        """mask must have data's layout torch.strided, got torch.sparse_coo""",
    )
    assert_expected_inline(
        message(ValueError, make(ones(3, device="meta"), ones(3).bool())),
        """mask must be on data's device meta, got cpu; use mask.to(data.device)""",
    )
    assert_expected_inline(
        message(TypeError, lambda: mt.masked_where(ones(3), ones(3))),
        """condition must be a bool tensor broadcastable to data's shape (3,), got float32 (3,); use condition.bool()""",
    )


def test_data() -> None:
    assert_expected_inline(
        message(TypeError, lambda: mt.masked_tensor(object(), True)),
        """data must be a tensor, number, list, or numpy (masked) array, got object: Could not infer dtype of object""",
    )
    assert_expected_inline(
        message(TypeError, lambda: mt.masked_tensor("abc", True)).partition(":")[0],
        """data must be a tensor, number, list, or numpy (masked) array, got str""",
    )
    assert_expected_inline(
        message(TypeError, lambda: mt.as_masked_tensor([1.0], [True])),
        """as_masked_tensor wraps a tensor without a copy, got list; use masked_tensor(data, mask)""",
    )
    assert_expected_inline(
        message(TypeError, lambda: mt.as_masked_tensor(ones(2))),
        """a strided tensor does not say what is valid; give it a mask""",
    )
    assert_expected_inline(
        message(TypeError, lambda: mt.MaskedTensor(ones(2), ones(2).bool())),
        """MaskedTensor is not called directly: use masked_tensor(data, mask) to copy the data, or as_masked_tensor(data, mask) to wrap it""",
    )


def test_lengths() -> None:
    assert_expected_inline(
        message(ValueError, lambda: mt.from_lengths(ones(2, 3), [1, 2, 3])),
        """from_lengths needs one length per sequence: padded has shape (2, 3) (batch, time, ...), lengths has shape (3,)""",
    )
    assert_expected_inline(
        message(ValueError, lambda: mt.from_lengths(ones(2, 3), [1, 4])),
        """lengths must lie between 0 and 3, got 1 to 4""",
    )
    assert_expected_inline(
        message(TypeError, lambda: mt.lengths_to_mask(ones(2))), """lengths must be integers, got float32"""
    )
    assert_expected_inline(
        message(ValueError, lambda: mt.pad_sequence([])), """pad_sequence needs at least one sequence"""
    )


def test_values_of_holes() -> None:
    hole = mt.masked_tensor(1.0, False)
    assert_expected_inline(
        message(mt.MaskedValueError, hole.item),
        """item() of a masked-out value; use x.filled(value) to say what a hole should count as""",
    )
    assert_expected_inline(
        message(mt.MaskedValueError, lambda: bool(hole)),
        """bool() of a masked-out value; use x.filled(value) to say what a hole should count as""",
    )
    assert_expected_inline(
        message(mt.MaskedValueError, lambda: float(hole)),
        """float() of a masked-out value; use x.filled(value) to say what a hole should count as""",
    )


def test_leaving_with_holes() -> None:
    x = mt.masked_tensor([1.0, 2.0], [True, False])
    assert_expected_inline(
        message(mt.MaskedValueError, x.numpy),
        """numpy() would drop the mask; use x.filled(value).numpy() or x.to_numpy_ma()""",
    )
    assert_expected_inline(
        message(mt.MaskedValueError, lambda: np.asarray(x)),
        """conversion to a numpy array would drop the mask; use x.filled(value) or x.to_numpy_ma()""",
    )
    assert_expected_inline(
        message(mt.MaskedValueError, lambda: torch.from_dlpack(x)),
        """DLPack export would drop the mask; use x.filled(value) or x.compressed()""",
    )
    assert_expected_inline(
        message(mt.UnsupportedOpError, lambda: x.apply_(abs)),
        """apply_() runs past the mask and is not available on a masked tensor; write the function with torch ops, or apply it to x.compressed()""",
    )
    assert_expected_inline(
        message(TypeError, lambda: mt.filled(ones(2), 0)), """filled() takes a masked tensor, got Tensor"""
    )
    assert_expected_inline(
        message(TypeError, lambda: x.filled(ones(2))),
        """filled() takes a Python number; to fill from a tensor use torch.where(x.get_mask(), x, other)""",
    )


def test_ops_without_a_masked_meaning() -> None:
    x = mt.masked_tensor(ones(2, 2), [True, False])
    assert_expected_inline(
        message(mt.UnsupportedOpError, lambda: torch.linalg.eigh(x)),
        """aten::_linalg_eigh has no masked meaning here (masked: A). Ways out: give it plain data with x.filled(value) or x.compressed(), or define its meaning with @masked_tensor.register_rule('aten::_linalg_eigh')""",
    )


def test_masked_into_plain() -> None:
    target, x = torch.zeros(2), mt.masked_tensor([1.0, 2.0], [True, False])
    for write in (lambda: target.add_(x), lambda: target.copy_(x), lambda: torch.add(x, 1, out=target)):
        assert "would write a masked tensor into a plain tensor, which cannot hold the mask" in message(
            mt.MaskedWriteError, write
        )
    assert target.tolist() == [0.0, 0.0]


def test_transforms() -> None:
    mask = torch.tensor([True, False])
    assert_expected_inline(
        message(RuntimeError, lambda: torch.func.grad(lambda v: mt.as_masked_tensor(v, mask).filled(0).sum())(ones(2))),
        """a torch.func transform cannot differentiate through a masked tensor; give the transform plain tensors and use the functional forms, such as masked_tensor.sum(input, mask=mask)""",
    )
    x = mt.masked_tensor([1.0, 2.0], mask)
    assert_expected_inline(
        message(TypeError, lambda: torch.func.grad(lambda v: mt.filled(v, 0).sum())(x)),
        """filled() cannot see through a torch.func transform; give the transform plain tensors and use the functional forms, such as masked_tensor.sum(input, mask=mask)""",
    )

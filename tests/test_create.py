"""Making masked tensors: what goes in, what is copied, what keeps its graph."""

import re

import numpy as np
import pytest
import torch
from torch import tensor

import masked_tensor as mt
from masked_tensor.engine.tensor import pair_of
from masked_tensor.extend import Payload

NAN = float("nan")
DTYPES = [
    torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.float8_e4m3fn, torch.float8_e5m2,
    torch.complex64, torch.complex128, torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64,
    torch.uint16, torch.uint32, torch.uint64,
]  # fmt: skip


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_every_dtype(dtype: torch.dtype) -> None:
    if dtype in (torch.uint16, torch.uint32, torch.uint64) and torch.__version__ < "2.13":
        pytest.skip("torch's own where has no kernel")
    x = mt.masked_tensor(tensor([1, 1, 0]).to(dtype), tensor([True, False, True]))
    assert x.dtype is dtype
    assert x.tolist() == [1, None, 0]
    assert x.get_data().view(torch.uint8).view(3, -1)[1].eq(0).all()
    assert "--" in repr(x)


def test_the_copy_is_its_own_and_zero_under_the_mask() -> None:
    data, mask = tensor([1.0, NAN, 3.0]), tensor([True, False, True])
    x = mt.masked_tensor(data, mask)
    data.fill_(9)
    mask.fill_(True)
    assert x.tolist() == [1.0, None, 3.0]
    assert pair_of(x).payload is Payload.ZERO
    assert x.get_data().tolist() == [1.0, 0.0, 3.0]


def test_lists_with_none() -> None:
    x = mt.masked_tensor([[1.0, None], [None, 4.0]])
    assert x.tolist() == [[1.0, None], [None, 4.0]]
    assert mt.masked_tensor([None, 2]).dtype is torch.int64
    assert mt.masked_tensor([[1.0, None], [3.0, 4.0]], [[True], [False]]).tolist() == [[1.0, None], [None, None]]


def test_numpy_arrays_also_read_only_and_masked_ones() -> None:
    array = np.arange(3.0)
    array.flags.writeable = False
    assert mt.masked_tensor(array, np.array([True, False, True])).tolist() == [0.0, None, 2.0]
    masked = np.ma.masked_equal(np.array([[1, -9], [3, 4]]), -9)
    assert mt.masked_tensor(masked).tolist() == [[1, None], [3, 4]]
    assert mt.masked_tensor(np.ma.masked_array([1.0, 2.0])).tolist() == [1.0, 2.0]


def test_scalars_and_no_mask() -> None:
    assert mt.masked_tensor(2.5).item() == 2.5
    assert mt.masked_tensor(2.5, False).tolist() is None
    assert mt.masked_tensor([1, 2]).tolist() == [1, 2]


def test_a_masked_tensor_keeps_its_masked_entries() -> None:
    x = mt.masked_tensor([1.0, 2.0, 3.0], [True, False, True])
    assert mt.masked_tensor(x, [True, True, False]).tolist() == [1.0, None, None]
    assert mt.as_masked_tensor(x, [True, True, False]).tolist() == [1.0, None, None]
    assert mt.masked_invalid(x).tolist() == [1.0, None, 3.0]


@pytest.mark.parametrize("shape", [(), (1,), (4,), (3, 1), (1, 4), (1, 1, 4), (2, 1, 1)])
def test_broadcast_masks_stay_compact(shape: tuple[int, ...]) -> None:
    x = mt.masked_tensor(torch.ones(2, 3, 4), torch.ones(shape, dtype=torch.bool))
    mask = pair_of(x).mask
    assert mask.shape == x.shape
    padded = (1,) * (3 - len(shape)) + shape
    assert [s == 0 for s in mask.stride()] == [s == 1 for s in padded]


def test_dtype_device_and_requires_grad() -> None:
    x = mt.masked_tensor([1, 2], [True, False], True, dtype=torch.float64, device="cpu")
    assert x.dtype is torch.float64
    assert x.is_leaf
    assert x.requires_grad
    assert mt.masked_tensor(tensor([1.0]), device="meta").get_mask().device.type == "meta"


def test_wrapping_copies_nothing_and_keeps_the_graph() -> None:
    data = tensor([1.0, NAN], requires_grad=True)
    x = mt.as_masked_tensor(data, tensor([True, False]))
    assert x.get_data().data_ptr() == data.data_ptr()
    x.sum().backward()
    assert data.grad.tolist() == [1.0, 0.0]


def test_masking_keeps_the_graph_of_a_tensor() -> None:
    data = tensor([1.0, NAN], requires_grad=True)
    mt.masked_invalid(data).sum().backward()
    assert data.grad.tolist() == [1.0, 0.0]


def test_masked_invalid_equal_where() -> None:
    assert mt.masked_invalid([1.0, NAN, float("inf"), -float("inf")]).tolist() == [1.0, None, None, None]
    assert mt.masked_invalid([1, 2]).tolist() == [1, 2]
    assert mt.masked_equal(tensor([3, -999]), -999).tolist() == [3, None]
    x = tensor([[1.0, -2.0], [-3.0, 4.0]])
    assert mt.masked_where(x < 0, x).tolist() == [[1.0, None], [None, 4.0]]
    assert mt.masked_where([True, False], x).tolist() == [[None, -2.0], [None, 4.0]]
    unsure = mt.masked_tensor([False, False], [True, False])
    assert mt.masked_where(unsure, x[0]).tolist() == [1.0, None]


def test_lengths() -> None:
    x = mt.from_lengths(torch.ones(2, 3, 4), tensor([3, 1]))
    assert pair_of(x).mask.stride()[-1] == 0
    assert x.count(1)[:, 0].tolist() == [3, 1]
    turned = mt.from_lengths(torch.ones(3, 2, 4), [3, 1], batch_first=False)
    assert turned.get_mask().equal(x.get_mask().transpose(0, 1))
    assert mt.lengths_to_mask(tensor([[1, 0]]), 2).tolist() == [[[True, False], [False, False]]]
    assert mt.lengths_to_mask(torch.zeros(0, dtype=torch.long)).shape == (0, 0)


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("batch_first", [True, False])
def test_pad_sequence_is_the_plain_one_with_masked_entries(batch_first: bool, side: str) -> None:
    parts = [torch.rand(3, 2), torch.rand(1, 2), torch.rand(2, 2)]
    x = mt.pad_sequence(parts, batch_first, NAN, side)
    plain = torch.nn.utils.rnn.pad_sequence(parts, batch_first, NAN, side)
    assert x.filled(NAN).nan_to_num(-1).equal(plain.nan_to_num(-1))
    assert x.get_mask().equal(~plain.isnan())
    assert pair_of(x).mask.stride()[-1] == 0


def test_pad_sequence_of_masked_sequences_keeps_their_masked_entries() -> None:
    parts = [torch.ones(2), mt.masked_tensor([5.0, 6.0, 7.0], [True, False, True])]
    assert mt.from_sequences(parts).tolist() == [[1.0, 1.0, None], [5.0, None, 7.0]]


def test_pad_sequence_keeps_the_graph() -> None:
    parts = [torch.ones(2, requires_grad=True), torch.ones(1, requires_grad=True)]
    mt.from_sequences(parts).sum().backward()
    assert [p.grad.tolist() for p in parts] == [[1.0, 1.0], [1.0]]


def test_is_masked_tensor() -> None:
    assert mt.is_masked_tensor(mt.masked_tensor([1.0]))
    assert not mt.is_masked_tensor(torch.ones(1))
    assert not mt.is_masked_tensor(1.0)


def test_a_masked_entry_in_a_list_has_no_say_in_its_dtype() -> None:
    assert mt.masked_tensor([True, None]).dtype is torch.bool
    assert mt.masked_tensor([[None, 1], [2, None]]).dtype is torch.int64
    assert mt.masked_tensor([None, 1, 0.5]).dtype is torch.float32
    assert mt.masked_tensor([None, None]).dtype is torch.get_default_dtype()
    losses = [mt.masked_tensor(2.0, dtype=torch.float64), mt.masked_tensor(float("nan"), False), None]
    x = mt.masked_tensor(losses)
    assert x.tolist() == [2, None, None]
    assert x.dtype is torch.float64
    assert mt.masked_tensor(losses[1:], dtype=torch.int32).tolist() == [None, None]


@pytest.mark.parametrize(
    "dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.complex64, torch.int8]
)
def test_invalid_is_what_is_not_finite(dtype: torch.dtype) -> None:
    values = [0.0, -0.0, 1.0, 6e4, 1e-7, float("nan"), float("inf"), -float("inf")]
    data = (
        torch.tensor(values).to(dtype) if dtype.is_floating_point or dtype.is_complex else torch.arange(8, dtype=dtype)
    )
    x = mt.masked_invalid(data.reshape(2, 4).T)
    assert torch.equal(x.get_mask(), data.reshape(2, 4).T.isfinite())
    assert torch.equal(x.filled(0), torch.where(data.isfinite(), data, 0).reshape(2, 4).T)
    leaf = data.clone().requires_grad_() if dtype.is_floating_point else None
    if leaf is not None:
        mt.masked_invalid(leaf).sum().filled(0).backward()
        assert torch.equal(leaf.grad, data.isfinite().to(dtype))


# ------------------------------------------------------------------------------------------ a copy leaves the graph

HIDDEN = "masked_tensor.as_masked_tensor(data, mask) to keep the gradient"


def test_a_copy_of_a_tensor_that_requires_a_gradient_warns_where_it_is_called() -> None:
    leaf, mask = torch.ones(2, requires_grad=True), tensor([True, False])
    for data in (leaf, leaf * 2, mt.as_masked_tensor(leaf, mask)):
        with pytest.warns(UserWarning, match=re.escape(HIDDEN)) as caught:
            x = mt.masked_tensor(data, mask)
        assert [w.filename for w in caught] == [__file__]
        assert not x.requires_grad
        assert x.tolist() == [float(data.detach().filled(0)[0]) if mt.is_masked_tensor(data) else data[0].item(), None]


def test_a_copy_does_not_warn_where_its_graph_is_not_missed() -> None:
    """Warnings are errors in this suite."""
    leaf, mask = torch.ones(2, requires_grad=True), tensor([True, False])
    assert not mt.masked_tensor(leaf.detach(), mask).requires_grad
    assert not mt.masked_tensor(torch.ones(2), mask).requires_grad
    assert not mt.masked_tensor([1.0, None]).requires_grad
    assert not mt.masked_tensor(leaf, mask, False).requires_grad
    assert not mt.masked_tensor(leaf, mask, requires_grad=False).requires_grad
    new = mt.masked_tensor(leaf, mask, requires_grad=True)
    assert new.is_leaf
    assert new.requires_grad
    with torch.no_grad():
        assert not mt.masked_tensor(leaf, mask).requires_grad
        assert mt.masked_tensor(leaf, mask, requires_grad=True).requires_grad
    with torch.inference_mode():
        assert not mt.masked_tensor(leaf, mask).requires_grad


def test_what_the_warning_names_keeps_the_graph() -> None:
    leaf, mask = torch.ones(2, requires_grad=True), tensor([True, False])
    mt.as_masked_tensor(leaf * 2, mask).sum().backward()
    assert leaf.grad.tolist() == [2, 0]


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16], ids=str)
def test_a_mask_that_is_true_exactly_at_nan_warns(dtype: torch.dtype) -> None:
    """As of numpy.ma, where True means masked; the warning names the line of the user and the result is as asked."""
    data = tensor([[1.0, NAN], [NAN, 2.0]], dtype=dtype)
    for values, mask in ((data, data.isnan()), (data.T, data.T.isnan()), (data[:1].expand(3, 2), data[0].isnan())):
        with pytest.warns(UserWarning, match=r"mask is True exactly where data is NaN, .* use ~mask") as caught:
            x = mt.masked_tensor(values, mask)
        assert [w.filename for w in caught] == [__file__]
        assert x.mask.equal(mask.expand_as(x.mask))
    for mask in (~data.isnan(), torch.ones(2, 2, dtype=torch.bool), tensor([[False, True], [False, False]])):
        assert mt.masked_tensor(data, mask).mask.equal(mask)  # warnings are errors in this suite
    for values in (torch.full((2,), NAN), torch.ones(0), torch.ones(2), tensor([1, 2])):
        assert mt.masked_tensor(values.to(dtype), values.isnan()).shape == values.shape

"""What a masked tensor looks like: example tests, because looks are what is tested."""

import pytest
import torch
from expecttest import assert_expected_inline
from torch._subclasses import FakeTensorMode

import masked_tensor as mt

NAN = float("nan")


def test_one_dimension() -> None:
    x = mt.masked_tensor(torch.arange(5.0), torch.tensor([True, True, False, True, False]))
    assert_expected_inline(repr(x), """masked_tensor([0.0000, 1.0000, --, 3.0000, --], valid=3/5)""")
    assert str(x) == repr(x)


def test_columns_line_up() -> None:
    x = mt.masked_tensor([[1.5, None, 3], [None, -1000.25, 0]])
    assert_expected_inline(
        repr(x),
        """\
masked_tensor([[    1.5000,         --,     3.0000],
               [        --, -1000.2500,     0.0000]], valid=4/6)""",
    )


def test_other_dtypes() -> None:
    def show(dtype: torch.dtype) -> str:
        return repr(mt.masked_tensor(torch.tensor([1, 2, 30]).to(dtype), [True, False, True]))

    assert_expected_inline(show(torch.int64), """masked_tensor([ 1, --, 30], valid=2/3)""")
    assert_expected_inline(show(torch.uint8), """masked_tensor([ 1, --, 30], valid=2/3, dtype=torch.uint8)""")
    assert_expected_inline(show(torch.bool), """masked_tensor([True, --, True], valid=2/3)""")
    assert_expected_inline(
        show(torch.bfloat16), """masked_tensor([ 1.0000, --, 30.0000], valid=2/3, dtype=torch.bfloat16)"""
    )
    assert_expected_inline(
        show(torch.complex64),
        """masked_tensor([ 1.0000+0.0000j, --, 30.0000+0.0000j], valid=2/3, dtype=torch.complex64)""",
    )


def test_nan_is_a_value() -> None:
    x = mt.masked_tensor([1.0, NAN, float("inf")], [True, True, False])
    assert_expected_inline(repr(x), """masked_tensor([1.0000,    nan, --], valid=2/3)""")


def test_scalars_and_empty() -> None:
    assert_expected_inline(repr(mt.masked_tensor(2.5)), """masked_tensor(2.5000, valid=1/1)""")
    assert_expected_inline(repr(mt.masked_tensor(2.5, False)), """masked_tensor(--, valid=0/1)""")
    assert_expected_inline(
        repr(mt.masked_tensor(torch.ones(0, 3))),
        """masked_tensor([], size=(0, 3), valid=0/0, dtype=torch.float32)""",
    )
    assert_expected_inline(repr(mt.masked_tensor([1.0, 2.0], False)), """masked_tensor([--, --], valid=0/2)""")


def test_gradients_and_parameters() -> None:
    x = mt.masked_tensor([1.0, 2.0], [True, False], requires_grad=True)
    assert_expected_inline(repr(x), """masked_tensor([1.0000, --], valid=1/2, requires_grad=True)""")
    assert_expected_inline(repr(x * 2), """masked_tensor([2.0000, --], valid=1/2, grad_fn=<_LeaveBackward>)""")
    assert_expected_inline(
        repr(torch.nn.Parameter(x.detach())),
        """\
Parameter containing:
masked_tensor([1.0000, --], valid=1/2, requires_grad=True)""",
    )


def test_long_tensors_are_summarised_as_torch_does() -> None:
    x = mt.masked_tensor(torch.arange(2000.0), torch.arange(2000) % 2 == 0)
    assert_expected_inline(
        repr(x),
        """\
masked_tensor([   0.0000, --,    2.0000, ..., --, 1998.0000,
               --], valid=1000/2000)""",
    )
    shown = repr(mt.masked_tensor(torch.ones(100, 100), torch.ones(100, 1, dtype=torch.bool)))
    assert len(shown.splitlines()) == 7


def test_print_options_are_torchs() -> None:
    x = mt.masked_tensor([1.23456, None, 3.0])
    torch.set_printoptions(precision=2)
    try:
        assert_expected_inline(repr(x), """masked_tensor([1.23, --, 3.00], valid=2/3)""")
        torch.set_printoptions(precision=4, linewidth=40)
        assert_expected_inline(
            repr(mt.masked_tensor([1.5, None, 3.0, 4.0, 5.0])),
            """\
masked_tensor([1.5000, --, 3.0000,
               4.0000, 5.0000], valid=4/5)""",
        )
    finally:
        torch.set_printoptions(profile="default")


@pytest.mark.parametrize("payload", [NAN, float("inf"), 1e30, -1e-30])
def test_the_payload_does_not_show(payload: float) -> None:
    mask = torch.tensor([[True, False], [False, True]])
    data = torch.tensor([[1.5, 0.0], [0.0, 20.0]])
    clean = mt.as_masked_tensor(data, mask)
    dirty = mt.as_masked_tensor(torch.where(mask, data, payload), mask)
    assert repr(clean) == repr(dirty)
    assert clean._repr_html_() == dirty._repr_html_()


def test_no_value_is_read_where_there_is_none() -> None:
    mask = torch.ones(2, dtype=torch.bool)
    x = mt.masked_tensor(torch.ones(2, device="meta"), mask.to("meta"))
    assert_expected_inline(repr(x), """masked_tensor(..., size=(2,), dtype=torch.float32, device='meta')""")
    with FakeTensorMode():
        assert "..." in repr(mt.as_masked_tensor(torch.ones(2), torch.ones(2, dtype=torch.bool)))


def test_html() -> None:
    x = mt.masked_tensor([[1.0, None]])
    assert_expected_inline(
        x._repr_html_(),
        """<table><tr><td>1.0000</td><td>--</td></tr><caption>masked_tensor valid=1/2</caption></table>""",
    )
    assert_expected_inline(mt.masked_tensor(1.0)._repr_html_(), """<pre>masked_tensor(1.0000, valid=1/1)</pre>""")

"""What a masked tensor looks like: example tests, because looks are what is tested."""

import re

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
    assert_expected_inline(repr(x * 2), """masked_tensor([2.0000, --], valid=1/2, grad_fn=<MaskedBackward>)""")
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
def test_the_masked_out_data_does_not_show(payload: float) -> None:
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


def cells(x: mt.MaskedTensor) -> list[list[tuple[str, bool]]]:
    """The tables of a notebook: text and whether it is shaded, row by row."""
    rows = re.findall(r"<tr>(.*?)</tr>", x._repr_html_())
    cell = re.compile(r'<td style="(.*?)">(.*?)</td>')
    return [[(text, "background" in style) for style, text in cell.findall(row)] for row in rows]


def test_html_of_every_shape() -> None:
    one = ("1.0000", False)
    masked = ("--", True)
    assert cells(mt.masked_tensor([[1.0, None]])) == [[one, masked]]
    assert cells(mt.masked_tensor(1.0)) == [[one]]
    assert cells(mt.masked_tensor([1.0, None, 1.0])) == [[one, masked, one]]
    deep = mt.masked_tensor([[[1.0, None]], [[None, 1.0]]])
    assert cells(deep) == [[one, masked], [masked, one]]
    assert "[1, :, :]" in deep._repr_html_()
    assert "masked_tensor shape=(2, 1, 2), valid=2/4, dtype=torch.float32" in deep._repr_html_()
    assert mt.masked_tensor(torch.ones(0, 2))._repr_html_().startswith("<pre>")
    assert "<script" not in mt.masked_tensor([1.0])._repr_html_()


def test_html_of_large_tensors_is_cut_to_the_edges() -> None:
    x = mt.masked_tensor(torch.arange(400.0).view(20, 20), torch.eye(20).bool())
    shown = cells(x)
    assert len(shown) == 7
    assert [len(row) for row in shown] == [7, 7, 7, 1, 7, 7, 7]
    assert shown[-1][-1] == ("399.0000", False)
    assert len(cells(mt.masked_tensor(torch.ones(50, 2, 2)))) == 6 * 2
    assert len(mt.masked_tensor(torch.ones(50, 50, 50, 50))._repr_html_()) < 200_000


def test_pictures_of_what_is_missing() -> None:
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    plt = pytest.importorskip("matplotlib.pyplot")
    axes = plt.subplots()[1]
    x = mt.masked_tensor([[1.0, None], [3.0, 4.0], [None, None]])
    assert mt.plot.missing(x, ["age", "weight"], ax=axes) is axes
    assert axes.get_images()[0].get_array().tolist() == [[0.0, 1.0], [0.0, 0.0], [1.0, 1.0]]
    assert axes.get_xlabel() == "valid: 3 of 6"
    assert [label.get_text() for label in axes.get_xticklabels()] == ["age", "weight"]
    sorted_ = mt.plot.missing(x, sort="descending", ax=plt.subplots()[1])
    assert sorted_.get_images()[0].get_array().tolist() == [[0.0, 0.0], [0.0, 1.0], [1.0, 1.0]]
    batch = mt.from_lengths(torch.ones(2, 4, 3), [3, 1], dim=2)
    drawn = mt.plot.missing(batch, dim=2, completeness=False, ax=plt.subplots()[1])
    assert drawn.get_images()[0].get_array().tolist() == [[0.0] * 3, [0.0, 1.0, 1.0]]
    plt.close("all")
    assert not hasattr(mt, "plots")


def test_pictures_of_distributions() -> None:
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    plt = pytest.importorskip("matplotlib.pyplot")
    x = mt.masked_tensor([[1.0, None, None], [1.0, NAN, None], [None, 4.0, None], [3.0, None, None]])
    axes = mt.plot.distributions(x, ["age", "weight", "dose"], bins=2)
    assert [a.get_title() for a in axes] == ["age", "weight", "dose"]
    assert [a.get_xlabel() for a in axes] == ["25 % masked", "50 % masked, 1 not finite", "100 % masked"]
    assert [[bar.get_height() for bar in a.patches] for a in axes] == [[2, 1], [0, 1], []]
    batch = mt.from_sequences([torch.randn(3, 5), torch.randn(1, 5)], packed=True)
    assert [a.get_xlabel() for a in mt.plot.distributions(batch)] == ["33 % masked"] * 5
    given = plt.subplots(1, 3)[1]
    for y in (x.to_sparse(), x.filled(0) * x, x.T.bool().int().T, x.bfloat16().requires_grad_()):
        assert mt.plot.distributions(y, axes=given) == list(given)
    assert [a.get_title() for a in mt.plot.distributions(batch, dim=0)] == ["0", "1"]
    assert len(mt.plot.distributions(mt.masked_tensor(torch.ones(0, 2)))) == 2
    plt.close("all")

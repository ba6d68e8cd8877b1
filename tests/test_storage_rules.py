"""What a sparse masked tensor does follows from the entry of the op alone, never from a name."""

import types

import pytest
import torch

import masked_tensor as mt
from masked_tensor.sparse.rules import on_values


@pytest.fixture(scope="module")
def library() -> torch.library.Library:
    library = torch.library.Library("test_rows", "DEF")
    library.define("mean(Tensor x) -> Tensor")
    library.define("centre(Tensor x) -> Tensor")
    library.define("twice(Tensor x) -> Tensor")
    for name in ("mean", "centre", "twice"):
        library.impl(name, lambda x: x * 2, "CompositeExplicitAutograd")
    return library


def test_a_rule_is_not_replaced_because_of_its_name(library: torch.library.Library) -> None:
    mt.extend.register_rule("test_rows::mean")(lambda x: mt.extend.Pair(x.data * 100, x.mask))
    x = mt.masked_tensor([1.0, 3.0])
    assert torch.ops.test_rows.mean(x).tolist() == [100, 300]
    with pytest.raises(mt.UnsupportedOpError, match="to_dense"):
        torch.ops.test_rows.mean(x.to_sparse())


def test_a_rule_is_not_elementwise_because_of_its_file(library: torch.library.Library) -> None:
    loss = types.ModuleType("loss")
    exec("def centre(x):\n    return Pair(x.data - x.data.mean(-1, keepdim=True), x.mask)", loss.__dict__)
    loss.Pair = mt.extend.Pair
    mt.extend.register_rule("test_rows::centre")(loss.centre)
    x = mt.masked_tensor([[1.0, 3.0], [0.0, 20.0]])
    assert torch.ops.test_rows.centre(x).tolist() == [[-1, 1], [-10, 10]]
    with pytest.raises(mt.UnsupportedOpError, match="to_dense"):
        torch.ops.test_rows.centre(x.to_sparse())


def test_a_user_names_the_lift(library: torch.library.Library) -> None:
    mt.extend.register_rule("test_rows::twice", sparse=on_values)(lambda x: mt.extend.Pair(x.data * 2, x.mask))
    x = mt.masked_tensor([1.0, None, 3.0]).to_sparse()
    assert torch.ops.test_rows.twice(x).to_dense().tolist() == [2, None, 6]
    assert "sparse  on values" in mt.explain("test_rows::twice")


def test_multinomial_and_dropped_features_are_not_elementwise() -> None:
    x = mt.masked_tensor([[0.5, 0.5, None], [1.0, None, 2.0]]).to_sparse()
    for call in (lambda: torch.multinomial(x, 2), lambda: torch.feature_dropout(x, 0.5, True)):
        with pytest.raises(mt.UnsupportedOpError, match="to_dense"):
            call()


def test_norms_take_a_dtype() -> None:
    x = mt.masked_tensor([3.0, None, 4.0]).to_sparse()
    for result in (torch.linalg.vector_norm(x, dtype=torch.float64), torch.norm(x, 2, dtype=torch.float64)):
        assert result.dtype is torch.float64
        assert result.item() == 5


def test_two_sparse_operands_of_max() -> None:
    x, y = mt.masked_tensor([1.0, None, 3.0]).to_sparse(), mt.masked_tensor([2.0, None, 1.0]).to_sparse()
    assert torch.max(x, y).to_dense().tolist() == [2, None, 3]

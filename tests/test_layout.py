"""Conversions between layouts keep validity."""

import pytest
import torch

from masked_tensor import MaskedTensor
from masked_tensor.engine.tensor import pair_of

from .helpers.sparse_cases import CONVERT
from .test_sparse import dense, same


@pytest.mark.parametrize("layout", CONVERT)
def test_conversions_keep_validity_both_ways(layout: str) -> None:
    x = CONVERT[layout](dense())
    assert type(x) is MaskedTensor
    assert x.layout is not torch.strided
    pair = pair_of(x)
    assert pair.data.layout is x.layout
    assert pair.mask.layout is x.layout
    same(x.to_dense(), dense())
    for other in CONVERT:
        again = CONVERT[other](x)
        assert again.layout is CONVERT[other](dense()).layout
        same(again, dense())


def test_valid_zeros_are_stored() -> None:
    x = dense().to_sparse()
    assert x._nnz() == 5
    assert 0.0 in pair_of(x).data.values().tolist()

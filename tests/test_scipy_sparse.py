"""Sparse matrices of scipy: what they store is valid, in the layout that they have; for statistics the rest is 0."""

from typing import Any

import numpy as np
import pytest
import torch
from scipy import sparse

import masked_tensor as mt

LAYOUTS = {
    "coo": torch.sparse_coo,
    "csr": torch.sparse_csr,
    "csc": torch.sparse_csc,
    "bsr": torch.sparse_bsr,
    "lil": torch.sparse_csr,
    "dok": torch.sparse_csr,
    "dia": torch.sparse_csr,
}


def dense(dtype: str = "float64") -> Any:
    generator = np.random.default_rng(0)
    return (generator.integers(1, 9, (4, 6)) * (generator.random((4, 6)) < 0.5)).astype(dtype)


@pytest.mark.parametrize("kind", ["array", "matrix"])
@pytest.mark.parametrize("form", LAYOUTS)
def test_what_is_stored_is_valid(form: str, kind: str) -> None:
    for dtype in ("float64", "float32", "int64", "complex128"):
        data = dense(dtype)
        matrix = getattr(sparse, f"{form}_{kind}")(data)
        x = mt.masked_tensor(matrix)
        assert (x.layout, x.dtype, tuple(x.shape)) == (LAYOUTS[form], torch.tensor(data).dtype, data.shape)
        assert torch.equal(x.to_dense().mask, torch.tensor(data != 0))
        assert torch.equal(x.to_dense().filled(0), torch.tensor(data))


def test_it_is_a_copy_and_what_is_stored_twice_is_added_up() -> None:
    twice = sparse.coo_array((np.array([1.0, 2.0, 3.0]), (np.array([0, 0, 1]), np.array([1, 1, 0]))), shape=(2, 2))
    for matrix in (twice, twice.tocsr(), twice.tocsc()):
        x = mt.masked_tensor(matrix)
        matrix.data[:] = 9
        assert x.to_dense().tolist() == [[None, 3.0], [3.0, None]]
    assert twice.nnz == 3
    unsorted = sparse.csr_array((np.array([1.0, 2.0]), np.array([1, 0]), np.array([0, 2, 2])), shape=(2, 2))
    assert mt.masked_tensor(unsorted).to_dense().tolist() == [[2.0, 1.0], [None, None]]
    assert unsorted.indices.tolist() == [1, 0]
    zero = sparse.coo_array((np.array([0.0, 5.0]), (np.array([0, 1]), np.array([0, 0]))), shape=(2, 1))
    assert mt.masked_tensor(zero).to_dense().tolist() == [[0.0], [5.0]]  # a stored 0 is a value
    assert mt.masked_tensor(sparse.coo_array(np.array([0.0, 4.0]))).to_dense().tolist() == [None, 4.0]
    assert mt.masked_tensor(sparse.csr_array((0, 3))).shape == (0, 3)


@pytest.mark.parametrize("form", LAYOUTS)
def test_means_are_those_of_what_is_stored(form: str) -> None:
    data = dense()
    x = mt.masked_tensor(getattr(sparse, f"{form}_array")(data))
    wanted = np.ma.masked_equal(data, 0).mean(0)
    assert mt.mean(x, 0).to_dense().tolist() == pytest.approx(wanted.tolist())


@pytest.mark.parametrize("form", LAYOUTS)
def test_statistics_take_the_rest_for_0_as_of_a_sparse_tensor(form: str) -> None:
    data = dense()
    stats = mt.RunningStatistics(6).update(getattr(sparse, f"{form}_array")(data))
    assert stats.count.tolist() == [4.0] * 6
    assert stats.mean.tolist() == pytest.approx(data.mean(0).tolist())
    assert stats.std.tolist() == pytest.approx(data.std(0, ddof=1).tolist())
    stored = mt.RunningStatistics(6).update(mt.masked_tensor(getattr(sparse, f"{form}_array")(data)))
    assert stored.count.tolist() == (data != 0).sum(0).tolist()

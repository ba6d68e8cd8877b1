"""Decompositions: whole matrices, and those of a set of which members are missing."""

import functools

import pytest
import torch

import masked_tensor as mt
from masked_tensor.engine.tensor import pair_of

from .helpers import harness
from .helpers.database import Sample
from .helpers.harness import Masked
from .laws import laws
from .oracles.linalg import ORACLES, eigh, of_set, of_whole

test_law = laws("linalg")

MEMBERS = torch.tensor([[1, 1, 1, 1], [1, 1, 1, 0], [1, 0, 1, 1], [0, 1, 0, 0], [0, 0, 0, 0], [1, 1, 1, 1]]).bool()
LOWER = torch.tensor([False, False, False, False, False, True])  # and one with a masked entry above the diagonal


def padded(dtype: torch.dtype = torch.float64) -> Masked:
    """Symmetric positive definite matrices of sets, and one with a masked entry."""
    torch.manual_seed(0)
    x = torch.randn(6, 4, 4, dtype=dtype)
    mask = MEMBERS.unsqueeze(-1) & MEMBERS.unsqueeze(-2)
    mask[5, 0, 3] = False
    return Masked(x @ x.mT + 4 * torch.eye(4, dtype=dtype), mask)


def symmetric(op):
    """The op of what is read of a symmetric matrix, so that gradcheck may move one entry at a time."""
    return lambda x: op((x + x.mT) / 2)


SETS = {
    "cholesky": (torch.linalg.cholesky, of_set("M")),
    "cholesky upper": (lambda x: torch.linalg.cholesky(x, upper=True), of_set("M")),
    "cholesky_ex": (torch.linalg.cholesky_ex, of_set("ME")),
    "cholesky_inverse": (torch.cholesky_inverse, of_set("M")),
    "inv": (torch.linalg.inv, of_set("M")),
    "det": (torch.linalg.det, of_set("E")),
    "slogdet": (torch.linalg.slogdet, of_set("EE")),
    "logdet": (torch.logdet, of_set("E")),
    "lu_factor": (torch.linalg.lu_factor, of_set("MP")),
    "lu": (torch.linalg.lu, of_set("MMM")),
    "lu_unpack": (lambda x: torch.lu_unpack(*torch.linalg.lu_factor(x)), of_set("MMM")),
    "matrix_exp": (lambda x: torch.linalg.matrix_exp(x / 9), of_set("M")),
    "matrix_power": (lambda x: torch.linalg.matrix_power(x, -2), of_set("M")),
    "eigvalsh": (torch.linalg.eigvalsh, eigh),
    "eigvalsh upper": (lambda x: torch.linalg.eigvalsh(x, "U"), eigh),
    "svdvals": (torch.linalg.svdvals, of_whole(2)),
    "qr": (lambda x: torch.linalg.qr(x), of_whole(2)),
    "pinv": (torch.linalg.pinv, of_whole(2)),
}


@pytest.mark.parametrize("name", SETS)
def test_sets_with_members_missing(name: str) -> None:
    op, oracle = SETS[name]
    case = Sample(op, (padded(),))
    harness.check_value(case, oracle)
    harness.check_garbage(case)
    harness.check_gradient(Sample(symmetric(op), (padded(),)))


def test_rank_of_a_set_with_members_missing() -> None:
    for hermitian in (False, True):
        case = Sample(lambda x, hermitian=hermitian: torch.linalg.matrix_rank(x, hermitian=hermitian), (padded(),))
        harness.check_value(case, of_set("E"))
        harness.check_garbage(case)


@pytest.mark.parametrize("n", range(-2, 6))
def test_a_power_is_the_product_of_its_factors(n: int) -> None:
    """Also with masked entries anywhere, where the product has what its terms have."""
    full = mt.masked_tensor(torch.eye(3) + torch.arange(9.0).view(3, 3) / 9, torch.ones(3, 3, dtype=torch.bool))
    holed = mt.masked_tensor(full.get_data(), torch.tensor([[True, False, True], [True, True, False], [False] * 3]))
    for x in (full, holed):
        factor = torch.linalg.inv(x) if n < 0 else x
        expected = functools.reduce(torch.matmul, [factor] * abs(n)) if n else mt.masked_tensor(torch.eye(3))
        torch.testing.assert_close(torch.linalg.matrix_power(x, n), expected)


def test_eigenvectors_of_a_set() -> None:
    """Members by eigenvalues; they rebuild the matrix, and a function of them has the gradient of its members."""

    def rebuilt(x):
        values, vectors = torch.linalg.eigh(x)
        return (vectors * values.unsqueeze(-2)) @ vectors.mT

    case = Sample(rebuilt, (padded(),))
    expected = padded()
    sets = expected.mask & (torch.arange(6) < 5)[:, None, None]
    harness.check_value(case, lambda op, x: Masked(x.data, sets))
    harness.check_garbage(case)
    harness.check_gradient(Sample(symmetric(lambda x: torch.linalg.eigh(x)[1].square()), (padded(),)))


def test_padding_that_cannot_vary_stays_compact() -> None:
    x = mt.as_masked_tensor(torch.eye(3).repeat(2, 1, 1), torch.tensor([True, False])[:, None, None])
    for y in (torch.linalg.inv(x), torch.linalg.cholesky(x), torch.linalg.svdvals(x)):
        assert set(pair_of(y).mask.stride()[1:]) == {0}
    assert torch.linalg.det(x).tolist() == [1, None]


def test_what_is_singular_raises_only_where_it_is_valid() -> None:
    x = mt.as_masked_tensor(torch.zeros(2, 2, 2), torch.tensor([True, False])[:, None, None])
    with pytest.raises(RuntimeError, match="singular"):
        torch.linalg.inv(x)
    x[0] = torch.eye(2)
    assert torch.linalg.inv(x)[0].tolist() == [[1, 0], [0, 1]]


@pytest.mark.parametrize(
    "call",
    [
        lambda x: torch.linalg.cholesky(x[0, 0]),
        lambda x: torch.linalg.inv(x[:, :3]),
        lambda x: torch.linalg.eigh(x[0, 0]),
        lambda x: torch.linalg.eigvalsh(x[:, :2]),
        lambda x: torch.linalg.svd(x[0, 0]),
    ],
)
def test_torchs_own_errors(call) -> None:
    case = padded()
    with pytest.raises(RuntimeError) as plain:
        call(case.data)
    with pytest.raises(RuntimeError, match=r"linalg\.") as masked:
        call(harness.build(case))
    assert str(masked.value) == str(plain.value)


@pytest.mark.parametrize("dtype", [torch.float32, torch.complex128])
def test_other_dtypes(dtype: torch.dtype) -> None:
    case = padded(dtype)
    for name, op in (("linalg.inv", torch.linalg.inv), ("linalg.det", torch.linalg.det), ("linalg.svd", torch.svd)):
        harness.check_value(Sample(op, (case,)), ORACLES[name])

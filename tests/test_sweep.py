"""Every entry of torch's operator database is covered, refused with the documented error, or listed with its reason."""

import pytest

from . import database
from .oracles import ORACLES
from .sweep import SKIPPED, judge

# No honest masked meaning: every result depends on every entry, holes included.
REFUSED = {
    "Fourier transforms": {name for name in database.ENTRIES if name.startswith("fft.") and "shift" not in name}
    | {"stft", "istft"},
    "solvers and decompositions": {
        *("cholesky", "cholesky_inverse", "cholesky_solve", "geqrf", "lu", "lu_solve", "lu_unpack", "matrix_exp"),
        *("ormqr", "qr", "triangular_solve", "svd", "svd_lowrank", "pca_lowrank", "pinverse", "logdet", "norm.nuc"),
        *("linalg.det", "linalg.cholesky", "linalg.cholesky_ex", "linalg.cond", "linalg.eig", "linalg.eigvals"),
        *("linalg.eigh", "linalg.eigvalsh", "linalg.householder_product", "linalg.ldl_factor", "linalg.ldl_factor_ex"),
        *("linalg.ldl_solve", "linalg.lstsq", "linalg.lstsq.grad_oriented", "linalg.qr"),
        *("linalg.norm.subgradients_at_zero", "linalg.slogdet", "linalg.lu_factor", "linalg.lu_factor_ex", "linalg.lu"),
        *("linalg.lu_solve", "linalg.inv", "linalg.inv_ex", "linalg.solve", "linalg.solve_ex", "linalg.pinv"),
        *("linalg.solve_triangular", "linalg.matrix_rank", "linalg.matrix_rank.hermitian", "linalg.pinv.singular"),
        *("linalg.pinv.hermitian", "linalg.svd", "linalg.svdvals", "linalg.tensorinv", "linalg.tensorsolve"),
    },
    "a hash of the bytes": {"hash_tensor"},
    "torch's own internals": {
        *("sparse.sampled_addmm", "sparse.mm.reduce"),
    },
}
REASONS = {name: reason for reason, names in REFUSED.items() for name in names}


@pytest.mark.parametrize("name", sorted(set(database.ENTRIES) - set(ORACLES) - set(SKIPPED)))
@pytest.mark.filterwarnings("ignore")  # the database's samples make torch itself warn
def test_entry(name: str) -> None:
    verdict = judge(name, limit=3)
    expected = "refused" if name in REASONS else "passes"
    assert verdict.outcome in (expected, "skipped"), f"{verdict.outcome}: {verdict.detail}"

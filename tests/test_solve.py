"""Linear systems: columns by themselves, and the system of the members of a set."""

from collections.abc import Callable
from typing import Any

import pytest
import torch

import masked_tensor as mt

from .helpers import harness
from .helpers.database import Sample
from .helpers.harness import Masked
from .laws import laws
from .oracles.solve import solver
from .test_linalg import MEMBERS, padded

test_law = laws("solve")


def right(shape: tuple[int, ...], partly: bool = True) -> Masked:
    """A right-hand side that is valid for members; one entry of theirs is masked."""
    torch.manual_seed(1)
    mask = torch.ones(shape, dtype=torch.bool)
    if len(shape) == 3 and shape[1] == 4:
        mask = MEMBERS.unsqueeze(-1).expand(shape).clone()
    if partly:
        mask[0, 0] = False
        mask[1, -1] = False
    return Masked(torch.randn(shape, dtype=torch.float64), mask)


def lower(a: Masked) -> Masked:
    return Masked(a.data.tril(), a.mask)


A = padded()
SYSTEMS = {
    "solve": (torch.linalg.solve, "AB", (A, right((6, 4, 3))), {}),
    "solve plain side": (torch.linalg.solve, "AB", (A, right((6, 4, 3), False).data), {}),
    "solve plain matrix": (torch.linalg.solve, "AB", (A.data[0], right((6, 4, 3))), {}),
    "solve from the right": (torch.linalg.solve, "AB", (A, right((6, 3, 4))), {"left": False}),
    "solve vectors": (torch.linalg.solve, "AB", (A, Masked(right((6, 4)).data, MEMBERS)), {}),
    "solve_ex": (torch.linalg.solve_ex, "AB", (A, right((6, 4, 3))), {}),
    "solve_triangular": (torch.linalg.solve_triangular, "AB", (lower(A), right((6, 4, 3))), {"upper": False}),
    "solve_triangular from the right": (
        torch.linalg.solve_triangular,
        "AB",
        (A, right((6, 3, 4))),
        {"upper": True, "left": False, "unitriangular": True},
    ),
    "cholesky_solve": (torch.cholesky_solve, "BA", (right((6, 4, 3)), lower(A)), {}),
    "triangular_solve": (torch.triangular_solve, "BA", (right((6, 4, 3)), A), {"upper": False}),
}


@pytest.mark.filterwarnings("ignore:torch.triangular_solve is deprecated")
@pytest.mark.parametrize("name", SYSTEMS)
def test_systems_with_members_missing(name: str) -> None:
    op, order, args, kwargs = SYSTEMS[name]
    case = Sample(op, args, kwargs)
    harness.check_value(case, solver(order, {"solve_ex": "E", "triangular_solve": "M"}.get(name, "")))
    harness.check_garbage(case)
    if name != "cholesky_solve":
        harness.check_gradient(case)


def test_factors_solve_what_the_matrix_does() -> None:
    side = right((6, 4, 3))

    def by_factors(a, b):
        return torch.linalg.lu_solve(*torch.linalg.lu_factor(a), b)

    case = Sample(by_factors, (A, side))
    harness.check_value(case, lambda op, a, b: solver("AB")(torch.linalg.solve, a, b))
    harness.check_garbage(case)
    older = Sample(lambda a, b: torch.lu_solve(b, *torch.linalg.lu_factor(a)), (A, side))
    harness.check_value(older, lambda op, a, b: solver("AB")(torch.linalg.solve, a, b))


@pytest.mark.parametrize("by_columns", [False, True])
@pytest.mark.parametrize("name", ["solve", "solve_triangular", "cholesky_solve", "inv", "lu_factor"])
def test_a_whole_matrix_gives_the_bits_that_torch_gives(name: str, by_columns: bool) -> None:
    """The kernels round by how a matrix lies in memory, by much where it is almost singular."""
    at, to = torch.linspace(0, 1, 16)[:, None], torch.linspace(0, 1, 128)[:, None]
    kernel = torch.exp(-((at - at.T) ** 2)) + 1e-4 * torch.eye(16)
    matrix, given = torch.linalg.cholesky(kernel), torch.exp(-((at - to.T) ** 2))
    matrix = matrix.mT.contiguous().mT if by_columns else matrix.contiguous()
    calls: dict[str, Callable[[Any], Any]] = {
        "solve": lambda m: torch.linalg.solve(m, given),
        "solve_triangular": lambda m: torch.linalg.solve_triangular(m, given, upper=False),
        "cholesky_solve": lambda m: torch.cholesky_solve(given, m),
        "inv": torch.linalg.inv,
        "lu_factor": lambda m: torch.linalg.lu_factor(m)[0],
    }
    found = calls[name](mt.as_masked_tensor(matrix, torch.ones(16, 16, dtype=torch.bool)))
    assert torch.equal(found.filled(0), calls[name](matrix))


def test_a_gaussian_process_over_padded_sets() -> None:
    """The log marginal likelihood of each set, and its gradient, as of the set alone."""
    torch.manual_seed(0)
    sizes = (5, 3, 4)
    points = [torch.randn(n, 2, dtype=torch.float64) for n in sizes]
    scale = torch.tensor(0.7, dtype=torch.float64, requires_grad=True)

    def likelihood(x, y):
        kernel = torch.exp(-(x.unsqueeze(-2) - x.unsqueeze(-3)).square().sum(-1) / scale) + 0.1 * torch.eye(x.shape[-2])
        factor = torch.linalg.cholesky(kernel)
        z = torch.linalg.solve_triangular(factor, y.unsqueeze(-1), upper=False).squeeze(-1)
        return -0.5 * z.square().sum(-1) - factor.diagonal(dim1=-2, dim2=-1).log().sum(-1)

    mask = torch.arange(5) < torch.tensor(sizes)[:, None]
    data = torch.full((3, 5, 2), torch.nan, dtype=torch.float64)
    for i, p in enumerate(points):
        data[i, : len(p)] = p
    x = harness.mt.as_masked_tensor(data, mask.unsqueeze(-1))
    total = likelihood(x, x.sum(-1))
    total.sum().backward()
    grad, scale.grad = scale.grad, None
    alone = torch.stack([likelihood(p, p.sum(-1)) for p in points])
    alone.sum().backward()
    torch.testing.assert_close(total.filled(0), alone.detach(), check_dtype=False)
    torch.testing.assert_close(grad, scale.grad)

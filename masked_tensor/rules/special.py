"""Special functions: elementwise, so a result is valid where every masked operand is valid.

Gamma, Bessel and error functions and orthogonal polynomials.  Their derivatives depend on the argument, so gradients
are guarded.
"""

from typing import Any

import torch

from ..op import Op
from ..packing.kinds import elementwise as as_values
from ..pair import Pair
from ..sparse.rules import on_values
from .pointwise import always_keeps_zero, elementwise_ops, guard_operands, run_elementwise, zeroed_ops


def polygamma(n: Any, x: Any) -> Any:
    """``polygamma(n, x)``; only the in-place variant accepts its arguments in the reverse order."""
    n, x = (x, n) if type(n) is Pair else (n, x)
    return run_elementwise(torch.ops.aten.polygamma.default, n, x)


def vander(x: Pair, N: int | None = None, increasing: bool = False) -> Pair:
    """``torch.vander``: a row of powers for each entry; a masked entry to the power 0 is 1, as in ``linalg.vander``."""
    made = torch.vander(x.data.detach(), N, increasing)  # torch's checks and dtype; it has no derivative
    powers = torch.linalg.vander(guard_operands([x.data.to(made.dtype)], x.mask)[0], N=max(made.shape[1], 2))
    mask = x.mask.unsqueeze(-1) | (torch.arange(powers.shape[1], device=x.mask.device) == 0)
    data, mask = (v[:, : made.shape[1]] for v in (powers, mask))
    return Pair(data, mask) if increasing else Pair(data.flip(1), mask.flip(1))


OPS = [
    *elementwise_ops("erfinv special_i1 special_i1e", keeps_zero=always_keeps_zero),
    *elementwise_ops("erfc digamma lgamma mvlgamma igamma igammac i0 sinc logit"),
    Op("vander", vander),
    Op("polygamma", polygamma, sparse=on_values, packed=as_values),
    *elementwise_ops(
        "special_entr special_erfcx special_log_ndtr special_ndtri special_xlog1py special_zeta special_airy_ai"
    ),
    *elementwise_ops("special_i0e special_bessel_j0 special_bessel_j1 special_bessel_y0 special_bessel_y1"),
    *elementwise_ops("special_modified_bessel_i0 special_modified_bessel_i1 special_modified_bessel_k0"),
    *elementwise_ops("special_modified_bessel_k1 special_scaled_modified_bessel_k0 special_scaled_modified_bessel_k1"),
    *elementwise_ops("special_spherical_bessel_j0"),
    *zeroed_ops("special_hermite_polynomial_h special_hermite_polynomial_he special_laguerre_polynomial_l"),
    *zeroed_ops("special_chebyshev_polynomial_t special_chebyshev_polynomial_u special_chebyshev_polynomial_v"),
    *zeroed_ops("special_chebyshev_polynomial_w special_shifted_chebyshev_polynomial_t"),
    *zeroed_ops("special_shifted_chebyshev_polynomial_u special_shifted_chebyshev_polynomial_v"),
    *zeroed_ops("special_shifted_chebyshev_polynomial_w special_legendre_polynomial_p"),
]

"""torchcde: paths through padded series."""

from ._case import Case, load, ragged

STEPS = ragged((None, 3))
SPLINE = "fits a spline over all times of the batch; write `[torchcde.natural_cubic_coeffs(row) for row in x.unpad()]`"
LIBRARY = "torchcde"
CASES = [
    Case("linear_interpolation_coeffs", lambda: load("torchcde").linear_interpolation_coeffs, STEPS),
    Case("hermite_cubic_coefficients", lambda: load("torchcde").hermite_cubic_coefficients_with_backward_differences,
         STEPS, "declared", SPLINE),
    Case("natural_cubic_coeffs", lambda: load("torchcde").natural_cubic_coeffs, STEPS, "declared", SPLINE),
]  # fmt: skip

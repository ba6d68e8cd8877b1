"""gpytorch: kernels of padded sets of points, means, and a marginal likelihood."""

from ._case import Case, load, ragged

POINTS = ragged((None, 2))
LIBRARY = "gpytorch"


def kernel(name, **options):
    return lambda: getattr(load("gpytorch.kernels"), name)(**options)


def matrix(model, x):
    return model(x).to_dense()


CASES = [
    Case("RBFKernel", kernel("RBFKernel"), POINTS, call=matrix),
    Case("RBFKernel (ARD)", kernel("RBFKernel", ard_num_dims=2), POINTS, call=matrix),
    Case("MaternKernel (0.5)", kernel("MaternKernel", nu=0.5), POINTS, call=matrix),
    Case("MaternKernel (2.5)", kernel("MaternKernel", nu=2.5), POINTS, call=matrix),
    Case("LinearKernel", kernel("LinearKernel"), POINTS, call=matrix),
    Case("PolynomialKernel", kernel("PolynomialKernel", power=2), POINTS, call=matrix),
    Case("PeriodicKernel", kernel("PeriodicKernel"), POINTS, call=matrix),
    Case("RQKernel", kernel("RQKernel"), POINTS, call=matrix),
    Case("CosineKernel", kernel("CosineKernel"), POINTS, call=matrix),
    Case("ScaleKernel", lambda: load("gpytorch.kernels").ScaleKernel(load("gpytorch.kernels").RBFKernel()), POINTS,
         call=matrix),
    Case("PiecewisePolynomialKernel", kernel("PiecewisePolynomialKernel", q=2), POINTS, call=matrix),
    Case("ConstantMean", lambda: load("gpytorch.means").ConstantMean(), POINTS, "declared",
         "a constant of the shape of its input: `as_masked_tensor(y, x.get_mask()[..., 0])`"),
    Case("LinearMean", lambda: load("gpytorch.means").LinearMean(2), POINTS),
]  # fmt: skip

"""gpytorch: kernels of padded sets of points, means, and a marginal likelihood."""

import masked_tensor as mt

from ._case import Case, Input, load, plain, ragged

POINTS = ragged((None, 2))
MISSING = ragged(plain(Input((None, 2))), (None,))  # all x are there, and some y
LIBRARY = "gpytorch"


def kernel(name, **options):
    return lambda: getattr(load("gpytorch.kernels"), name)(**options)


def matrix(model, x):
    return model(x).to_dense()


class Process:
    """A Gaussian process with what it is trained with."""

    def __new__(cls):
        gpytorch = load("gpytorch")

        class Exact(gpytorch.models.ExactGP):
            def forward(self, x):
                return gpytorch.distributions.MultivariateNormal(self.mean(x), self.kernel(x))

        made = Exact(None, None, gpytorch.likelihoods.GaussianLikelihood())
        made.mean = gpytorch.means.ConstantMean()
        made.kernel = gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel())
        return made


def marginal(model, x, y):
    """The own likelihood of gpytorch."""
    model.train().set_train_data(x, y, strict=False)
    return load("gpytorch.mlls").ExactMarginalLogLikelihood(model.likelihood, model)(model(x), y)


def observed(model, x, y):
    """The same, of what was observed."""
    model.train().set_train_data(x, y, strict=False)
    n = y.count(-1) if mt.is_masked_tensor(y) else y.shape[-1]
    return mt.log_prob(model.likelihood(model(x)), y) / n


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
         "returns a constant in the shape of its input; write `as_masked_tensor(y, x.get_mask()[..., 0])`"),
    Case("LinearMean", lambda: load("gpytorch.means").LinearMean(2), POINTS),
    Case("ExactMarginalLogLikelihood (missing y)", Process, MISSING, "declared",
         "the likelihood is masked if some `y` are missing; that of the observed ones is "
         "`mt.log_prob(likelihood(model(x)), y) / y.count(-1)`", call=marginal),
    Case("ExactMarginalLogLikelihood (missing y, log_prob)", Process, MISSING, call=observed),
]  # fmt: skip

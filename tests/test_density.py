"""``log_prob``: the density of what is there, for every family of torch.distributions."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from torch import distributions as d

import masked_tensor as mt

NAN = float("nan")
ROWS, SIZE = 12, 4


def seeded() -> torch.Generator:
    return torch.Generator().manual_seed(0)


def randn(*shape: int) -> Tensor:
    return torch.randn(shape, generator=seeded(), dtype=torch.float64)


def positive(*shape: int) -> Tensor:
    return randn(*shape).abs() + 0.5


def square(size: int = SIZE) -> Tensor:
    root = randn(size, size)
    return root @ root.mT + torch.eye(size, dtype=torch.float64)


def patterns() -> Tensor:
    """The rows are valid as a whole, in no part, and in parts."""
    mask = torch.rand(ROWS, SIZE, generator=seeded()) > 0.4
    mask[0], mask[1] = True, False
    return mask


NUMBERS: dict[str, Callable[[Tensor], d.Distribution]] = {  # by a positive parameter
    "Bernoulli": lambda p: d.Bernoulli(p / (1 + p)),
    "Beta": lambda p: d.Beta(p, p + 1),
    "Binomial": lambda p: d.Binomial(5, p / (1 + p)),
    "Categorical": lambda p: d.Categorical(logits=torch.stack([p, p * 2, -p], -1)),
    "Cauchy": lambda p: d.Cauchy(p, p),
    "Chi2": d.Chi2,
    "ContinuousBernoulli": lambda p: d.ContinuousBernoulli(p / (3 + p)),
    "Exponential": d.Exponential,
    "FisherSnedecor": lambda p: d.FisherSnedecor(p, p + 3),
    "Gamma": lambda p: d.Gamma(p, p),
    "GeneralizedPareto": lambda p: d.GeneralizedPareto(p * 0, p, p),
    "Geometric": lambda p: d.Geometric(p / (1 + p)),
    "Gumbel": lambda p: d.Gumbel(p, p),
    "HalfCauchy": d.HalfCauchy,
    "HalfNormal": d.HalfNormal,
    "InverseGamma": lambda p: d.InverseGamma(p, p),
    "Kumaraswamy": lambda p: d.Kumaraswamy(p, p),
    "Laplace": lambda p: d.Laplace(p, p),
    "LogNormal": lambda p: d.LogNormal(p, p),
    "MixtureSameFamily": lambda p: d.MixtureSameFamily(
        d.Categorical(logits=torch.stack([p, -p], -1)), d.Normal(torch.stack([p, -p], -1), 1.0)
    ),
    "NegativeBinomial": lambda p: d.NegativeBinomial(p, p / (1 + p)),
    "Normal": lambda p: d.Normal(p, p),
    "Pareto": lambda p: d.Pareto(p, p),
    "Poisson": d.Poisson,
    "RelaxedBernoulli": lambda p: d.RelaxedBernoulli(p.new_tensor(0.5), p / (1 + p)),
    "StudentT": lambda p: d.StudentT(p + 1, p, p),
    "TransformedDistribution": lambda p: d.TransformedDistribution(d.Normal(p, p), [d.SigmoidTransform()]),
    "Uniform": lambda p: d.Uniform(-p, p),
    "VonMises": lambda p: d.VonMises(p, p),
    "Weibull": lambda p: d.Weibull(p, p),
}
DTYPES = {"GeneralizedPareto": torch.float32}  # torch's compares its concentration with a float32


@pytest.mark.parametrize("name", NUMBERS)
def test_families_of_numbers(name: str) -> None:
    """Value and gradients are those of the valid numbers alone, whatever lies under the mask."""
    mask, parameter = patterns(), positive(ROWS, SIZE).to(DTYPES.get(name))
    torch.manual_seed(0)
    sample = NUMBERS[name](parameter).sample()
    garbage = torch.full_like(sample, NAN if sample.is_floating_point() else 99)  # of no support
    here, there = parameter.clone().requires_grad_(), parameter[mask].clone().requires_grad_()
    ours = mt.log_prob(NUMBERS[name](here), mt.as_masked_tensor(torch.where(mask, sample, garbage), mask))
    alone = NUMBERS[name](there).log_prob(sample[mask])
    assert torch.equal(ours.get_mask(), mask)
    torch.testing.assert_close(ours.compressed(), alone)
    if alone.requires_grad:
        (ours * 1).sum().backward()
        alone.sum().backward()
        torch.testing.assert_close(here.grad[mask], there.grad)
        assert not here.grad[~mask].any()


def full(loc: Tensor, a: Tensor) -> d.Distribution:
    return d.MultivariateNormal(loc, a @ a.mT + torch.eye(SIZE, dtype=a.dtype))


def low_rank(loc: Tensor, a: Tensor) -> d.Distribution:
    return d.LowRankMultivariateNormal(loc, a[..., :2], a[..., 2].square() + 0.5)


def scale_tril(loc: Tensor, a: Tensor) -> d.Distribution:
    return d.MultivariateNormal(loc, scale_tril=a.tril(-1) + torch.diag_embed(a.diagonal(dim1=-2, dim2=-1).exp()))


def precision(loc: Tensor, a: Tensor) -> d.Distribution:
    return d.MultivariateNormal(loc, precision_matrix=a @ a.mT + torch.eye(SIZE, dtype=a.dtype))


NORMALS = {"full": full, "low rank": low_rank, "scale_tril": scale_tril, "precision": precision}


def by_selection(distribution: d.Distribution, x: Tensor, mask: Tensor) -> Tensor:
    """Each row by a normal of its valid coordinates."""
    loc = distribution.loc.expand_as(x)
    covariance = distribution.covariance_matrix.expand(*x.shape, x.shape[-1])
    rows = []
    for i, known in enumerate(mask):
        part = d.MultivariateNormal(loc[i, known], covariance[i][known][:, known]) if known.any() else None
        rows.append(part.log_prob(x[i, known]) if part else x.new_zeros(()))
    return torch.stack(rows)


@pytest.mark.parametrize("batched", [False, True], ids=["one", "batch"])
@pytest.mark.parametrize("name", NORMALS)
def test_normals_of_the_valid_coordinates(name: str, batched: bool) -> None:
    batch = (ROWS,) if batched else ()
    loc, a, x, mask = randn(*batch, SIZE), randn(*batch, SIZE, SIZE), randn(ROWS, SIZE), patterns()

    def ours(x: Tensor, loc: Tensor, a: Tensor) -> Tensor:
        garbage = torch.where(mask, x, NAN)
        return mt.log_prob(NORMALS[name](loc, a), mt.as_masked_tensor(garbage, mask)).filled(0)

    def theirs(x: Tensor, loc: Tensor, a: Tensor) -> Tensor:
        return by_selection(NORMALS[name](loc, a), x, mask)

    given = [t.requires_grad_() for t in (x, loc, a)]
    torch.testing.assert_close(ours(*given), theirs(*given))
    got = torch.autograd.grad(ours(*given).sum(), given)
    torch.testing.assert_close(got, torch.autograd.grad(theirs(*given).sum(), given))
    assert torch.autograd.gradcheck(ours, given, fast_mode=True)
    masked = mt.log_prob(NORMALS[name](loc, a), mt.as_masked_tensor(x, mask))
    assert torch.equal(masked.get_mask(), mask.any(-1))


def test_a_dirichlet_of_the_valid_shares() -> None:
    concentration, mask = positive(SIZE), patterns()
    x = d.Dirichlet(concentration).sample((ROWS,))
    ours = mt.log_prob(d.Dirichlet(concentration), mt.as_masked_tensor(torch.where(mask, x, NAN), mask))
    for i, known in enumerate(mask):
        if not known.any():
            assert not ours.get_mask()[i]
        elif known.all():
            torch.testing.assert_close(ours[i].filled(), d.Dirichlet(concentration).log_prob(x[i]))
        else:
            shares = torch.cat([x[i, known], 1 - x[i, known].sum(0, True)])
            merged = torch.cat([concentration[known], concentration[~known].sum(0, True)])
            torch.testing.assert_close(ours[i].filled(), d.Dirichlet(merged).log_prob(shares))


def test_a_dirichlet_integrates_to_its_marginal() -> None:
    """The marginal of one share is a Beta."""
    concentration, share = torch.tensor([0.7, 1.5, 2.0]), torch.tensor([0.2, 0.6])
    rows = torch.stack([share, share * NAN, share * NAN], 1)
    ours = mt.log_prob(d.Dirichlet(concentration), mt.masked_invalid(rows))
    torch.testing.assert_close(ours.filled(), d.Beta(concentration[0], concentration[1:].sum()).log_prob(share))


def mixture(loc: Tensor, a: Tensor) -> d.Distribution:
    components = d.MultivariateNormal(torch.stack([loc, -loc]), torch.stack([square(), square() * 2]))
    return d.MixtureSameFamily(d.Categorical(logits=a[0, :2]), components)


def test_a_mixture_of_normals() -> None:
    loc, a, x, mask = randn(SIZE), randn(SIZE, SIZE), randn(ROWS, SIZE), patterns()
    distribution = mixture(loc, a)
    ours = mt.log_prob(distribution, mt.as_masked_tensor(x, mask))
    parts = [by_selection(full_of(distribution, k), x, mask) for k in range(2)]
    expected = (torch.stack(parts, -1) + distribution.mixture_distribution.logits).logsumexp(-1)
    torch.testing.assert_close(ours.compressed(), expected[mask.any(-1)])


def full_of(distribution: d.Distribution, k: int) -> d.Distribution:
    components = distribution.component_distribution
    return d.MultivariateNormal(components.loc[k], components.covariance_matrix[k])


def test_independent_numbers_and_elementwise_transforms() -> None:
    loc, x, mask = randn(SIZE), randn(ROWS, SIZE), patterns()
    rows = mask.any(-1)
    value = mt.as_masked_tensor(torch.where(mask, x, NAN), mask)
    each = torch.where(mask, d.Normal(loc, 2.0).log_prob(x), 0).sum(-1)[rows]
    torch.testing.assert_close(mt.log_prob(d.Independent(d.Normal(loc, 2.0), 1), value).compressed(), each)
    normal = full(loc, randn(SIZE, SIZE))
    skewed = d.TransformedDistribution(normal, [d.ExpTransform(), d.AffineTransform(1.0, 3.0)])
    expected = by_selection(normal, x, mask) - torch.where(mask, x + torch.log(torch.tensor(3.0)), 0).sum(-1)
    ours = mt.log_prob(skewed, value.exp() * 3 + 1)
    torch.testing.assert_close(ours.compressed(), expected[rows])


VECTORS: dict[str, tuple[d.Distribution, Tensor]] = {}
for _name, _family in {
    "Multinomial": d.Multinomial(6, positive(SIZE)),
    "OneHotCategorical": d.OneHotCategorical(positive(SIZE)),
    "RelaxedOneHotCategorical": d.RelaxedOneHotCategorical(torch.tensor(0.5).double(), positive(SIZE)),
    "LogisticNormal": d.LogisticNormal(randn(SIZE - 1), positive(SIZE - 1)),
    "LKJCholesky": d.LKJCholesky(2, torch.tensor(1.5).double()),
}.items():
    torch.manual_seed(0)
    VECTORS[_name] = _family, _family.sample((ROWS,))
_roots = randn(ROWS, 2, 2)
VECTORS["Wishart"] = d.Wishart(torch.tensor(6.0).double(), square(2)), _roots @ _roots.mT + torch.eye(2)


@pytest.mark.parametrize("name", VECTORS)
def test_other_vectors_count_where_they_are_whole(name: str) -> None:
    family, sample = VECTORS[name]
    mask = patterns().reshape(ROWS, *family.event_shape)
    whole = mask.flatten(1).all(1)
    ours = mt.log_prob(family, mt.as_masked_tensor(torch.where(mask, sample, NAN), mask))
    assert torch.equal(ours.get_mask(), whole)
    torch.testing.assert_close(ours.compressed(), family.log_prob(sample)[whole])


def outside(name: str) -> tuple[Callable[..., d.Distribution], Tensor, Tensor]:
    """A family by its ``validate_args``, a sample of one event, and one that is outside of the support."""
    one, eye = torch.ones(SIZE), torch.eye(SIZE)
    exp = [d.ExpTransform()]
    made: dict[str, tuple[Callable[..., d.Distribution], Tensor, Tensor]] = {
        "Dirichlet": (lambda **o: d.Dirichlet(one, **o), one / SIZE, one * 0.5),
        "Dirichlet, below 0": (lambda **o: d.Dirichlet(one, **o), one / SIZE, one / SIZE - 1),
        "MultivariateNormal": (lambda **o: d.MultivariateNormal(one, eye, **o), one, one * NAN),
        "LowRankMultivariateNormal": (
            lambda **o: d.LowRankMultivariateNormal(one, eye[:, :2], one, **o),
            one,
            one * NAN,
        ),
        "MixtureSameFamily": (
            lambda **o: d.MixtureSameFamily(d.Categorical(one[:2]), d.Dirichlet(torch.ones(2, SIZE), **o), **o),
            one / SIZE,
            one * 0.5,
        ),
        "TransformedDistribution": (
            lambda **o: d.TransformedDistribution(d.MultivariateNormal(one, eye, **o), exp, **o),
            one,
            -one,
        ),
        "Independent": (lambda **o: d.Independent(d.Exponential(one, **o), 1, **o), one, -one),
        "Wishart": (lambda **o: d.Wishart(torch.tensor(6.0), torch.eye(2), **o), torch.eye(2), torch.ones(2, 2) - 2),
        "OneHotCategorical": (lambda **o: d.OneHotCategorical(one, **o), eye[0], one),
    }
    return made[name] if name else tuple(made)  # type: ignore[return-value]


@pytest.mark.parametrize("name", outside(""))
def test_what_is_valid_is_validated(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As torch does, where it does; what is masked never is."""
    monkeypatch.setattr(torch.distributions.Distribution, "_validate_args", True)  # torch's own tests turn it off
    family, inside, wrong = outside(name)
    value = torch.stack([inside, wrong])
    with pytest.raises(ValueError, match="to be within the support"):
        family().log_prob(value)
    with pytest.raises(ValueError, match="to be within the support"):
        mt.log_prob(family(), mt.as_masked_tensor(value, True))
    with pytest.raises(ValueError, match="to be within the support"):
        mt.log_prob(family(), value, mask=torch.ones_like(value, dtype=torch.bool))
    mt.log_prob(family(validate_args=False), mt.as_masked_tensor(value, True))
    for keep in ((True, False), (False, False)):
        rows = torch.tensor(keep).reshape(2, *(1 for _ in inside.shape))
        ours = mt.log_prob(family(), mt.as_masked_tensor(value, rows))
        assert ours.get_mask().tolist() == list(keep)
        if keep[0]:
            torch.testing.assert_close(ours[0].filled(), family().log_prob(inside))
    if name not in ("Wishart", "OneHotCategorical"):  # of which an event is whole, or masked
        first = torch.arange(SIZE) < 3
        with pytest.raises(ValueError, match="to be within the support"):
            mt.log_prob(family(), mt.as_masked_tensor(value, first))
        mt.log_prob(family(), mt.as_masked_tensor(torch.where(first, inside, wrong), first))


def test_every_family_of_torch_is_here() -> None:
    given = {*NUMBERS, *VECTORS, "Dirichlet", "Independent", "LowRankMultivariateNormal", "MultivariateNormal"}
    bases = {"Distribution", "ExponentialFamily"}
    straight = {"OneHotCategoricalStraightThrough"}  # a OneHotCategorical that differs in what it draws
    found = {
        name
        for name in d.__all__
        if isinstance(getattr(d, name), type) and issubclass(getattr(d, name), d.Distribution)
    }
    assert found - bases - straight == given


def test_plain_in_plain_out() -> None:
    normal, x, mask = full(randn(SIZE), randn(SIZE, SIZE)), randn(ROWS, SIZE), patterns()
    assert torch.equal(mt.log_prob(normal, x), normal.log_prob(x))
    ours = mt.log_prob(normal, x, mask=mask)
    assert type(ours) is Tensor
    assert torch.equal(ours.isnan(), ~mask.any(-1))
    assert torch.equal(mt.log_prob(normal, x, mask=mask, fill_value=0).isfinite(), torch.ones(ROWS, dtype=torch.bool))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_other_dtypes(dtype: torch.dtype) -> None:
    x = mt.masked_tensor(torch.tensor([[1.0, NAN]], dtype=dtype), [[True, False]])
    ours = mt.log_prob(d.Normal(torch.zeros(2, dtype=dtype), 1.0), x)
    assert ours.dtype is dtype
    assert ours.count() == 1


def test_no_rows() -> None:
    assert mt.log_prob(full(randn(SIZE), randn(SIZE, SIZE)), mt.as_masked_tensor(randn(0, SIZE), True)).shape == (0,)

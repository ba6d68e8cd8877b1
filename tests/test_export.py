"""``torch.export`` with free sizes: the functional forms in programs of plain tensors, and what masked inputs promise.

``MASKED_TENSOR_EXPORT=1`` exports every form, a minute.
"""

import os
import random
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.export import Dim

import masked_tensor as mt
import masked_tensor.functional as masked

Form = Callable[[Tensor, Tensor], Any]
WHOLE = os.environ.get("MASKED_TENSOR_EXPORT") == "1"
#: Of the sizes of these results the values decide, so that torch does not trace them either.
UNTRACED = {"masked_select", "unique", "unique_consecutive"}
#: Each stands in docs/limits.md.
REFUSED = {
    "gaussian_nll_loss": "torch's own check of the variance reads it",
    "log_prob": "a distribution's Python code",
}


def positive(x: Tensor) -> Tensor:
    return x.abs() + 0.5


def labels(x: Tensor) -> Tensor:
    return (x[:, 0] > 0).long()


def one_hot(x: Tensor) -> Tensor:
    return (x > 0).to(x.dtype)


def along_steps(form: Any, x: Tensor, mask: Tensor) -> Any:
    return form(x, dim=1, mask=mask)


def of_two(form: Any, x: Tensor, mask: Tensor) -> Any:
    return form(x, x.cos(), mask=mask)


def of_signs(form: Any, x: Tensor, mask: Tensor) -> Any:
    return form(x, x.sign(), mask=mask)


def _reductions() -> dict[str, Form]:
    names = (
        "all", "amax", "amin", "aminmax", "any", "argmax", "argmin", "average", "count_nonzero", "logsumexp", "max",
        "mean", "median", "min", "mode", "nanmean", "nanmedian", "nansum", "prod", "std", "std_mean", "sum", "var",
        "var_mean", "cummax", "cummin", "cumprod", "cumsum", "logcumsumexp", "softmax", "log_softmax", "softmin",
        "rankdata",
    )  # fmt: skip
    return {name: partial(along_steps, getattr(masked, name)) for name in names}


def _losses() -> dict[str, Form]:
    pairs = ("huber_loss", "l1_loss", "mse_loss", "smooth_l1_loss", "poisson_nll_loss")
    signs = ("hinge_embedding_loss", "soft_margin_loss")
    return {
        **{name: partial(of_two, getattr(masked, name)) for name in pairs},
        **{name: partial(of_signs, getattr(masked, name)) for name in signs},
    }


FORMS: dict[str, Form] = {
    **_reductions(),
    **_losses(),
    "batch_norm": lambda x, m: masked.batch_norm(x.T, None, None, training=True, mask=m.T),
    "bfill": lambda x, m: masked.bfill(x, dim=1, mask=m, lengths="full"),
    "binary_cross_entropy": lambda x, m: masked.binary_cross_entropy(x.sigmoid(), one_hot(x), mask=m),
    "binary_cross_entropy_with_logits": lambda x, m: masked.binary_cross_entropy_with_logits(x, one_hot(x), mask=m),
    "corrcoef": lambda x, m: masked.corrcoef(x, mask=m),
    "cosine_embedding_loss": lambda x, m: masked.cosine_embedding_loss(x, x.cos(), x[:, 0].sign(), mask=m[:, :1]),
    "cov": lambda x, m: masked.cov(x, mask=m),
    "cross_entropy": lambda x, m: masked.cross_entropy(x, labels(x), mask=m[:, :1]),
    "dist": lambda x, m: masked.dist(x, x.cos(), mask=m),
    "ffill": lambda x, m: masked.ffill(x, dim=1, mask=m, lengths="full"),
    "gaussian_nll_loss": lambda x, m: masked.gaussian_nll_loss(x, x.cos(), positive(x), mask=m),
    "group_norm": lambda x, m: masked.group_norm(x[:, None], 1, mask=m[:, None]),
    "instance_norm": lambda x, m: masked.instance_norm(x[:, None], mask=m[:, None]),
    "interpolate": lambda x, m: masked.interpolate(x, dim=1, mask=m, lengths="full"),
    "kl_div": lambda x, m: masked.kl_div(x, x.sigmoid(), mask=m),
    "layer_norm": lambda x, m: masked.layer_norm(x, x.shape[1:], mask=m),
    "local_response_norm": lambda x, m: masked.local_response_norm(x[None], 3, mask=m[None]),
    "log_prob": lambda x, m: masked.log_prob(torch.distributions.Normal(x, 1.0, validate_args=False), x.cos(), mask=m),
    "logaddexp": lambda x, m: masked.logaddexp(x, x.cos(), input_mask=m, other_mask=m),
    "margin_ranking_loss": lambda x, m: masked.margin_ranking_loss(x, x.cos(), x.sign(), mask=m),
    "masked_fill": lambda x, m: masked.masked_fill(x, m, 0.5),
    "masked_fill_": lambda x, m: masked.masked_fill_(x.clone(), m, 0.5),
    "masked_scatter": lambda x, m: masked.masked_scatter(x, m, x.cos()),
    "masked_scatter_": lambda x, m: masked.masked_scatter_(x.clone(), m, x.cos()),
    "multi_margin_loss": lambda x, m: masked.multi_margin_loss(x, labels(x), mask=m[:, :1]),
    "multilabel_margin_loss": lambda x, m: masked.multilabel_margin_loss(x, torch.zeros_like(x).long(), mask=m[:, :1]),
    "multilabel_soft_margin_loss": lambda x, m: masked.multilabel_soft_margin_loss(x, one_hot(x), mask=m[:, :1]),
    "nanquantile": lambda x, m: masked.nanquantile(x, 0.3, 1, mask=m),
    "nll_loss": lambda x, m: masked.nll_loss(x, labels(x), mask=m[:, :1]),
    "norm": lambda x, m: masked.norm(x, 2, 1, mask=m),
    "normalize": lambda x, m: masked.normalize(x, 2, 1, mask=m),
    "quantile": lambda x, m: masked.quantile(x, 0.3, 1, mask=m),
    "rms_norm": lambda x, m: masked.rms_norm(x, x.shape[1:], mask=m),
    "rolling": lambda x, m: masked.rolling(x, 3, dim=1, mask=m).mean(),
    "scaled_dot_product_attention": lambda x, m: masked.scaled_dot_product_attention(
        *(x[:, :, None].expand(-1, -1, 4),) * 3, key_mask=m
    ),
    "shift": lambda x, m: masked.shift(x, 1, dim=1, mask=m, lengths="full"),
    "triplet_margin_loss": lambda x, m: masked.triplet_margin_loss(x, x.cos(), x.sin(), mask=m[:, :1]),
}


class Program(nn.Module):
    def __init__(self, program: Callable[..., Any]) -> None:
        super().__init__()
        self.program = program

    def forward(self, *inputs: Any) -> Any:
        return self.program(*inputs)


def batch(rows: int, steps: int) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(rows)
    mask = torch.rand(rows, steps, generator=generator) < 0.7
    data = torch.randn(rows, steps, generator=generator, dtype=torch.float64)
    mask[0] = True
    return data, mask


def plain(result: Any) -> Any:
    if isinstance(result, tuple):
        return tuple(plain(x) for x in result)
    return result.filled(0) if mt.is_masked_tensor(result) else result


def test_every_form_is_here() -> None:
    assert FORMS.keys() | UNTRACED == set(masked.__all__)


@pytest.mark.parametrize("name", FORMS if WHOLE else random.Random(1).sample(sorted(FORMS.keys() - REFUSED), 7))
def test_a_form_with_free_sizes(name: str) -> None:
    def program(x: Tensor, mask: Tensor) -> Any:
        return plain(FORMS[name](x, mask))

    if name in REFUSED:
        with pytest.raises(Exception, match=r"data-dependent|NotImplemented"):
            export(program, *batch(4, 6))
        return
    exported = export(program, *batch(4, 6))
    for given in (batch(5, 9), batch(300, 70)):  # beyond the thresholds of settings.py
        torch.testing.assert_close(exported(*given), program(*given), equal_nan=True)


def export(program: Callable[..., Any], *inputs: Tensor) -> Any:
    rows, steps = Dim("rows", min=2), Dim("steps", min=3)
    sizes = ({0: rows, 1: steps},) * len(inputs)
    return torch.export.export(Program(program), inputs, dynamic_shapes=(sizes,)).module()


def test_what_lies_under_the_mask_of_an_exported_program_does_not_matter() -> None:
    exported = export(lambda x, m: mt.softmax(x, 1, mask=m) + mt.mean(x, 1, keepdim=True, mask=m), *batch(4, 6))
    (x, mask), hidden = batch(5, 9), batch(5, 9)[0].masked_fill(~batch(5, 9)[1], torch.nan)
    assert torch.equal(exported(x, mask)[mask], exported(hidden, mask)[mask])


def test_a_masked_input_keeps_its_sizes_and_its_ops() -> None:
    """As docs/limits.md says: torch fixes the sizes of parts, and counts one input where there are two."""
    x = mt.as_masked_tensor(*batch(4, 6))
    model = Program(lambda x: x.softmax(-1) - x.mean())
    program = torch.export.export(model, (x,))
    other = mt.as_masked_tensor(*batch(4, 6)) * 2
    mt.testing.assert_close(program.module()(other), model(other))
    with pytest.raises(IndexError):
        program.run_decompositions()
    with pytest.raises(Exception, match="specialized it to be a constant"):
        export(lambda x: x.softmax(-1), x)

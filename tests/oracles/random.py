"""Random ops: the plain op, seeded as the harness seeds, on harmless data, under the same mask."""

from typing import Any

import torch
from torch import Tensor

from ..helpers.harness import Masked


def under(fill: float) -> Any:
    """The plain op, seeded as the harness seeds, on the data with ``fill`` under the mask."""

    def oracle(op: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
        torch.manual_seed(1)
        if not isinstance(x, Masked):
            return op(x, *args, **kwargs)
        rest = [a.data if isinstance(a, Masked) else a for a in args]
        return Masked(op(torch.where(x.mask, x.data, fill), *rest, **kwargs), x.mask)

    return oracle


def jointly(fill: float) -> Any:
    """Several parameters: valid where all of them are."""

    def oracle(op: Any, *args: Any, **kwargs: Any) -> Any:
        torch.manual_seed(1)
        given = [a for a in args if isinstance(a, Masked)]
        out = op(*(torch.where(a.mask, a.data, fill) if isinstance(a, Masked) else a for a in args), **kwargs)
        mask = torch.ones(out.shape, dtype=torch.bool)
        for a in given:
            mask = mask & a.mask
        return Masked(out, mask)

    return oracle


def multinomial(op: Any, x: Any, count: int, *args: Any, **kwargs: Any) -> Any:
    """Weight 0 for masked categories; a row without any: equal weights, and a masked row."""
    torch.manual_seed(1)
    if not isinstance(x, Masked):
        return op(x, count, *args, **kwargs)
    weights = torch.where(x.mask.any(-1, keepdim=True), torch.where(x.mask, x.data, 0), 1)
    out: Tensor = op(weights, count, *args, **kwargs)
    return Masked(out, x.mask.gather(-1, out))


ORACLES: dict[str, Any] = {
    **dict.fromkeys(("rand_like", "randn_like", "randint_like"), under(0)),
    **dict.fromkeys(("exponential", "cauchy", "geometric", "log_normal", "uniform", "normal.in_place"), under(0)),
    **dict.fromkeys((f"nn.functional.{n}" for n in ("dropout", "dropout2d", "dropout3d", "alpha_dropout")), under(0)),
    **dict.fromkeys((f"nn.functional.feature_alpha_dropout.{n}_train" for n in ("with", "without")), under(0)),
    "nn.functional.rrelu": under(1),
    "bernoulli": jointly(0),
    "normal": jointly(1),
    "multinomial": multinomial,
}
SEEDED = [
    *("bernoulli", "cauchy", "exponential", "geometric", "log_normal", "multinomial", "normal", "normal.in_place"),
    *("rand_like", "randint_like", "randn_like", "uniform", "nn.functional.rrelu"),
    *(f"nn.functional.{name}" for name in ("alpha_dropout", "dropout", "dropout2d", "dropout3d")),
    *(f"nn.functional.feature_alpha_dropout.{name}_train" for name in ("with", "without")),
]
_seeded = "the database seeds this op, which is in place already, but not its in-place twin"
_generator = "dynamo does not trace the generator with which the database seeds this op"
XFAIL = {
    ("normal", "gradient"): "torch gives a draw no derivative with respect to its parameters",
    **{(name, "inplace"): _seeded for name in ("cauchy", "exponential", "geometric", "log_normal", "uniform")},
    ("normal.in_place", "inplace"): _seeded,
    **{(name, "compiled"): _generator for name in SEEDED},
}

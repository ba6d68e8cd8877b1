"""``vmap`` over one operand while another one is masked, over torch's database: each entry as without ``vmap``."""

import warnings
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.func import vmap
from torch.testing._internal.common_methods_invocations import op_db
from torch.utils._pytree import tree_flatten, tree_unflatten

import masked_tensor as mt

from .helpers.trees import tree_leaves

PARTS = 8
SAMPLES = 2  # of each operator
OPERATORS = [op for op in op_db if op.supports_dtype(torch.float64, "cpu")]


def samples_of(op: Any) -> Iterator[tuple[list[Any], Any]]:
    """The arguments of a call, flat, and how they lie."""
    found = op.sample_inputs("cpu", torch.float64)
    for _, sample in zip(range(SAMPLES), found, strict=False):
        flat, spec = tree_flatten(((sample.input, *sample.args), sample.kwargs))
        yield [v.detach() if isinstance(v, Tensor) else v for v in flat], spec


def values_of(x: Tensor) -> Tensor:
    return x.filled(0) if mt.is_masked_tensor(x) else x


def batched(call: Any, operands: list[Tensor]) -> list[Tensor]:
    out: list[Tensor] = vmap(call, randomness="same")(*(torch.stack([t, t]) for t in operands))
    return out


def check(op: Any, flat: list[Any], spec: Any, masked: int, others: list[int]) -> str | None:
    """What differs, "" for nothing, None where torch itself refuses the call."""
    mask = torch.rand(flat[masked].shape) < 0.7
    x = mt.as_masked_tensor(torch.where(mask, flat[masked], torch.nan), mask)

    def call(first: Any, operands: tuple[Tensor, ...]) -> list[Tensor]:
        values = list(flat)
        for i, t in zip((masked, *others), (first, *operands), strict=True):
            values[i] = t
        args, kwargs = tree_unflatten(values, spec)
        torch.manual_seed(1)
        return [v for v in tree_leaves(op(*args, **kwargs)) if isinstance(v, Tensor)]

    operands = [flat[i] for i in others]
    try:
        plain = batched(lambda *t: call(flat[masked], t), operands)
        if any(v.shape[:1] != (2,) for v in plain):  # torch gives empty results without a batch
            return None
        expected = call(x, tuple(operands))
    except Exception:  # of many types
        return None
    try:
        found = batched(lambda *t: call(x, t), operands)
    except Exception as error:
        return f"{type(error).__name__}: {str(error)[:200]}"
    for one, both in zip(expected, found, strict=True):
        for entry in both.unbind():
            if mt.is_masked_tensor(one) != mt.is_masked_tensor(entry):
                return "only one is masked"
            if mt.is_masked_tensor(one) and not torch.equal(one.get_mask(), entry.get_mask()):
                return "another mask"
            if not torch.allclose(values_of(one), values_of(entry), equal_nan=True):
                return "other values"
    return ""


@pytest.mark.parametrize("part", range(PARTS))
def test_a_plain_operand_may_be_batched_while_another_is_masked(part: int) -> None:
    compared, wrong = 0, []
    torch.manual_seed(part)
    warnings.simplefilter("ignore")
    for op in OPERATORS[part::PARTS]:
        for flat, spec in samples_of(op):
            tensors = [i for i, v in enumerate(flat) if isinstance(v, Tensor) and v.layout is torch.strided]
            values = [i for i in tensors if flat[i].is_floating_point()]
            for masked in {values[0], values[-1]} if len(tensors) > 1 and values else ():
                difference = check(op, flat, spec, masked, [i for i in tensors if i != masked])
                compared += difference is not None
                if difference:
                    wrong.append((op.name, masked, difference))
    assert wrong == []
    assert compared > 70

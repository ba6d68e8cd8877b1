"""The laws of what surrounds an op: inference mode, autocast, ``vmap``."""

from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_flatten, tree_unflatten

import masked_tensor as mt

from .database import Sample
from .harness import (
    Masked,
    assert_same,
    build,
    check_garbage,
    check_identity,
    is_record,
    random_mask,
    run,
    seen,
)
from .trees import tree_leaves, tree_map

_LENGTH = "the length of the result, or the number of draws, depends on the data of each entry"
XFAIL = {
    **{
        (name, "vmap"): "torch has no batching rule, and no fallback"
        for name in (
            "_chunk_cat",
            "allclose",
            "as_strided_scatter",
            "equal",
            "histogramdd",
            *(("unbind_copy",) if torch.__version__ < "2.13" else ()),
        )
    },
    **{
        (name, "vmap"): _LENGTH
        for name in (
            *("argwhere", "bincount", "index_put", "masked_select", "nonzero"),
            *("unique", "unique_consecutive"),
        )
    },
    (
        "corrcoef",
        "autocast",
    ): "torch's product of two matrices is rounded; ours is corrected for the mask in full precision",
    ("item", "vmap"): "a number for each entry",
    ("nn.functional.gaussian_nll_loss", "vmap"): "torch's own check of var branches on data",
    ("nn.functional.one_hot", "vmap"): "torch asks for num_classes",
    ("nn.functional.rrelu", "vmap"): "torch refuses it",
    ("nn.functional.scaled_dot_product_attention", "vmap"): (
        "the samples with dropout draw in another order than a loop"
    ),
}


def check_inference(case: Sample) -> None:
    """In inference mode, which no autograd door serves, the op gives what it gives elsewhere."""
    expected, _ = run(case)
    with torch.inference_mode():
        outputs, _ = run(case)
        for index, (a, e) in enumerate(zip(outputs, expected, strict=True)):
            assert_same(a, e, f"output {index}")


def check_autocast(case: Sample, sample: Sample | None) -> None:
    """Under autocast: no payload is seen, and the masks are those of full precision.

    With all entries of ``sample`` valid, dtypes and values are the plain op's under autocast.
    """
    exact, _ = run(case)
    with torch.autocast("cpu", torch.bfloat16):
        if sample is not None:
            check_identity(sample)
        check_garbage(case)
        lower, _ = run(case)
    for index, (a, e) in enumerate(zip(lower, exact, strict=True)):
        if isinstance(e, Tensor):
            assert torch.equal(seen(a).mask, seen(e).mask), f"output {index}: another mask under autocast"


def check_vmap(case: Sample, values: bool = True, size: int = 3) -> None:
    """``vmap`` over a batch of masked tensors equals a loop over it; ``values=False``: compares the masks alone."""
    generator = torch.Generator().manual_seed(0)

    def batch(value: Any) -> Any:
        if not isinstance(value, Masked):
            return value
        shape = (size, *value.data.shape)
        steps = torch.linspace(1, 0.5, size, dtype=torch.float64).reshape(size, *(1,) * value.data.dim())
        data = value.data.expand(shape)
        data = (data * steps).to(data.dtype) if data.dtype.is_floating_point else data
        return Masked(data, random_mask(shape, "random", generator))

    args = tree_map(batch, (case.args, case.kwargs), is_leaf=is_record)
    leaves, spec = tree_flatten(build(args))
    dims = tuple(0 if mt.is_masked_tensor(v) else None for v in leaves)

    def function(*leaves: Any) -> list[Tensor]:
        args, kwargs = tree_unflatten(list(leaves), spec)
        return [o for o in tree_leaves(case.op(*args, **kwargs)) if isinstance(o, Tensor)]

    rows = [
        function(*(v if d is None else v[i].clone() for v, d in zip(leaves, dims, strict=True))) for i in range(size)
    ]
    outputs = torch.func.vmap(function, dims, randomness="different")(*leaves)
    for index, output in enumerate(outputs):
        for i in range(size):
            if values:
                assert_same(output[i], rows[i][index], f"output {index} of row {i}")
            else:
                assert torch.equal(seen(output[i]).mask, seen(rows[i][index]).mask), f"the mask of row {i}"

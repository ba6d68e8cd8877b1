"""The law of rows and sparse layouts over torch's operator database: equal to the strided result, or refused."""

import os
from collections import Counter
from collections.abc import Callable
from itertools import islice

import pytest
from torch import Tensor

from .helpers import database, harness
from .helpers.sparse_cases import LAYOUTS, check, fits
from .helpers.trees import tree_leaves
from .laws import plain_runs
from .oracles import FAMILY
from .sweep import SKIPPED

PATTERNS = ("random", "none")  # the second of the first sample alone, if few are asked for
SAMPLES = int(os.environ.get("MASKED_TENSOR_SPARSE_SAMPLES", "1"))  # per entry
NAMES = sorted(name for name in database.ENTRIES if name not in SKIPPED)
SERVED = [  # what has a functional form for sparse tensors has one for the class
    "amax",
    "amin",
    "aminmax",
    "all",
    "any",
    "argmax",
    "argmin",
    "count_nonzero",
    "cummax",
    "cummin",
    "cumprod",
    "cumsum",
    "dist",
    "histc",
    "kthvalue",
    "linalg.vector_norm",
    "logcumsumexp",
    "log_softmax",
    "logsumexp",
    "max.reduction_with_dim",
    "mean",
    "median",
    "min.reduction_with_dim",
    "mode",
    "nanmedian",
    "nanquantile",
    "nansum",
    "norm",
    "prod",
    "quantile",
    "softmax",
    "sort",
    "std",
    "std_mean",
    "sum",
    "topk",
    "var",
    "var_mean",
    "torch.ops.aten._safe_softmax.default",
    "nn.functional.batch_norm",
    "nn.functional.cross_entropy",
    "nn.functional.group_norm",
    "nn.functional.huber_loss",
    "nn.functional.instance_norm",
    "nn.functional.layer_norm",
    "nn.functional.mse_loss",
    "nn.functional.nll_loss",
    "nn.functional.normalize",
    "nn.functional.rms_norm",
]


@pytest.mark.filterwarnings("ignore")  # those of the samples; what a call gives is compared
@pytest.mark.parametrize("name", NAMES)
def test_sparse_results_equal_strided_ones(name: str, record_property: Callable[[str, object], None]) -> None:
    counts: Counter[str] = Counter()
    for number, sample in enumerate(_samples(name)):
        for pattern in PATTERNS if SAMPLES > 1 or number == 0 else PATTERNS[:1]:
            every, first = (harness.masked_case(sample, pattern, which) for which in ("all", "first"))
            several = len(list(harness.masked_leaves((every.args, every.kwargs)))) > 1
            for case in [every, first][: 1 + several]:
                check(case, counts, drawn=FAMILY.get(name) == "random")
    assert name not in SERVED or counts["equal"], "refused in every layout"
    record_property("sparse law", dict(counts))


def _entries(sample: database.Sample) -> int:
    """The size of its largest tensor: one of five million takes longer than all others together."""
    return max((x.numel() for x in tree_leaves((sample.args, sample.kwargs)) if isinstance(x, Tensor)), default=0)


def _samples(name: str) -> list[database.Sample]:
    """Of the first usable ones those whose tensors fit into the most layouts; twice as many of what is served."""
    found = [
        s for s in database.samples(name, limit=max(4, SAMPLES), forms=True) if SAMPLES > 1 or _entries(s) < 20_000
    ]
    found.sort(key=lambda s: -sum(fits(x.shape, layout) for x in s.args if isinstance(x, Tensor) for layout in LAYOUTS))
    return list(islice(filter(plain_runs, found), SAMPLES * (1 + (name in SERVED))))

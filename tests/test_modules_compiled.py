"""Every module of torch's module database compiles with masked input, forward and backward, to what it does eagerly.

A third of them in CI, by the order of their names; ``MASKED_TENSOR_COMPILED=all`` runs all.
"""

import os
import warnings

import pytest
import torch

from masked_tensor.testing import assert_close

from .helpers.database import MODULES, module_samples
from .helpers.harness import random_mask
from .test_modules import PARTS, masked, outcome

# Not one graph: of these torch itself makes several of plain input, too.
BREAKS = {
    "nn.CTCLoss": "lengths are sizes that depend on data",
    "nn.GaussianNLLLoss": "torch looks whether a variance is negative",
    **{f"nn.{name}": "Dynamo does not compile recurrent layers" for name in ("GRU", "LSTM", "RNN")},
}
NAMES = sorted(MODULES) if os.environ.get("MASKED_TENSOR_COMPILED") == "all" else sorted(MODULES)[::3]


@pytest.mark.parametrize("name", NAMES)
def test_module_compiled(name):
    torch._dynamo.reset()
    sample = next(module_samples(name, training=True, limit=1))

    def choose(index, x):
        generator = torch.Generator().manual_seed(index)
        mask = random_mask(x.shape, "random", generator)
        return torch.where(mask, x, torch.nan) if x.is_floating_point() else x, mask

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch's own advice on its fast paths and deprecations
        expected = outcome(sample.make(), *masked(sample, choose))
        run = torch.compile(sample.make(), backend="aot_eager", fullgraph=name not in BREAKS)
        found = outcome(run, *masked(sample, choose))
    for what, f, e in zip(PARTS, found, expected, strict=True):
        assert_close(f, e, message=f"{what}: ")

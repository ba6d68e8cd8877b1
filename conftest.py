"""Names that the examples in docstrings may use without importing them."""

import builtins
import os
from typing import Any

import pytest
import torch

import masked_tensor

if "PYTEST_XDIST_WORKER" in os.environ:
    torch.set_num_threads(1)  # the workers share the cores


@pytest.fixture(autouse=True)
def names_in_examples(doctest_namespace: dict[str, Any]) -> None:
    names = {name: getattr(masked_tensor, name) for name in masked_tensor.__all__ if not hasattr(builtins, name)}
    doctest_namespace.update(names, torch=torch, mt=masked_tensor)

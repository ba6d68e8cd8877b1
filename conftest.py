"""Names that the examples in docstrings may use without importing them."""

from typing import Any

import pytest


@pytest.fixture(autouse=True)
def names_in_examples(doctest_namespace: dict[str, Any]) -> None:
    import torch

    import masked_tensor

    doctest_namespace.update(vars(masked_tensor), torch=torch)

"""Lets the test files of an older torch run: a plugin of pytest that gives torch.testing the names it has lost since.

``SOURCES`` is the folder of that torch's sources, with ``test`` and ``torch/testing``:

    SOURCES=pytorch-2.6.0 PYTHONPATH=pytorch-2.6.0/test \
        python -m tests.shadow -p tests.shadow.older_torch --noconftest pytorch-2.6.0/test/test_indexing.py
"""

import os
from collections.abc import Callable
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

from torch.testing._internal import common_cuda, common_methods_invocations, common_mkldnn, common_nn


def _older(name: str) -> dict[str, Any]:
    """What that torch's module of ``torch.testing._internal`` defines."""
    path = Path(os.environ["SOURCES"]) / "torch" / "testing" / "_internal" / f"{name}.py"
    spec = spec_from_file_location(f"older_{name}", path)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return vars(module)


def _unchanged(*_: Any, **__: Any) -> Callable[[Any], Any]:
    """A decorator that is none."""
    return lambda function: function


def pytest_configure() -> None:
    for module, names in ((common_nn, _older("common_nn")), *LOST):
        for name, value in names.items():
            if not hasattr(module, name):
                setattr(module, name, value)


LOST: tuple[tuple[Any, dict[str, Any]], ...] = (
    (common_cuda, {"tf32_is_not_fp32": lambda: False}),
    (common_mkldnn, {"bf32_on_and_off": _unchanged}),
    (
        common_methods_invocations,
        {
            "binary_ufuncs_and_refs": list(common_methods_invocations.binary_ufuncs),
            "unary_ufuncs_and_refs": list(common_methods_invocations.unary_ufuncs),
        },
    ),
)

"""``python -m tests.models.padding``: which meaning of ``padding`` leaves more models what their rows are.

The two meanings differ only where code pads along a dimension in which rows end at different places: a spy finds the
types that do, and these are judged with both.
"""

import os
import sys
import warnings
from collections import Counter
from typing import Any
from unittest import mock

import torch

import masked_tensor as mt
from masked_tensor.rules import padding

from . import text
from .judge import Verdict, judge


def pads(name: str, variant: str) -> bool:
    """Whether the type's code pads rows that end at different places."""
    seen = []
    ends = padding._ends

    def spy(*arguments: Any) -> Any:
        seen.append(arguments)
        return ends(*arguments)

    try:
        model = text.build(name, variant)
        with mock.patch.object(padding, "_ends", spy), torch.no_grad():
            text.call(model, text.inputs(model, -100)[1])
    except Exception:  # what it does before it fails counts
        pass
    return bool(seen)


def main() -> None:
    os.environ["TRANSFORMERS_VERBOSITY"] = "error"
    warnings.simplefilter("ignore")
    counts: dict[str, Counter[str]] = {"row": Counter(), "tensor": Counter()}
    for name in sys.argv[1:] or text.types():
        if not pads(name, "eager"):
            continue
        for variant in text.VARIANTS:
            found: dict[str, Verdict] = {}
            for meaning, count in counts.items():
                with mt.meaning(padding=meaning):
                    model = text.build(name, variant)
                    found[meaning] = judge(model, text.call, *text.inputs(model, -100))
                count[f"{variant}: {found[meaning].outcome}"] += 1
            said = "; ".join(f"{meaning}: {v.outcome} {v.detail}" for meaning, v in found.items())
            print(f"{name:24} {variant:8} {said}", flush=True)
    for meaning, count in counts.items():
        print(meaning, dict(sorted(count.items())))


if __name__ == "__main__":
    main()

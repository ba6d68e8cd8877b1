"""``python -m tests.models.padding [names]``: which meaning of ``padding`` leaves more models what their rows are.

The two meanings differ only where code pads along a dimension in which rows end at different places: a spy finds the
types that do, and these are judged with both.  A model is right if it is exact for rows that fill the blocks that its
code may cut time into, and for rows that do not.
"""

import gc
import os
import sys
import warnings
from collections import Counter
from collections.abc import Callable
from typing import Any
from unittest import mock

import torch

import masked_tensor as mt
from masked_tensor.rules import padding

from . import signals, text
from .judge import LENGTHS, judge


def main() -> None:
    os.environ["TRANSFORMERS_VERBOSITY"] = "error"
    warnings.simplefilter("ignore")
    counts: Counter[str] = Counter()
    kinds: list[tuple[list[str], Callable[[str, str], str]]] = [(text.types(), _tokens), (signals.types(), _signal)]
    for names, said in kinds:
        for name in [n for n in names if n in sys.argv[1:] or len(sys.argv) == 1]:
            spy = mock.Mock(wraps=padding._ends)
            with mock.patch.object(padding, "_ends", spy):
                row = said(name, "default")
            if spy.called:
                with mt.meaning(padding="tensor"):
                    tensor = said(name, "default")
                print(f"{name:32} row: {row or 'exact':60} tensor: {tensor or 'exact'}", flush=True)
                counts["row"] += not row
                counts["tensor"] += not tensor
            gc.collect()
    print("exact:", dict(counts))


def _tokens(name: str, variant: str) -> str:
    """What is not exact, in words; nothing if all is."""
    try:
        model = text.build(name, variant, torch.float32)
        found = [judge(model, text.call, *text.inputs(model, -100, lengths)) for lengths in (LENGTHS, text.WHOLE)]
    except Exception as error:
        return str(error)[:50]
    return "; ".join(f"{v.outcome} {v.detail[:40]}" for v in found if v.outcome != "exact")


def _signal(name: str, variant: str) -> str:
    found: Any = signals.found(name, variant)
    return "" if found.outcome == "exact" else f"{found.outcome} {found.detail[:50]}"


if __name__ == "__main__":
    main()

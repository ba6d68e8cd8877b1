"""Who calls: the first frame beyond given files.  None of this decides what a number is.

Two more look themselves: ``numel()``, which is asked often, and ``compat.py``, which imports nothing of the package.
"""

import os
import sys
from pathlib import Path
from types import FrameType

import torch

#: The files of torch and of this package.
TORCH_FILES, OUR_FILES = (f"{Path(file).parent}{os.sep}" for file in (torch.__file__, __file__))


def first_caller(beyond: tuple[str, ...] = (), above: int = 1) -> tuple[FrameType | None, int]:
    """The first caller whose file is none of those, and how many calls above it is; None if there is none.

    It is looked for from so many calls above the function that asks.
    """
    frame: FrameType | None = sys._getframe(above + 1)
    while frame is not None and frame.f_code.co_filename.startswith(beyond):
        frame, above = frame.f_back, above + 1
    return frame, above


def line_of_user() -> int:
    """The ``stacklevel`` of a warning that its caller gives: that of the line outside of torch and this package."""
    _, above = first_caller((TORCH_FILES, OUR_FILES))
    return above


def is_running(frame: FrameType) -> bool:
    """Whether it is that of a caller."""
    found, _ = first_caller(above=2)
    while found is not None and found is not frame:
        found = found.f_back
    return found is not None

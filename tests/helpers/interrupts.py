"""Interrupts at every place at which CPython looks for signals: where a function begins, after a call, in a loop."""

import dis
import sys
from collections.abc import Callable
from functools import cache
from types import CodeType, FrameType
from typing import Any


@cache
def _places(code: CodeType) -> frozenset[int]:
    """The offsets before which CPython looks for signals."""
    if (code.co_name, code.co_filename.rpartition("/")[2]) in (("<lambda>", "known.py"), ("remove", "weakref.py")):
        return frozenset()  # what runs when a mask or a key dies: there CPython drops the interrupt
    found, before = set(), ""
    for instruction in dis.get_instructions(code):
        if before.startswith(("CALL", "RESUME", "JUMP_BACKWARD")):
            found.add(instruction.offset)
        if instruction.opname.startswith("JUMP_BACKWARD"):
            found.add(instruction.argval)
        if instruction.opname != "CACHE":
            before = instruction.opname
    return frozenset(found)


def run_interrupted(run: Callable[[], object], at: int | None) -> int:
    """Runs ``run``, with a KeyboardInterrupt at place ``at``, if it gets there; gives how many places it passed."""
    passed = 0

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal passed
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        if event == "opcode" and frame.f_lasti in _places(frame.f_code):
            passed += 1
            if passed - 1 == at:
                raise KeyboardInterrupt
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        run()
    except KeyboardInterrupt:
        pass
    finally:
        sys.settrace(before)
    return passed

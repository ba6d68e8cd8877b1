"""Which calls unpack packed tensors, because their ops have no packed rule: counted, for ``packing_report``."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ...settings import in_force
from ..table import Entry
from ..tensor import MaskedTensor


@dataclass(slots=True)
class Unpacked:
    """How often an op unpacked packed tensors, and how many bytes it made of them."""

    calls: int = 0
    bytes: int = 0


def report_unpack(entry: Entry, args: Sequence[Any], kwargs: dict[str, Any]) -> None:
    """A call of ``entry`` is about to unpack its packed arguments."""
    for report in in_force().reports:
        line = report.setdefault(entry.overload.name(), Unpacked())
        line.calls += 1
        line.bytes += sum(_bytes(a) for a in (*args, *kwargs.values()))


def _bytes(value: Any) -> int:
    if type(value) is list or type(value) is tuple:
        return sum(_bytes(v) for v in value)
    if type(value) is not MaskedTensor or value._packed is None or not value._packed.grid.host:
        return 0  # how large it is when a graph runs is not known, and asking would settle it
    return value.shape.numel() * value.element_size()

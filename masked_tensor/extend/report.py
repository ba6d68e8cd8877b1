"""A report of the ops that convert packed tensors to the padded layout."""

from dataclasses import replace

from ..engine.boundary.packing_report import Unpacked
from ..engine.contexts.setting import Setting
from ..settings import Settings


class Report(Setting):
    """A setting under which ops are counted that pad packed tensors; entered again it counts on."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: dict[str, Unpacked] = {}

    def begin(self) -> dict[str, Unpacked]:
        """The counts, by op."""
        return self.lines

    def change(self, before: Settings) -> Settings:
        """Also counts here, and only once."""
        others = (lines for lines in before.reports if lines is not self.lines)
        return replace(before, reports=(*others, self.lines))


def packing_report() -> Report:
    """A context that counts the operators that convert packed tensors to the padded layout.

    The result is a dict from operator names to the number of calls and the bytes allocated, and is empty if every
    operator had a packed rule. It counts the operators of the thread or asyncio task that enters the context. Used as a
    decorator, it has the counts in its attribute ``lines``.

    Returns:
        Report: A context manager, which returns the dict, and a decorator.

    Example:
        >>> x = mt.from_lengths(torch.ones(2, 3), [3, 1]).packed()
        >>> with mt.extend.packing_report() as report:
        ...     _ = x.exp().flip(1)
        >>> report
        {'aten::flip': Unpacked(calls=1, bytes=24)}
        >>> report = mt.extend.packing_report()
        >>> _ = report(lambda x: x.flip(1))(x)
        >>> list(report.lines)
        ['aten::flip']
    """
    return Report()

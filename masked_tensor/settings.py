"""What context managers set and rules read, and the numbers that decide between two ways.

There is one stack of settings for all context managers.  Each context of execution (a thread, an asyncio task) has its
own, as ``contextvars`` define it.  What is in force is one immutable record, made of what was entered and not left.

A number decides by a static fact (how many elements there are) and never what comes out, only how fast.  It is read
when it is needed, as ``settings.CHUNK``, so that a test or a benchmark changes it in one place.
"""

from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass, replace
from types import FrameType
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor

from .callers import is_running
from .compat import current_node, current_trace

WindowRule = Literal["core", "any", "all"]
ProductRule = Literal["any", "all"]
PaddingRule = Literal["row", "tensor"]
MismatchRule = Literal["and", "raise"]

#: What takes the place of ``total / number`` in the mean of a loss: (total, number, any valid, the op or its name) to
#: (mean, any valid).
Over = Callable[[Tensor, Tensor, Tensor, object], tuple[Tensor, Tensor]]


@dataclass(frozen=True, slots=True)
class Meaning:
    """A choice between honest meanings of an op, for each kind of op that has several."""

    convolution: WindowRule = "core"  #: how convolutions and their relatives judge a window that is partly masked
    renormalize: bool = False  #: whether a convolution divides by the valid fraction of its window
    product: ProductRule = "any"  #: how many of its terms a product needs
    padding: PaddingRule = "row"  #: where padding is attached: at each row's own end, or at the tensor's
    mismatch: MismatchRule = "and"  #: what elementwise ops do with masks that differ
    strict: bool = False  #: every convenience is an error
    in_gradient: bool = False  #: code that is not ours computes gradients: a masked entry is a 0


DEFAULT = Meaning()
GRADIENT = Meaning("any", False, "any", "tensor", "and", False, True)  #: a gradient takes nothing from what it meets


@dataclass(frozen=True, slots=True, eq=False)
class Settings:
    """All that is in force."""

    meaning: Meaning = DEFAULT
    factories: Any = None  #: the torch function mode by which torch.zeros and the like make masked tensors
    over: Over | None = None  #: how the mean of a loss is taken
    reports: tuple[dict[str, Any], ...] = ()  #: where ops are counted that pad packed tensors
    flat: Any = None  #: the torch function mode that keeps attention among flat tokens within each sequence


NOTHING = Settings()


class Entered:
    """One use of a setting, from when it is entered until it is left, in whichever thread or task that happens."""

    def __init__(self, owner: object, change: Callable[[Settings], Settings], mode: Any = None) -> None:
        self.owner, self.change, self.mode, self.left = owner, change, mode, False
        self.threads: list[int] = []  #: on whose stacks of torch function modes the mode was put
        self.seen: Settings | None = None  #: on top of which it last was, and what was then in force
        self.made = NOTHING

    def over(self) -> bool:
        """Whether it has ended for good."""
        return self.left

    def holds(self) -> bool:
        """Whether it is in force where this is asked."""
        return not self.left

    def after(self, before: Settings) -> Settings:
        """What is in force with it, on top of ``before``; the same record while ``before`` is the same."""
        if self.seen is not before:
            self.seen, self.made = before, self.change(before)
        return self.made


class InGradient(Entered):
    """The backward pass of code that is not ours, ``owner`` is its node."""

    def __init__(self, node: Any) -> None:
        super().__init__(node, lambda before: replace(before, meaning=GRADIENT))
        self.recording = torch.is_grad_enabled()  #: whether the formula itself is recorded (create_graph)

    def over(self) -> bool:
        """A node that raised is not left: it has ended when no backward pass runs."""
        return self.left or current_node() is None

    def holds(self) -> bool:
        """Whether what runs now is the formula: a forward pass that it runs again is recorded, or another's."""
        return not self.left and current_node() is self.owner and torch.is_grad_enabled() is self.recording


class InGraph(Entered):
    """What a compiled function enters; it ends with the trace, or with the call of a graph that runs as it is."""

    def __init__(self, change: Callable[[Settings], Settings], graph: FrameType | None) -> None:
        super().__init__(current_trace(), change)
        self.graph = graph if self.owner is None else None

    def over(self) -> bool:
        """A trace, or a graph, that raised does not leave what it entered."""
        return self.left or current_trace() is not self.owner or (self.graph is not None and not is_running(self.graph))

    def holds(self) -> bool:
        """Until it is over."""
        return not self.over()


STACK: ContextVar[tuple[Entered, ...]] = ContextVar("masked_tensor.settings", default=())


def in_force() -> Settings:
    """What is in force.  Forgets what has ended, so that nothing is looked at where nothing is in force."""
    settings = NOTHING
    for entered in STACK.get():
        if (type(entered) is Entered and not entered.left) or entered.holds():
            settings = entered.made if entered.seen is settings else entered.after(settings)
        elif entered.over():
            STACK.set(tuple(other for other in STACK.get() if not other.over()))
    return settings


def outside() -> tuple[Meaning, bool]:
    """What compiled code depends on: what is in force outside of the graph that is being made."""
    settings = NOTHING
    for entered in STACK.get():
        if type(entered) is not InGraph and entered.holds():
            settings = entered.after(settings)
    return settings.meaning, settings.factories is not None


def current() -> Meaning:
    """The meanings in force."""
    return in_force().meaning


def per_step(size: int) -> int:
    """How many elements a step of a loop works on whose steps have ``size`` with one thread."""
    return size if torch.get_num_threads() == 1 else max(size, SHARED)


# --------------------------------------------------------------------------------------------- numbers that decide how
# Elements, unless said.  Where two ways cross was measured by benchmarks/thresholds.py: CPU time of one thread,
# float32, random masks with 70 % valid, torch 2.13 on a busy AMD EPYC (2 MiB of L2, 32 MiB of L3), forward without
# gradients.  A number may lie to one side of where they cross, since other ops, dtypes or gradients cross elsewhere.

#: From here on a fill with 0 works on bits, in more calls than ``where``.  On ``fill_outside``: crosses at 2000; on
#: ``sum(1)`` in rows of 64: above 4000.
SMALL_ZERO = 1 << 11
#: The same for other fills, one call more.  On ``fill_outside``: crosses between 2000 and 8000.
SMALL_OTHER = 1 << 13
#: The same under a mask that is constant along rows, where ``where`` does not branch by the element.  On rows of 128:
#: crosses at 16 thousand.
SMALL_ROWS = 1 << 14
#: From here on a tracked fill is an ``autograd.Function`` of its own, whose backward works on bits; below it is torch's
#: ``where``.  On ``select`` and its backward: a third cheaper at 4096, even at 8 thousand, of other dtypes later.
RECORDED = 1 << 13
#: Per step of a fill, a sort or a reduction: what a step uses stays in cache.  On ``sum``, ``amax`` and ``prod`` of 16
#: million: half of it costs 1.2 to 1.4 times as much, twice of it between 0.9 and 1.35.
CHUNK = 1 << 18
#: Per step of such a loop, at least, where torch has several threads: every call waits for all of them.  With two
#: threads on a machine that has other work, ``layer_norm`` of 2 million, forward and backward: steps of a quarter
#: million cost 2.2 times as much.
SHARED = 1 << 21
#: From here on a reduction fills and reduces in steps: smaller copies stay in cache by themselves.  On ``sum(1)`` in
#: rows of 64: even at 2 million; it saves the memory of the copy, which this does not show.
LARGE = 1 << 19
#: Per step of a loop with several buffers.  On the norms of 2 million, forward and backward: a quarter of it costs 1.2
#: to 1.3 times as much, half of it 1.04 to 1.13 times, twice of it between 0.97 and 1.15.
PIECE = 1 << 18
#: The pieces of such a loop are made of stretches of memory at least so long.  On ``layer_norm``, contiguous: no
#: difference between 32 and 512; it is for strided data.
STRETCH = 128
#: Per step of a loop over moving windows, which has few buffers.  On rolling sums of 1 million: half of it costs 1.15
#: times as much, a quarter 1.6 times.
WINDOWS = 1 << 17
#: For medians, wider moving windows are sorted one by one, others merged of narrower ones.  On 60 thousand: merging
#: costs a quarter of sorting for windows of 64, 0.7 of it for 160.
MERGED = 200
#: How many numbers a scatter adds one after the other: each rounds, and the errors of more would show.
CHAIN = 64
#: Squares of so many numbers are added up one after the other: each rounds.  In pieces of rows of 512 that costs half.
ONE_BY_ONE = 1 << 12
#: Norms of fewer follow the formula step by step: fewer calls.  On ``layer_norm`` of rows of 64: crosses above 32
#: thousand forward, at 20 thousand with its gradient.
FORMULA = 1 << 14
#: From here on softmax fills, normalizes and clears in one loop.  On rows of 64, forward only: crosses at 16 thousand.
FUSED = 1 << 14
#: A mask of fewer bytes is looked at by torch's own ``any``, ``all`` and ``sum``, one call.  Crosses at 6 to 30
#: thousand.
FEW = 1 << 13
#: Of larger masks nothing is noted when they are taken in.  On ``masked_tensor(data, mask)`` of rows of 64: noting is a
#: quarter of it at 4 to 16 thousand, half of it at 262 thousand.
NOTED = 1 << 16
#: Not measured: ``flat`` is not verified beyond windows of so many steps.
TRIED = 1 << 8
#: Not measured: where outputs take at most so many values, ``flat`` compares them for several draws.
TELLING = 16
#: Not measured: so many draws are compared there.
DRAWS = 8
#: Not measured: of as many shapes the mask that is True everywhere is kept ready.
SHAPES = 1 << 8
#: Not measured: so many counts are kept with a mask, such as those of its slices along one dimension.
KEPT = 1 << 5
#: Not measured: what has more entries in memory is not kept with a mask.
KEPT_SIZE = 1 << 24
#: Bytes of a mask from which on they are counted eight at a time.  Along either dimension: crosses at 100 to 300
#: thousand.
COUNTED = 1 << 17
#: From here on ``topk`` looks at blocks of a row.  On 8 of rows of 4096: crosses between 130 and 520 thousand.
BLOCKS = 1 << 18
#: Sparse rules make a table of all positions for n stored keys if there are at most ``TABLE_OF * n + TABLE``.  On 16384
#: keys a table is 20 times as fast as a sort at 4 to one, 6 times at 64 to one: the limit is for its memory.
TABLE_OF = 4
TABLE = 1024
#: A product of up to so many columns with the transpose of a sparse matrix adds up column by column: for others torch
#: converts the pattern first.  On 10 million values: a column costs 0.2 s, the conversion 3.6 s.
COLUMNS = 16
#: Not measured: a pandas frame of more values is asked for its dtypes, which takes as long as to copy so many.  In a
#: smaller one it is looked whether it is one array, which lies where it lay when it is asked for again.
FRAME = 1 << 16


class NetCost(NamedTuple):
    """Microseconds of a recurrent kernel, forward and backward, for one layer."""

    call: float
    call_weight: float  #: for each entry of its matrices
    step: float
    step_weight: float
    row: float  #: for each step of each row and each of its gates
    row_weight: float


#: A padded batch goes through a recurrent net as it is, or in pieces that end where rows do: what costs less.  A fit by
#: least squares on nets of width 8 to 256, 1 to 90 rows and steps, mostly within 1.25 times.  The first is for an LSTM
#: of float32, for which torch has a kernel of all steps.
NET_COSTS = {
    "fused": NetCost(820.0, 0.0037, 6.7, 2.4e-5, 0.011, 7.7e-5),
    "lstm": NetCost(424.0, 0.0012, 222.0, 8e-4, 0.013, 1.3e-4),
    "gru": NetCost(424.0, 0.0012, 222.0, 8e-4, 0.013, 1.3e-4),
    "rnn_tanh": NetCost(315.0, 0.0013, 64.0, 2.7e-4, 0.0012, 1.5e-4),
}
#: Attention of a packed batch takes all sequences in one call, padded, if that computes at most so many needless terms
#: for each length that would be a call of its own. On batches of 8 to 32, both ways: crosses at 300 to 600 thousand.
TOGETHER = 1 << 18
#: Not measured: float32 holds no greater ranks exactly, and ``torch.quantile`` takes no longer slices.
EXACT = 1 << 24
#: Entries of a tile that a program of a GPU kernel holds at once.  On rows of 4096 on an H100, in a trial: 0.7 to 1.3
#: times the plain op.
GPU_TILE = 1 << 11
#: Not measured: columns side by side that such a program reads where the reduced dimension lies across them.
GPU_COLUMNS = 1 << 7
#: Not measured: programs that keep a large GPU busy, about eight for each of its processors: a reduction to fewer
#: results is shared.
GPU_PROGRAMS = 1 << 10
#: Not measured: a share of a reduction has at least so many tiles.
GPU_STEPS = 4
#: Not measured: at most so many programs share a reduction; one program joins their parts.
GPU_SPLITS = 1 << 10
#: Not measured: rows up to here are held at once, and read once; longer ones are read twice.
GPU_WHOLE = 1 << 13
#: Not measured: so many columns side by side are held as a whole, at least.
GPU_BESIDE = 1 << 5
#: What an index of 32 bits can hold, with room for a block: from here on it has 64.
GPU_NARROW = 1 << 30

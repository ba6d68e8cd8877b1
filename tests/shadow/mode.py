"""The mode under which a test runs: it lets each call of torch through, and repeats it on copies."""

import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, TextIO

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode, resolve_name

import masked_tensor as mt

from .compare import Outcome, differentiate, differing_gradients, differs, repeat, shares
from .copies import Arguments, Masking, Unfit
from .declared import declared

TIMES = 2  # by default: how often a call is repeated that is the same but for values
GARBAGE = (float("nan"), float("inf"), 1e30)
FAILED = "SHADOW FAILED"
DOCUMENTED = (mt.UnsupportedOpError, mt.MaskedWriteError, mt.MaskedValueError)

# What a test asks of a tensor as an object, of the graph, or of the machine.
PASSED_OVER = {
    *("backward", "retain_grad", "register_hook", "register_post_accumulate_grad_hook", "requires_grad_", "grad"),
    *("data_ptr", "storage", "untyped_storage", "_typed_storage", "storage_type", "share_memory_", "is_shared"),
    *("__repr__", "__str__", "__format__", "__hash__", "__reduce_ex__", "__deepcopy__", "__setstate__", "__dir__"),
    *("__dlpack__", "__dlpack_device__", "to_dlpack", "numpy", "__array__", "__array_wrap__", "set_", "as_subclass"),
    *(
        "_make_subclass",
        "_make_wrapper_subclass",
        "pin_memory",
        "is_pinned",
        "__delete__",
        "set_data",
        "apply_",
        "map_",
    ),
    *("map2_", "tolist", "__iter__", "_backward_hooks", "__cuda_array_interface__", "record_stream", "get_device"),
    *("split_with_sizes_copy", "_is_view", "_use_count", "result_type", "can_cast", "is_storage", "__sizeof__"),
}
GETTERS = {"T", "mT", "H", "mH", "real", "imag", "shape", "ndim", "dtype", "is_leaf", "requires_grad", "data"}


def name_of(function: Callable[..., Any]) -> str | None:
    """The name of a torch function, or None for what is not repeated."""
    name = getattr(function, "__name__", "")
    if name in ("__get__", "__set__", "__delete__"):
        attribute = getattr(getattr(function, "__self__", None), "__name__", "")
        return f"Tensor.{attribute}" if name == "__get__" and attribute in GETTERS else None
    return None if name in PASSED_OVER else resolve_name(function) or name


def as_called(function: Callable[..., Any]) -> Callable[..., Any]:
    """A method as users call it, so that the class of its first argument may have its own."""
    name = getattr(function, "__name__", "")
    if getattr(Tensor, name, None) is not function:
        return function
    return lambda first, *args, **kwargs: getattr(first, name)(*args, **kwargs)


def computes(outcome: Outcome) -> bool:
    """Whether a call made numbers: a result in a memory of its own, or a write."""
    results = [x for x in outcome.leaves if isinstance(x, Tensor) and x.shape.numel()]
    tensors = outcome.built.tensors
    return any(not any(shares(x, y) for y in tensors) for x in results) or any(
        x.shape.numel() for x in outcome.built.written()
    )


@dataclass
class Found:
    """A difference nobody has explained."""

    test: str
    name: str
    which: str
    detail: str
    call: str


@dataclass
class Report:
    """What became of the calls."""

    counts: Counter[str] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    found: list[Found] = field(default_factory=list)
    functions: set[str] = field(default_factory=set)

    def failures(self) -> int:
        """How often the shadow itself failed: calls that were not compared."""
        return sum(number for what, number in self.counts.items() if what.startswith(FAILED))


class Shadow(TorchFunctionMode):
    """Repeats calls; ``garbage`` masks entries at random and compares what lies under the mask."""

    def __init__(
        self, garbage: bool = False, log: TextIO | None = None, times: int = TIMES, most: int | None = None
    ) -> None:
        super().__init__()
        self.garbage = garbage
        self.log = log
        self.limit = times
        self.most = most
        self.test = ""
        self.report = Report()
        self.times: Counter[Any] = Counter()

    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        name = name_of(function)
        arguments = (
            self.kept(name, args, kwargs)
            if name and not torch.compiler.is_compiling() and not torch.jit.is_tracing()
            else None
        )
        before = torch.get_rng_state() if arguments else None
        try:
            return function(*args, **kwargs)
        finally:
            if arguments is not None:
                after = torch.get_rng_state()
                try:
                    with warnings.catch_warnings():
                        warnings.simplefilter("ignore")
                        self.repeated(name, function, arguments, before)
                except Unfit as reason:
                    self.report.counts[str(reason)] += 1
                except Exception as error:  # a fault of the shadow's, not of the test's
                    where = traceback.extract_tb(error.__traceback__)[-1]
                    told = f"{FAILED} {type(error).__name__} {str(error)[:99]} {where.filename}:{where.lineno}"
                    self.report.counts[told] += 1
                    if self.log:
                        print(f"{name}: {told} {self.test}", file=self.log, flush=True)
                finally:
                    torch.set_rng_state(after)

    def kept(self, name: str, args: Any, kwargs: Any) -> Arguments | None:
        """The arguments as they are before the call, unless it is not to be repeated."""
        if not any(isinstance(x, Tensor | list | tuple | dict) for x in (*args, *kwargs.values())):
            return None
        try:
            arguments = Arguments.of(args, kwargs)
        except Unfit as reason:
            self.report.counts[str(reason)] += 1
            return None
        key = (name, arguments.shape(), torch.is_grad_enabled())
        self.times[key] += 1
        if self.times[key] > self.limit:
            self.report.counts["the same call again"] += 1
            return None
        self.times[self.test, name] += 1
        if self.most is not None and self.times[self.test, name] > self.most:
            self.report.counts["more calls of one function in a test"] += 1
            return None
        return arguments

    def repeated(self, name: str, function: Any, arguments: Arguments, seed: Tensor) -> None:
        tracks = (
            torch.is_grad_enabled()
            and arguments.differentiable()
            and not any(x.requires_grad for x in arguments.tensors)
        )
        for tracked in (False, True) if tracks else (False,):
            compare = self.with_garbage if self.garbage else self.with_nothing_masked
            if not compare(name, function, arguments, seed, tracked):
                return

    def which(self, arguments: Arguments) -> Iterator[tuple[str, frozenset[int]]]:
        """All tensors, the first, the second."""
        count = len(arguments.tensors)
        yield "all", frozenset(range(count))
        for i, word in enumerate(("first", "second")[: count if count > 1 else 0]):
            chosen = {i}
            if self.garbage:  # who shares memory shares garbage
                chosen = {j for j in range(count) if arguments.homes[j] == arguments.homes[i]}
            if len(chosen) < count:
                yield word, frozenset(chosen)

    def with_nothing_masked(self, name: str, function: Any, arguments: Arguments, seed: Tensor, tracked: bool) -> bool:
        """Compares with the plain call; False where the plain call cannot be differentiated."""
        plain = self.run(function, arguments, Masking(), seed, tracked)
        if tracked and plain.error is not None:
            return False
        for which, chosen in self.which(arguments):
            ours = self.run(function, arguments, Masking(chosen), seed, tracked)
            self.judge(name, which, ours, plain, arguments, chosen, tracked)
        return plain.error is None and bool(plain.leaves)

    def with_garbage(self, name: str, function: Any, arguments: Arguments, seed: Tensor, tracked: bool) -> bool:
        """Compares calls of masked tensors with what lay there and with garbage under the mask."""
        for which, chosen in self.which(arguments):
            clean = self.run(function, arguments, Masking(chosen, 0.65), seed, tracked)
            for garbage in GARBAGE:
                ours = self.run(function, arguments, Masking(chosen, 0.65, garbage), seed, tracked)
                self.judge(name, which, ours, clean, arguments, chosen, tracked)
        return True

    @staticmethod
    def run(function: Any, arguments: Arguments, masking: Masking, seed: Tensor, tracked: bool) -> Outcome:
        """One repetition and its gradients."""
        outcome = repeat(as_called(function), arguments, masking, seed, tracked)
        writes = function.__name__.endswith("_")
        if outcome.error is None and torch.is_grad_enabled():
            try:
                differentiate(outcome, writes)
            except Exception as error:
                outcome.gradient_error = error
        return outcome

    def judge(
        self,
        name: str,
        which: str,
        ours: Outcome,
        theirs: Outcome,
        arguments: Arguments,
        chosen: frozenset[int],
        tracked: bool,
    ) -> None:
        """Counts one comparison, and keeps what differs without a reason."""
        report = self.report
        report.functions.add(name)
        refused = isinstance(ours.error, DOCUMENTED)
        if refused and not self.garbage and theirs.error is None:
            self.refuse(name, ours)
            return
        details = list(differs(ours, theirs, name, self.garbage))
        if theirs.error is None and ours.error is None and theirs.gradient_error is None:
            if ours.gradient_error is not None:
                details.append(
                    f"gradient: raises {type(ours.gradient_error).__name__}: {str(ours.gradient_error).splitlines()[0]}"
                )
            else:
                details += differing_gradients(ours, theirs, self.garbage)
        left = []
        entries = [declared(name, detail, arguments, chosen, theirs, self.garbage) for detail in details]
        for detail, entry in zip(details, entries, strict=True):
            if entry:
                report.reasons[f"{entry.reason}: {name}"] += 1
            else:
                left.append(detail)
        if left:
            self.tell(name, which + (", tracked" if tracked else ""), left, ours, arguments)
        elif details:
            report.counts["known faults" if any(entry and entry.known for entry in entries) else "declared"] += 1
        elif refused and self.garbage:
            self.refuse(name, ours)
        elif theirs.error is not None:
            report.counts["both raise"] += 1
        else:
            report.counts["computed" if computes(theirs) else "views and questions"] += 1
            report.counts["gradients"] += ours.gradients is not None

    def refuse(self, name: str, ours: Outcome) -> None:
        self.report.counts["refused"] += 1
        self.report.refused[f"{name} ({type(ours.error).__name__})"] += 1

    def tell(self, name: str, which: str, details: list[str], ours: Outcome, arguments: Arguments) -> None:
        self.report.counts["DIFFERENT"] += 1
        shown = [
            f"{str(x.dtype)[6:]}{list(x.shape)}" if isinstance(x, Tensor) else repr(x)[:40] for x in arguments.leaves
        ]
        if self.log:
            print(
                f"{name}: {which}: {'; '.join(details)[:300]} ({', '.join(shown)[:200]}) {self.test}",
                file=self.log,
                flush=True,
            )
        self.report.found.append(Found(self.test, name, which, "; ".join(details)[:400], ", ".join(shown)[:300]))

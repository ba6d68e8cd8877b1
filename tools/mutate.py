"""Changes the functions of the package in one place after the other, and tells which changes no test notices.

    python tools/mutate.py record                    # which test executes which line; needs the package coverage
    python tools/mutate.py run --count 300 --seed 0  # so many mutants, of every room as many, and a table
    python tools/mutate.py run tests/test_x.py --only FILE  # those that are named there, by the tests of one file

A mutant changes an operator, a comparison, a constant, a condition, a dtype or what is returned. It counts as reached
if a recorded test executes its line. Such tests run, the quickest of each file in turn, up to ``--seconds`` of what
they took. It is killed if one fails that passes without the mutant, after the same tests. What runs on import (tables,
defaults, decorators) is left out. Own code, since mutmut leaves out decorated functions and adds a frame to the others,
and cosmic-ray imports torch and collects the tests anew for each. Here a mutant is a fork whose functions get new code.
"""

import argparse
import ast
import copy
import gc
import json
import os
import random
import signal
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import pytest
from _pytest.runner import runtestprotocol

ROOT = Path(__file__).parent.parent
RECORDS = ROOT / "build" / "mutate"  #: of each test file: its tests, their seconds, and the tests of each line
SWAPPED = "Add Sub, BitAnd BitOr, LShift RShift, Lt LtE, Gt GtE, Eq NotEq, Is IsNot, In NotIn, And Or, Mult Div"
OTHER = {a: b for pair in SWAPPED.split(", ") for a, b in (pair.split(), pair.split()[::-1])}
OTHER |= {"FloorDiv": "Mult", "Mod": "Mult", "Pow": "Mult", "BitXor": "BitOr"}
NAMED = {"any": "all", "amin": "amax", "minimum": "maximum", "floor": "ceil"}
NAMED |= {b: a for a, b in NAMED.items()} | {"float64": "float32", "float32": "float16", "int64": "int32"}


def returned(node: ast.Return, function: Any) -> ast.expr | None:
    """What else the function could return: a tuple in another order, another name instead of a name."""
    if isinstance(node.value, ast.Tuple) and len(node.value.elts) > 1:
        return ast.Tuple(node.value.elts[::-1], ast.Load())
    names = [n.arg for n in function.args.args] + [n.id for n in ast.walk(function) if isinstance(n, ast.Name)]
    others = [name for name in names if isinstance(node.value, ast.Name) and name not in (node.value.id, "self", "cls")]
    return ast.Name(others[0], ast.Load()) if others else None


def changes(node: Any, function: Any) -> Iterator[tuple[str, Callable[[Any], Any]]]:
    """What becomes of a node: a few words, and what makes it of a copy."""
    put = partial(partial, lambda node, **fields: vars(node).update(fields) or node)
    match node:
        case ast.BinOp(op=op) | ast.AugAssign(op=op) | ast.BoolOp(op=op) if (name := type(op).__name__) in OTHER:
            yield f"{name} to {OTHER[name]}", put(op=getattr(ast, OTHER[name])())
        case ast.Compare(ops=[op]) if (name := type(op).__name__) in OTHER:
            yield f"{name} to {OTHER[name]}", put(ops=[getattr(ast, OTHER[name])()])
        case ast.UnaryOp(op=ast.Not() | ast.USub() | ast.Invert()):
            yield f"no {type(node.op).__name__}", lambda node: node.operand
        case ast.If() | ast.IfExp() | ast.While() if not isinstance(node.test, ast.Compare | ast.UnaryOp):
            yield "condition negated", put(test=ast.UnaryOp(ast.Not(), node.test))
        case ast.Constant(value=bool(value)):
            yield f"{value} to {not value}", put(value=not value)
        case ast.Constant(value=int(value) | float(value)):
            yield f"{value} to {value + 1}", put(value=value + 1)
        case ast.Attribute(attr=name, ctx=ast.Load()) if name in NAMED:
            yield f"{name} to {NAMED[name]}", put(attr=NAMED[name])
        case ast.Return() if other := returned(node, function):
            yield f"returns {ast.unparse(other)}", put(value=other)


class Mutants(ast.NodeTransformer):
    """The mutants of a source, each by its name; the ``wanted`` one is made."""

    def __init__(self, wanted: str = "") -> None:
        self.wanted, self.function, self.found = wanted, None, {}  #: of each that is found the line

    def visit(self, node: Any) -> Any:
        if isinstance(node, ast.Raise | ast.JoinedStr | ast.Assert) or getattr(node, "arg", "") == "strict":
            return node  # what people read, and what code says of itself
        if isinstance(node, ast.AnnAssign):
            node.annotation = ast.Constant(None)
        for words, make in list(changes(node, self.function)) if self.function else ():
            name = f"{node.lineno}:{node.col_offset} {words}"
            self.found[name] = node.lineno
            if name == self.wanted:
                return ast.copy_location(make(copy.deepcopy(node)), node)
        return super().visit(node)

    def visit_FunctionDef(self, node: Any) -> Any:
        outside, self.function = self.function, node
        node.body = [self.visit(statement) for statement in node.body]
        self.function = outside
        return node


def codes(code: CodeType) -> list[CodeType]:
    inner = [constant for constant in code.co_consts if isinstance(constant, CodeType)]
    return inner + [deeper for one in inner for deeper in codes(one)]


def key(code: CodeType) -> tuple[str, str, int]:
    return os.path.relpath(code.co_filename, ROOT), getattr(code, "co_qualname", code.co_name), code.co_firstlineno


class Plugin:
    """Instead of the collected tests runs what is asked, each time in a fork."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options, self.functions = options, defaultdict(list)

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        self.items = {item.nodeid: item for item in session.items}
        gc.unfreeze()  # else it shows nothing of what was collected
        for function in gc.get_objects():
            if type(function) is FunctionType and "masked_tensor" in function.__code__.co_filename:
                self.functions[key(function.__code__)].append(function)
        gc.freeze()
        self.record() if self.options.verb == "record" else self.mutate()
        return True

    def fork(self, work: Callable[[], Any], limit: float) -> Any:
        """What the work gives, in a process of its own; None if it takes too long."""
        reader, writer = os.pipe()
        if not (child := os.fork()):
            signal.alarm(int(limit) + 1)
            for stream in (0, 1, 2):
                os.dup2(os.open(os.devnull, os.O_RDWR), stream)
            try:
                os.write(writer, json.dumps(work()).encode())
            finally:
                os._exit(0)
        os.close(writer)
        with os.fdopen(reader, "rb") as stream:
            answer = stream.read()
        os.waitpid(child, 0)
        return json.loads(answer) if answer else None

    def passes(self, nodeid: str) -> bool:
        return not any(report.failed for report in runtestprotocol(self.items[nodeid], log=False, nextitem=None))

    def record(self) -> None:
        RECORDS.mkdir(parents=True, exist_ok=True)
        for file in dict.fromkeys(nodeid.partition("::")[0] for nodeid in self.items):
            nodeids = [nodeid for nodeid in self.items if nodeid.partition("::")[0] == file]
            target = RECORDS / (file.replace("/", ".") + ".json")
            work = partial(self.record_file, nodeids, target)
            print(file, self.fork(work, 20 * self.options.seconds + 60), "of", len(nodeids), flush=True)

    def record_file(self, nodeids: list[str], target: Path) -> int:
        import coverage

        measured = coverage.Coverage(data_file=None, config_file=False, source=[str(ROOT / "masked_tensor")])
        chance, began, seconds, lines = random.Random(0), time.process_time(), {}, {}
        measured.start()
        for nodeid in chance.sample(nodeids, len(nodeids)):
            measured.switch_context(nodeid)
            start = time.process_time()
            self.passes(nodeid)
            seconds[nodeid] = round((now := time.process_time()) - start, 3)
            if now - began > self.options.seconds:
                break
        measured.stop()
        for file in (data := measured.get_data()).measured_files():
            known = {line: [nodeid for nodeid in by if nodeid] for line, by in data.contexts_by_lineno(file).items()}
            lines[os.path.relpath(file, ROOT)] = {n: chance.sample(by, min(60, len(by))) for n, by in known.items()}
        target.write_text(json.dumps({"seconds": seconds, "lines": lines}))
        return len(seconds)

    def tests_of(self, file: str, line: int) -> list[str]:
        """Those that execute a line, the quickest of each test file in turn, as long as there is time for."""
        turns, chosen, left = [], [], self.options.seconds
        for record in self.records:
            known = [n for n in record["lines"].get(file, {}).get(str(line), []) if n in self.items]
            turns += [(turn, *one) for turn, one in enumerate(sorted((record["seconds"][n], n) for n in known))]
        for _, seconds, nodeid in sorted(turns):
            if seconds <= left:
                chosen.append(nodeid)
                left -= seconds
        return chosen

    def verdict(self, file: str, wanted: str, line: int) -> tuple[str, str]:
        tests = self.tests_of(file, line)
        tree = ast.fix_missing_locations(Mutants(wanted).visit(ast.parse((ROOT / file).read_text())))
        found = codes(compile(tree, ROOT / file, "exec"))
        changed = [(function, code) for code in found for function in self.functions[key(code)]]
        if any(function.__code__.co_freevars != code.co_freevars for function, code in changed):
            return "not reached", "a function cannot have this code"

        def first_failure(mutant: bool, tests: list[str]) -> list[str]:
            for function, code in changed if mutant else ():
                function.__code__ = code
            return next(([nodeid] for nodeid in tests if not self.passes(nodeid)), [])

        while tests:
            failure = self.fork(partial(first_failure, True, tests), 10 * self.options.seconds)
            if failure == []:
                return "survived", f"{len(tests)} tests"
            before = tests[: tests.index(failure[0]) + 1] if failure else tests  # without one: it hangs, or ends itself
            if (control := self.fork(partial(first_failure, False, before), 10 * self.options.seconds)) == []:
                return "killed", failure[0] if failure else "no end"
            tests = [nodeid for nodeid in tests if control and nodeid not in control]
        return "not reached", ""

    def mutate(self) -> None:
        self.records = [json.loads(path.read_text()) for path in sorted(RECORDS.glob("*.json"))]
        tally = defaultdict(Counter)
        for room, file, wanted, line in sampled(self.options):
            verdict, words = self.verdict(file, wanted, line)
            tally[room][verdict] += 1
            print(f"{verdict:12} {file}:{wanted}  [{words}]", flush=True)
        print(f"\n{'room':14}{'mutants':>9}{'reached':>9}{'killed':>8}{'share':>8}")
        for name, counts in [*sorted(tally.items()), ("all", sum(tally.values(), Counter()))]:
            reached = (killed := counts["killed"]) + counts["survived"]
            print(f"{name:14}{sum(counts.values()):9}{reached:9}{killed:8}{killed / max(reached, 1):8.0%}")


def sampled(options: argparse.Namespace) -> list[tuple[str, str, str, int]]:
    """(room, file, mutant, line), of one room after the other, in an order that the seed gives."""
    rooms = defaultdict(list)
    for path in sorted((ROOT / "masked_tensor").rglob("*.py")):
        file = str(path.relative_to(ROOT))
        room = file.split("/")[1] if file.count("/") > 1 else "(top)"
        (finder := Mutants()).visit(ast.parse(path.read_text()))
        rooms[room] += [(room, file, name, line) for name, line in finder.found.items()]
    if options.only:
        listed = Path(options.only).read_text()
        return [one for several in rooms.values() for one in several if f"{one[1]}:{one[2]}  " in listed]
    for name, several in rooms.items():
        random.Random(f"{options.seed} {name}").shuffle(several)
    turns = [(turn, one) for name in options.rooms or rooms for turn, one in enumerate(rooms[name])]
    return [one for _, one in sorted(turns)[: options.count]]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("verb", choices=["record", "run"])
    parser.add_argument("tests", nargs="*", help="test files; none: all")
    parser.add_argument("--rooms", nargs="*", default=[])
    parser.add_argument("--only", default="", help="a file whose lines name mutants, such as what a run printed")
    for name, value in (("--count", 300), ("--seed", 0), ("--seconds", 4.0)):
        parser.add_argument(name, type=type(value), default=value)
    sys.path.insert(0, str(ROOT))
    os.chdir(ROOT)
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    given = parser.parse_args()
    sys.exit(pytest.main(["-q", "-s", "-p", "no:cacheprovider", *given.tests], [Plugin(given)]))

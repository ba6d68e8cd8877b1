"""The wording of every error that the package raises, read from its source."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

PACKAGE = Path(__file__).parent.parent.parent / "masked_tensor"


def templates() -> dict[str, str]:
    """``file:line`` of every error with a message of its own, and a pattern that its message matches."""
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            message = _message(node)
            if message is not None:
                place, pattern = f"{path.relative_to(PACKAGE)}:{node.lineno}", _pattern(message)
                found[place] = pattern if _name(node) != "NoForm" else rf".*? \({pattern}\); use x.to_dense.*"
    return found


def _message(node: ast.AST) -> ast.expr | None:
    """The message of an exception made here; those that a function of errors.py words are found there."""
    if not isinstance(node, ast.Call) or not node.args or isinstance(node.args[0], ast.Starred):
        return None
    return node.args[0] if _name(node).endswith(("Error", "NoForm")) else None


def _name(node: ast.AST) -> str:
    """What is called."""
    func = getattr(node, "func", node)
    kind = func.body if isinstance(func, ast.IfExp) else func  # (TypeError if ... else ValueError)(...)
    return kind.attr if isinstance(kind, ast.Attribute) else getattr(kind, "id", "")


def _pattern(message: ast.expr) -> str:
    return "".join(_parts(message))


def _parts(message: ast.expr) -> Iterator[str]:
    if isinstance(message, ast.Constant):
        yield re.escape(str(message.value))
    elif isinstance(message, ast.JoinedStr):
        for part in message.values:
            yield from _parts(part)
    elif isinstance(message, ast.BinOp):
        yield from _parts(message.left)
        yield from _parts(message.right)
    else:
        yield ".*?"


def literals(path: Path) -> list[str]:
    """Every string that stands in a file."""
    tree = ast.parse(path.read_text())
    return [n.value for n in ast.walk(tree) if isinstance(n, ast.Constant) and isinstance(n.value, str)]

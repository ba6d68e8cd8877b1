"""Names as docs/importing.md writes them: ``module.{a, b}`` for two names, and ``- `module`: `a`, `b``` for lists."""

import re


def braced(text: str) -> set[str]:
    """The names in backticks, with braces spelled out: ``a.{b, c}`` is ``a.b`` and ``a.c``."""
    return {name for code in re.findall(r"(?<!\})`([^`]+)`", text) for name in _spelled(code)}


def listed(page: str) -> set[str]:
    """All names on a page. In an item of a list, the first is the module of the others."""
    found = braced(page)
    for item in re.findall(r"^- `([\w.]+)`: ((?:.+\n)+?)(?=- |\n|\Z)", page, re.MULTILINE):
        found |= {f"{item[0]}.{name}" for name in braced(item[1])}
    return found


def _spelled(code: str) -> list[str]:
    group = re.search(r"\{([^}]*)\}", code)
    if group is None:
        return [code]
    return [code[: group.start()] + part.strip() + code[group.end() :] for part in group[1].split(",")]

"""The language of the pages: common words, and short sentences."""

import ast
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
FRONT = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / ".github").rglob("*.md"))]
PAGES = [*FRONT, *sorted(DOCS.glob("*.md")), *sorted((ROOT / "tutorials").rglob("*.py"))]
MADE = ("libraries.md", "models.md")  # their cells quote errors and lists of names
SHORT = [*FRONT, *(page for page in sorted(DOCS.glob("*.md")) if page.name not in MADE)]
PRIVATE = r"\b(holes?|payloads?|spread|doors?|wings?|houses?|lent|twins?|sisters?|kin)\b"
LONGEST = 30  # words in a sentence


def text(page: Path) -> str:
    """Without blocks of code, code in a line and where a link leads."""
    blocks = re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    return re.sub(r"`[^`]*`|\]\([^)]*\)", " code ", blocks)


def sentences(page: Path) -> list[str]:
    """Cells of tables, headings and items of lists end a sentence, too; a list of names alone is none."""
    parts = re.split(r"\n\s*\n|\n(?=[-#:|*\d])|\||(?<=[.!?:])\s", text(page))
    return [" ".join(part.split()) for part in parts if set(part.split()) - {"code", ","}]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_no_page_uses_private_words(page: Path) -> None:
    allowed = ["hole"] if page.name == "glossary.md" else []
    assert [found.lower() for found in re.findall(PRIVATE, text(page), re.IGNORECASE)] == allowed


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_no_page_uses_what_no_native_speaker_says(page: Path) -> None:
    """Past the end; is not a tensor; silently; Hugging Face's models."""
    foreign = r"\b(behind the end|(is|are) no (tensors?|multiple)|without a word|(models?|types) of transformers)\b"
    assert re.findall(foreign, " ".join(text(page).split()), re.IGNORECASE) == []


@pytest.mark.parametrize("page", SHORT, ids=lambda page: page.name)
def test_sentences_are_short(page: Path) -> None:
    assert not [sentence for sentence in sentences(page) if len(sentence.split()) > LONGEST]


def test_sentences_are_found() -> None:
    assert sum(len(sentences(page)) for page in SHORT) > 2000


def comments(path: Path) -> Iterator[str]:
    """The comments and docstrings of a file."""
    with tokenize.open(path) as file:
        yield from (t.string for t in tokenize.generate_tokens(file.readline) if t.type == tokenize.COMMENT)
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
            yield ast.get_docstring(node) or ""


def test_the_code_calls_what_lies_under_the_mask_masked_out_data() -> None:
    """``Payload`` is the type of what is known of it, and ``payload`` the field: these are code."""
    files = [*(ROOT / "masked_tensor").rglob("*.py")]
    assert len(files) > 200
    code = r"``.*?``|payload \(Payload.*?\)|payload=|\.payload\b|Payload\.\w+|>>> .*"
    said = [(path.name, re.sub(code, "", text)) for path in files for text in comments(path)]
    assert [(name, text) for name, text in said if re.search(r"\bpayloads?\b", text)] == []

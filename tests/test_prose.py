"""The language of the pages: common words, and short sentences where a newcomer starts."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *sorted(DOCS.glob("*.md")), *sorted((ROOT / "tutorials").rglob("*.py"))]
FIRST = [ROOT / "README.md", DOCS / "index.md", DOCS / "quickstart.md", DOCS / "cheatsheet.md"]
PRIVATE = r"\b(holes?|payloads?|spread|doors?|wings?|houses?|lent|twins?|sisters?|kin)\b"
LONGEST = 30  # words in a sentence


def text(page: Path) -> str:
    """Without blocks of code, code in a line and where a link leads."""
    blocks = re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    return re.sub(r"`[^`]*`|\]\([^)]*\)", " code ", blocks)


def sentences(page: Path) -> list[str]:
    """Cells of tables, headings and items of lists end a sentence, too."""
    parts = re.split(r"\n\s*\n|\n(?=[-#:|*\d])|\||(?<=[.!?:])\s", text(page))
    return [" ".join(part.split()) for part in parts if part.strip()]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_no_page_uses_private_words(page: Path) -> None:
    allowed = ["hole"] if page.name == "glossary.md" else []
    assert [found.lower() for found in re.findall(PRIVATE, text(page), re.IGNORECASE)] == allowed


@pytest.mark.parametrize("page", FIRST, ids=lambda page: page.name)
def test_sentences_of_the_first_pages_are_short(page: Path) -> None:
    found = sentences(page)
    assert len(found) > 10
    assert not [sentence for sentence in found if len(sentence.split()) > LONGEST]

"""Figures of the pages, and the logo: small grids of valid entries, gaps and padding, drawn as SVG."""

from collections.abc import Sequence
from pathlib import Path

import torch
import torch.nn.functional as F

import masked_tensor as mt

CELL, GAP = 34, 4  # pixels
VALID, MISSING, PADDING, WRONG = "#4c6ef5", "#f59f00", "#dee2e6", "#e03131"
#: What a letter of a row stands for: its colour.
COLOURS = {"v": VALID, "g": MISSING, "-": PADDING, "x": WRONG, "l": "#a5b4fc"}
TEXT = 'font-family="sans-serif" font-size="14" fill="#343a40"'


def row(letters: str, left: int, top: int, values: Sequence[str] = ()) -> str:
    """A row of cells; a blank leaves one out."""
    parts = []
    for place, letter in enumerate(letters):
        if letter == " ":
            continue
        x = left + place * (CELL + GAP)
        parts.append(f'<rect x="{x}" y="{top}" width="{CELL}" height="{CELL}" rx="5" fill="{COLOURS[letter]}"/>')
        if place < len(values):
            dark = letter in "-l"
            parts.append(
                f'<text x="{x + CELL / 2}" y="{top + 22}" text-anchor="middle" font-family="sans-serif" '
                f'font-size="13" fill="{"#343a40" if dark else "white"}">{values[place]}</text>'
            )
    return "".join(parts)


def text(words: str, left: int, top: int) -> str:
    return f'<text x="{left}" y="{top}" {TEXT}>{words}</text>'


def legend(letters: dict[str, str], left: int, top: int) -> str:
    parts = []
    for letter, words in letters.items():
        parts.append(f'<rect x="{left}" y="{top}" width="14" height="14" rx="3" fill="{COLOURS[letter]}"/>')
        parts.append(text(words, left + 20, top + 12))
        left += 36 + 8 * len(words)
    return "".join(parts)


def svg(width: int, height: int, title: str, *parts: str) -> str:
    """A picture on white, which is readable on a dark page as well."""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        f'role="img"><title>{title}</title><rect width="{width}" height="{height}" rx="8" fill="white"/>'
        f"{''.join(parts)}</svg>\n"
    )


def batch() -> str:
    """Sequences of 5, 3 and 4 steps, of which one has a gap."""
    step = CELL + GAP
    return svg(
        470,
        210,
        "A masked batch: valid entries, a gap and padding",
        row("vvgvv", 130, 20, ["1.2", "0.7", "?", "1.1", "0.9"]),
        row("vvv--", 130, 20 + step, ["2.0", "1.8", "1.9"]),
        row("vgvv-", 130, 20 + 2 * step, ["0.4", "?", "0.6", "0.5"]),
        *(text(f"sequence {i}", 20, 42 + i * step) for i in range(3)),
        *(text(words, 330, 42 + i * step) for i, words in enumerate(("mean of 4", "mean of 3", "mean of 3"))),
        legend({"v": "valid", "g": "a gap: not known", "-": "padding: does not exist"}, 20, 160),
    )


def leak() -> str:
    """A window over zeros changes the last steps of a short sequence; a masked one does not."""
    step = CELL + GAP
    return svg(
        580,
        190,
        "Padding leaks into the last steps, masked padding does not",
        text("alone", 20, 42),
        row("vvv", 170, 20),
        text("padded with zeros", 20, 42 + step),
        row("vvx--", 170, 20 + step),
        text("the last step sees zeros", 370, 42 + step),
        text("masked", 20, 42 + 2 * step),
        row("vvv--", 170, 20 + 2 * step),
        text("every step as alone", 370, 42 + 2 * step),
        legend({"v": "result as alone", "x": "another result", "-": "padding"}, 20, 150),
    )


def packed() -> str:
    """Only the valid steps are stored, one after the other."""
    step = CELL + GAP
    return svg(
        560,
        236,
        "Packed storage keeps the valid steps, one sequence after the other",
        text("padded: 15 steps computed", 20, 34),
        row("vvvvv", 20, 44),
        row("lll--", 20, 44 + step),
        row("gg---", 20, 44 + 2 * step),
        text("packed: 10 steps computed", 20, 176 + 2),
        row("vvvvvlllgg", 20, 184),
    )


def windows() -> str:
    """Which results of a window of three are valid, as the package gives them."""
    x = mt.masked_tensor([[[1.0, 1.0, None, 1.0, 1.0, 1.0, None, None]]])
    step = CELL + GAP
    parts = [row("vvgvvv--", 90, 20), text("input", 20, 42)]
    for i, (name, words) in enumerate(WINDOWS.items(), 1):
        with mt.meaning(convolution=name):
            valid = F.conv1d(x, torch.ones(1, 1, 3), padding=1).mask[0, 0].tolist()
        parts.append(row("".join("v" if v else "-" for v in valid), 90, 20 + i * step))
        parts += [text(name, 20, 42 + i * step), text(words, 410, 42 + i * step)]
    return svg(
        740,
        215,
        "A convolution with a window of three and a padding of one, by meaning(convolution=)",
        *parts,
        legend({"v": "valid", "g": "a gap", "-": "masked"}, 20, 182),
    )


WINDOWS = {
    "core": "default: the window without its padding is valid",
    "any": "an entry of the window is valid",
    "all": "every entry of the window is valid",
}


def ragged() -> str:
    """ffill with and without lengths."""
    step = CELL + GAP
    return svg(
        600,
        150,
        "Filling forward fills gaps, not padding",
        text("batch", 20, 42),
        row("vgv", 170, 20, ["1", "?", "3"]),
        row("v--", 330, 20, ["9"]),
        text("ffill, lengths=[3, 1]", 20, 42 + step),
        row("vlv", 170, 20 + step, ["1", "1", "3"]),
        row("v--", 330, 20 + step, ["9"]),
        legend({"v": "valid", "g": "a gap", "l": "filled", "-": "padding"}, 20, 115),
    )


def logo() -> str:
    """Three by three entries, of which one is masked."""
    cells = "".join(row(letters, 3, 3 + i * (CELL + GAP)) for i, letters in enumerate(("vvv", "v-v", "vvl")))
    size = 3 * CELL + 2 * GAP + 6
    return f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {size} {size}">{cells}</svg>\n'


def write(folder: Path) -> None:
    """Writes each figure, and the logo, into ``folder``."""
    for figure in (batch, leak, packed, windows, ragged, logo):
        (folder / f"{figure.__name__}.svg").write_text(figure())

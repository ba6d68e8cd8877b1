"""The texts that docstrings of functional forms share, for arguments and errors that they leave out."""

import re
from collections.abc import Sequence
from functools import cache

_SECTION = re.compile(r"^    (Args|Raises):\n((?:        .*\n)*)", re.MULTILINE)
_ENTRY = re.compile(r"^        (\w+)[ :].*\n(?:            .*\n)*", re.MULTILINE)
_ERRORS = ("TypeError", "ValueError", "IndexError")  #: in this order, before all others


def of_masked() -> None:
    """What a form that takes a mask says.

    Args:
        dim (int or tuple of int, optional): The dimensions to reduce; None or ``()`` reduces all. ``axis`` is accepted
            as well.
        keepdim (bool, optional): Keep the reduced dimensions with size 1. ``keepdims`` is accepted as well. Default:
            False.
        dtype (torch.dtype, optional): Convert ``input`` to this dtype first.
        mask (Tensor, optional): True = valid; bool (integers are read as ``mask != 0``), of any layout, broadcastable
            to ``input``, and combined with the mask of a MaskedTensor. A strided ``input`` expands to a wider mask.

    Raises:
        TypeError: ``input`` is not a tensor.
        TypeError: ``mask`` is not a plain bool or int tensor.
        ValueError: ``mask`` does not broadcast to ``input``, or is on another device.
        IndexError: ``dim`` is out of range.
    """


def of_counted() -> None:
    """What a reduction that asks for a number of valid entries says.

    Args:
        fill_value (number, optional): The value of a result with too few valid entries.
        min_count (int, optional): The number of valid entries that a result requires. With fewer, it is masked for a
            MaskedTensor, and ``fill_value`` (default: NaN) for a plain ``input``.

    Raises:
        ValueError: ``fill_value`` does not fit an integer result.
        ValueError: ``min_count`` requires NaN, which integer and bool results cannot hold: pass ``fill_value``.
    """


def of_loss() -> None:
    """What a loss says.

    Args:
        reduction (str, optional): ``"mean"`` divides the sum by the number of valid entries, ``"sum"`` does not,
            ``"none"`` returns the loss of each entry. Default: ``"mean"``.
        mask (Tensor, optional): True = valid entry of ``input``; bool, of any layout, broadcastable to it.
        target_mask (Tensor, optional): True = valid entry of ``target``; bool, of any layout, broadcastable to it.
        fill_value (number, optional): The loss if no entry is valid; by default NaN for a mean and 0 for a sum.

    Raises:
        TypeError: An operand is not a tensor.
        TypeError: A mask is not a plain bool or int tensor.
        ValueError: A mask does not broadcast to its operand, or is on another device.
        ValueError: ``reduction`` is not one of the values above.
    """


def complete(text: str | None, arguments: Sequence[str]) -> str | None:
    """A docstring with all its arguments and errors; of one kind, the errors that all forms share come first."""
    if text is None:  # under python -OO
        return None
    if "    Raises:\n" not in text:
        text = text.replace("    Example:\n", "    Raises:\n\n    Example:\n", 1)
    families = (of_loss,) if "target_mask" in arguments else (of_masked, of_counted)[: 1 + ("min_count" in arguments)]
    common = {
        title: [e for family in families for e in _section(family.__doc__, title)] for title in ("Args", "Raises")
    }

    def fill(section: re.Match[str]) -> str:
        title, own = section[1], _entries(section[2])
        if title == "Args":
            texts = dict(common[title]) | dict(own)
            found = [texts[n] for n in arguments if n in texts]
        else:
            kinds = dict.fromkeys([*_ERRORS[: 2 + ("dim" in arguments)], *(kind for kind, _ in own)])
            said = [entry for _, entry in own]
            left = [(k, e) for k, e in common[title] if not any(o.startswith(e.rstrip(".\n")) for o in said)]
            found = [entry for kind in kinds for k, entry in (*left, *own) if k == kind]
        return f"    {title}:\n{''.join(found)}"

    return _SECTION.sub(fill, text)


@cache
def _section(text: str | None, title: str) -> list[tuple[str, str]]:
    """The entries of a section, by name."""
    return [e for s in _SECTION.finditer(text or "") if s[1] == title for e in _entries(s[2])]


def _entries(section: str) -> list[tuple[str, str]]:
    return [(entry[1], entry[0]) for entry in _ENTRY.finditer(section)]

"""What docstrings of forms share: an argument or an error of which one says nothing has the text here."""

import re
from collections.abc import Callable, Sequence
from functools import cache

_SECTION = re.compile(r"^    (Args|Raises):\n((?:        .*\n)*)", re.MULTILINE)
_ENTRY = re.compile(r"^        (\w+)[ :].*\n(?:            .*\n)*", re.MULTILINE)
_ERRORS = ("TypeError", "ValueError", "IndexError")  #: in this order, before all others


def of_masked() -> None:
    """What a form that takes a mask says.

    Args:
        dim (int or tuple of int, optional): The dimensions to reduce; None or ``()`` is all of them. ``axis`` is the
            same.
        keepdim (bool, optional): Keep reduced dimensions with size 1. ``keepdims`` is the same.
        dtype (torch.dtype, optional): Convert ``input`` to this dtype first.
        mask (Tensor, optional): True = valid; bool, of any layout, broadcastable to ``input``, or wider, which expands
            a strided one. Integers are read as ``mask != 0``.

    Raises:
        TypeError: ``input`` is not a tensor, or ``mask`` is not a plain bool or int tensor.
        ValueError: ``mask`` does not broadcast to ``input``, or lies on another device.
        IndexError: ``dim`` is out of range.
    """


def of_counted() -> None:
    """What a reduction that asks for a number of valid entries says.

    Args:
        fill_value (number, optional): The value of a result with too few valid entries.
        min_count (int, optional): How many valid entries a result needs. With fewer it is masked, or in a plain result
            ``fill_value``, else NaN.

    Raises:
        ValueError: ``mask`` does not broadcast to ``input``, or lies on another device; ``fill_value`` does not fit an
            integer result; or ``min_count`` needs NaN, which integers and bools lack: give ``fill_value``.
    """


def of_loss() -> None:
    """What a loss says.

    Args:
        reduction (str, optional): ``"mean"`` divides the sum by the number of valid entries, ``"sum"`` does not,
            ``"none"`` gives the loss of each entry.
        mask (Tensor, optional): True = valid entry of ``input``; bool, of any layout, broadcastable to it.
        target_mask (Tensor, optional): True = valid entry of ``target``; bool, of any layout, broadcastable to it.
        fill_value (number, optional): The loss if nothing is valid; by default NaN for a mean and 0 for a sum.

    Raises:
        TypeError: An operand is not a tensor, or a mask is not a plain bool or int tensor.
        ValueError: ``reduction`` is not one of the allowed values, or a mask does not broadcast to its operand or lies
            on another device.
    """


def complete(text: str | None, arguments: Sequence[str]) -> str | None:
    """A docstring with all its arguments, and the errors that come with them."""
    if text is None:  # under python -OO
        return None
    if "    Raises:\n" not in text:
        text = text.replace("    Example:\n", "    Raises:\n\n    Example:\n", 1)
    common = _common(of_loss if "target_mask" in arguments else of_counted if "min_count" in arguments else of_masked)

    def fill(section: re.Match[str]) -> str:
        title, said = section[1], _entries(section[2])
        names = arguments if title == "Args" else [*_ERRORS[: 2 + ("dim" in arguments)], *said]
        found = [said.get(n) or common[n] for n in dict.fromkeys(names) if n in said or n in common]
        return f"    {title}:\n{''.join(found)}"

    return _SECTION.sub(fill, text)


@cache
def _common(family: Callable[[], None]) -> dict[str, str]:
    texts = (of_masked.__doc__, family.__doc__)
    return {n: e for text in texts for s in _SECTION.finditer(text or "") for n, e in _entries(s[2]).items()}


def _entries(section: str) -> dict[str, str]:
    return {entry[1]: entry[0] for entry in _ENTRY.finditer(section)}

"""Context managers that choose between meanings of an op.

A choice holds for the thread or asyncio task that makes it, until the context is left.  It is seen by compiled code,
whose guards compile anew under other choices, and by the second run of ``torch.utils.checkpoint``, wherever
``backward`` is called.  Each may also decorate a function: ``@masked_tensor.strict()``.
"""

from dataclasses import replace
from typing import Any, get_args

from ..engine.contexts import stack
from ..engine.contexts.setting import TraceableSetting
from ..settings import DEFAULT, MismatchRule, PaddingRule, ProductRule, Settings, WindowRule
from .losses.masked_losses import tell_sent

_RULES = {"convolution": WindowRule, "product": ProductRule, "padding": PaddingRule, "mismatch": MismatchRule}
_CHOICES = {name: get_args(rule) for name, rule in _RULES.items()}


class Choice(TraceableSetting):
    """A setting of some meanings; the others stay as they are."""

    def __init__(self, **choices: Any) -> None:
        super().__init__()
        self.choices = choices

    def __repr__(self) -> str:
        chosen = ", ".join(f"{name}={choice!r}" for name, choice in self.choices.items())
        name = "strict()" if "strict" in self.choices else f"meaning({chosen})"
        return f"<{name}: applies inside a with statement, or to a function that it decorates>"

    def change(self, before: Settings) -> Settings:
        """The choices, on top of ``before``."""
        meaning = replace(before.meaning, **self.choices)
        return replace(before, meaning=meaning if meaning != DEFAULT else DEFAULT)

    def enter_traced(self) -> None:
        """In a graph, as a call that stands in it."""
        stack.enter_chosen(**self.choices)

    def end(self, failed: bool) -> None:
        """What accelerators have to say of losses is waited for at the end of ``strict()``."""
        if "strict" in self.choices and not failed:
            tell_sent(wait=True)


def meaning(
    *,
    convolution: WindowRule | None = None,
    renormalize: bool | None = None,
    product: ProductRule | None = None,
    padding: PaddingRule | None = None,
    mismatch: MismatchRule | None = None,
) -> Choice:
    """A context that sets what counts as valid: windows, matrix products, padding and differing masks.

    Options that are left out keep their value. The setting holds for the thread or asyncio task that enters the
    context, until it exits. Compiled code honours it, and is recompiled when it changes.

    Args:
        convolution (str, optional): When a partly masked window of a convolution or pooling is valid. ``"core"``, the
            default: if its core is, the window without ``padding`` entries on each side, so that a padded batch equals
            its sequences alone; ``"any"``: if any entry is, as in partial convolution, and average pooling is the mean
            of the valid entries; ``"all"``: if every entry inside the input is, in every channel. ``"any"`` and
            ``"all"`` treat the padding of a batch as missing entries.
        renormalize (bool, optional): Divide the sum of a convolution by the valid fraction of its window inside the
            input, before the bias is added, as in partial convolution.
        product (str, optional): How many terms of a sum of products must be valid, in linear layers, matrix products,
            the channels of a convolution, recurrent layers and attention. ``"any"``, the default: one; ``"all"``: every
            valid entry needs a valid counterpart, whereas two masked entries are ignored, so that attention works on
            padding.
        padding (str, optional): Where ``torch.nn.functional.pad`` adds entries. ``"row"``, the default: at the end of
            each sequence, as if it were padded alone; ``"tensor"``: at the end of the tensor, after the padding of
            shorter sequences.
        mismatch (str, optional): What elementwise ops do if masks differ. ``"and"``, the default: the result is valid
            where all operands are; ``"raise"``: raise MaskMismatchError, as in torch.masked, which compares values,
            waits for the device and does not work in compiled code.

    Returns:
        context manager: It can also be used as a decorator.

    Raises:
        ValueError: An option is not one of the values above.

    Example:
        >>> x = mt.masked_tensor([[1.0, 2.0, None]])
        >>> torch.nn.functional.pad(x, (0, 1)).tolist()
        [[1.0, 2.0, 0.0, None]]
        >>> with mt.meaning(padding="tensor", product="all"):
        ...     torch.nn.functional.pad(x, (0, 1)).tolist(), (x @ torch.ones(3, 1)).tolist()
        ([[1.0, 2.0, None, 0.0]], [[None]])
        >>> x, ones = mt.masked_tensor([[[1.0, 2.0, 3.0, None]]]), torch.ones(1, 1, 3)
        >>> torch.conv1d(x, ones, padding=1).tolist()
        [[[3.0, 6.0, 5.0, None]]]
        >>> with mt.meaning(convolution="any", renormalize=True):
        ...     torch.conv1d(x, ones, padding=1).tolist()
        [[[3.0, 6.0, 7.5, 6.0]]]
        >>> with mt.meaning(mismatch="raise"):
        ...     x + mt.masked_tensor([1.0, 2.0, 3.0, 4.0], True)
        Traceback (most recent call last):
        ...
        masked_tensor.errors.MaskMismatchError: two operands have different masks, and ...

    See also:
        :func:`strict`.

    References:
        Liu et al., Image inpainting for irregular holes using partial convolutions, 2018 (``convolution="any"``,
        ``renormalize``).
    """
    choices: dict[str, Any] = {"convolution": convolution, "product": product, "padding": padding, "mismatch": mismatch}
    chosen = {name: choice for name, choice in choices.items() if choice is not None}
    for name, choice in chosen.items():
        if choice not in _CHOICES[name]:
            raise ValueError(f"meaning: {name} must be one of {_CHOICES[name]}, got {choice!r}")
    if renormalize is not None:
        chosen["renormalize"] = renormalize
    return Choice(**chosen)


def strict() -> Choice:
    """A context in which implicit handling of masks raises an error, for tests, evaluation and debugging.

    These raise inside it:

    - an elementwise op of tensors whose masks differ: MaskMismatchError, as under ``meaning(mismatch="raise")``. This
      includes a recurrent cell, in which a masked step leaves the state unchanged;
    - a masked number written into a plain tensor, such as ``total += loss``: MaskedWriteError, even if it is valid;
    - ``numel()``, which counts masked entries: MaskedSizeError;
    - a sum or division by a count made with ``x.new_ones(n)`` or ``x.new_full``, which counts masked entries along
      dimensions of ``x``: MaskedSizeError;
    - features joined (``torch.cat``, ``stack``) to steps where another part has none, so that padding would be partly
      valid: MaskMismatchError;
    - a backward pass that starts at masked entries only, which adds 0 to every gradient: MaskedValueError. On a GPU it
      is raised at the next pass or the end of the context; with several ranks it stays a warning.

    Masks are compared by value, which waits for the device and does not work in compiled code.

    Returns:
        context manager: It can also be used as a decorator.

    Example:
        >>> x = mt.masked_tensor([1.0, None])
        >>> with mt.strict():
        ...     x.sum() / x.numel()
        Traceback (most recent call last):
        ...
        masked_tensor.errors.MaskedSizeError: numel() counts masked entries as well; use ...

    See also:
        :func:`meaning`.
    """
    return Choice(mismatch="raise", strict=True)

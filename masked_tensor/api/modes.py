"""Context managers that choose between honest meanings of an op.

A choice holds for the thread or asyncio task that makes it, until the context is left.  It is seen by compiled code,
whose guards compile anew under other choices, and by the second run of ``torch.utils.checkpoint``, wherever
``backward`` is called.  Each may decorate a function, too: ``@masked_tensor.strict()``.
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
    """A context that chooses conventions: when the result of a convolution, of a product or of two masks is valid.

    What is left out stays as it is. It holds for the thread or asyncio task that enters it, until it is left. Compiled
    code sees it, and compiles again under other choices.

    Args:
        convolution (str, optional): How convolution and pooling judge a window that is partly masked. ``"core"``, the
            default: a result is valid if the window without its padding is, so that a padded batch equals its sequences
            alone. ``"any"``: valid if any entry of the window is (the mask update of partial convolution), and average
            pooling is the mean of the valid ones. ``"all"``: valid if every entry of the window inside the input is, in
            every channel.
        renormalize (bool, optional): Divide a convolution's sum by the valid fraction of its window inside the input,
            before the bias is added (partial convolution).
        product (str, optional): How many terms of a product have to be valid, in linear layers, matrix products, the
            channels of a convolution, recurrent layers and attention. ``"any"``, the default: one. ``"all"``: every
            valid entry needs a valid counterpart. Two masked entries that meet are no term, so attention works on
            padding.
        padding (str, optional): Where ``torch.nn.functional.pad`` attaches what it adds. ``"row"``, the default: at the
            end of each sequence, as if it had been padded alone. ``"tensor"``: at the end of the tensor, behind the
            padding of a shorter sequence. A sequence without a valid entry stays so.
        mismatch (str, optional): What elementwise ops do with operands whose masks differ. ``"and"``, the default: the
            result is valid where all of them are. ``"raise"``: MaskMismatchError, as in torch.masked; masks are
            compared by value, which waits for the device and does not work in compiled code.

    Returns:
        context manager: Also a decorator.

    Raises:
        ValueError: A choice is not one of the allowed values.

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
    """A context in which every convenience is an error, for tests, evaluation and debugging.

    Inside of it these raise:

    - an elementwise op of tensors whose masks differ: MaskMismatchError, as under ``meaning(mismatch="raise")``, so
      also a recurrent cell where a masked step would leave the state as it is;
    - a masked number written into a plain tensor, such as ``total += loss``: MaskedWriteError, whether it is valid or
      not;
    - ``numel()``: MaskedSizeError, as it counts masked entries;
    - a sum, a scattered sum at plain indices or a division by what ``x.new_ones(n)`` or ``x.new_full`` made of a tensor
      with masked entries, along dimensions of ``x``: MaskedSizeError, as it counts masked entries, too;
    - a join of features (``torch.cat``, ``stack``) to steps at which another part has nothing, so that padding would be
      valid in part: MaskMismatchError;
    - a backward pass that begins at masked entries only, so that every gradient is 0: MaskedValueError. On a GPU it
      comes with the next pass or at the end of the context; where there are several ranks it stays a warning.

    Masks are compared by value, which waits for the device and does not work in compiled code.

    Returns:
        context manager: Also a decorator.

    Example:
        >>> x = mt.masked_tensor([1.0, None])
        >>> with mt.strict():
        ...     x.sum() / x.numel()
        Traceback (most recent call last):
        ...
        masked_tensor.errors.MaskedSizeError: numel() counts the masked entries, too; x.count() ...
    """
    return Choice(mismatch="raise", strict=True)

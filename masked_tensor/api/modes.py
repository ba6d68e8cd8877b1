"""Context managers that choose between honest meanings of an op.

A choice holds for the thread or asyncio task that makes it, until the context is left.  It is seen by compiled code,
whose guards compile anew under other choices, and by the second run of ``torch.utils.checkpoint``, wherever
``backward`` is called.  Each may decorate a function, too: ``@masked_tensor.strict()``.
"""

from dataclasses import replace
from types import TracebackType
from typing import Any, get_args

import torch

from ..engine.contexts import stack
from ..engine.contexts.setting import Setting
from ..settings import DEFAULT, MismatchRule, PaddingRule, ProductRule, Settings, WindowRule

_RULES = {"convolution": WindowRule, "product": ProductRule, "padding": PaddingRule, "mismatch": MismatchRule}
_CHOICES = {name: get_args(rule) for name, rule in _RULES.items()}


class Choice(Setting):
    """A setting of some meanings; the others stay as they are."""

    def __init__(self, **choices: Any) -> None:
        super().__init__()
        self.choices = choices

    def change(self, before: Settings) -> Settings:
        """The choices, on top of ``before``."""
        meaning = replace(before.meaning, **self.choices)
        return replace(before, meaning=meaning if meaning != DEFAULT else DEFAULT)

    def __enter__(self) -> None:
        if torch.compiler.is_dynamo_compiling():
            stack.enter_chosen(**self.choices)
        else:
            super().__enter__()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if torch.compiler.is_dynamo_compiling():
            stack.leave_traced()
        else:
            super().__exit__(kind, error, traceback)


def meaning(
    *,
    convolution: WindowRule | None = None,
    renormalize: bool | None = None,
    product: ProductRule | None = None,
    padding: PaddingRule | None = None,
    mismatch: MismatchRule | None = None,
) -> Choice:
    """The meanings of the ops that have several; what is left out stays as it is.

    - ``convolution``: how convolution, pooling and their relatives judge a window that is partly masked.
      ``"core"`` (the default): valid iff the window without its padding is; a padded batch equals its unpadded rows.
      ``"any"``: valid iff any tap is (partial convolution's mask update); average pooling is the mean of the valid
      taps.  ``"all"``: valid iff every tap inside the input is, in every channel.
    - ``renormalize``: True divides a convolution's sum by the valid fraction of the window's taps inside the input,
      before the bias is added (Liu et al., Image inpainting for irregular holes using partial convolutions, 2018).
    - ``product``: how many valid terms an output of a product needs (linear layers, matrix products, the channels of a
      convolution, the input of a recurrent layer, queries, keys and values of attention): ``"any"`` (the default) or
      ``"all"``: every valid entry needs its partner, too.  With ``"all"``, features that were concatenated with a plain
      tensor stay holes in padding.  Two holes that meet are no term: attention does not miss what padding hides.
    - ``padding``: where ``F.pad`` attaches what it adds: ``"row"`` (the default), at each row's own end, as if the row
      had been padded alone; or ``"tensor"``, at the end of the tensor, behind the holes of a short row.  A row that
      has nothing valid stays so.
    - ``mismatch``: what elementwise ops do with operands whose masks differ.  ``"and"`` (the default): the result is
      valid where all of them are.  ``"raise"``: MaskMismatchError if two masks differ anywhere, as ``torch.masked``
      does.  Plain operands never differ.  The masks' values are compared, unless both tensors share one mask: that
      waits for the device, and does not work in compiled code.

    Raises ValueError for another choice.

    Example::

        >>> import torch, masked_tensor as mt
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
        masked_tensor.errors.MaskMismatchError: two operands have different masks, ...
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
    """Every convenience is an error: for evaluation code, for tests, and to find where a wrong number comes from.

    - elementwise ops of tensors whose masks differ raise MaskMismatchError (``meaning(mismatch="raise")``); so a
      hand-written recurrence raises at the first step that has other holes than its state, and a recurrent cell
      where a hole would leave the state as it is;
    - a masked number written into a plain tensor (``total += loss``) raises MaskedWriteError, valid or not;
    - ``numel()`` raises MaskedSizeError: it counts the holes;
    - so does a sum, a scattered sum at plain indices or a division by what ``x.new_ones(n)`` or ``x.new_full`` made
      of a tensor that has masked entries, along dimensions of ``x``: it is valid everywhere, and counts them, too.

    The masks' values are compared, which waits for the device and does not work in compiled code.

    Example::

        >>> import torch, masked_tensor as mt
        >>> x = mt.masked_tensor([1.0, None])
        >>> with mt.strict():
        ...     x.sum() / x.numel()
        Traceback (most recent call last):
        ...
        masked_tensor.errors.MaskedSizeError: numel() counts the holes of a masked tensor too; ...
    """
    return Choice(mismatch="raise", strict=True)

"""Differences that are meant, each with its reason."""

import re
from collections.abc import Callable
from dataclasses import dataclass

from .copies import Arguments


@dataclass(frozen=True)
class Meant:
    """A kind of difference: in which functions, how it reads, and when it is meant."""

    reason: str
    names: str
    detail: str
    when: Callable[[Arguments], bool] = lambda arguments: True


def number(arguments: Arguments) -> bool:
    """Whether one of several tensors has no dimension."""
    return any(x.dim() == 0 for x in arguments.tensors[1:])


PLAIN = r"class: a plain tensor"
EXCEPTIONS = [
    Meant(
        "ignore_index is a masked target",
        r"cross_entropy|nll_loss",
        r"mask|value|gradient|shape|class",
        lambda arguments: any(isinstance(x, int) for x in arguments.leaves),
    ),
    Meant("var and std of too few values are masked", r"\b(var|std|var_mean|std_mean|cov|corrcoef)$", r"mask|gradient"),
    Meant("a valid 0-d masked tensor is a number in a plain one", r"_$", PLAIN, number),
    Meant("a key of no dimensions is a number", r"__getitem__", PLAIN, number),
    Meant("integers of empty_like are masked until they are written", r"empty_like", r"mask"),
    Meant("positions to split at are numbers", r"tensor_split", PLAIN),
    Meant(
        "only the shape or the dtype of the masked one is asked", r"(expand|view|reshape|type)_as$|Tensor\.to$", PLAIN
    ),
    Meant("whether a plain element is among the valid ones is known", r"isin$", PLAIN),
    Meant("each result has the mask of its own argument", r"broadcast_tensors|meshgrid|atleast_|block_diag", PLAIN),
    Meant("what is made anew of plain data is plain", r"new_", PLAIN),
    Meant("a view of a masked tensor under no_grad requires no gradient", r".", r"requires_grad: False, not True"),
    Meant(
        "a rule knows a dtype that torch's kernel does not",
        r".",
        r"does not raise (NotImplementedError|RuntimeError): .*(not implemented for|not supported for)",
    ),
    Meant(
        "an in-place view of what requires a gradient is refused", r"_$", r"on a masked tensor that requires grad: use"
    ),
    Meant("as_strided stays within the tensor's own memory", r"as_strided", r"the tensor's own memory"),
]

# Faults that are known and not mended yet: they are counted, and no reason for alarm in another test.
KNOWN = [
    Meant("known: results of unpooling and of masked indices are not contiguous", r"unpool|scatter|index_", r"strides"),
    Meant("known: other strides of a result that is as dense", r"sort|pad$", r"strides"),
    Meant("known: _is_all_true gives a plain bool", r"_is_all_true", PLAIN),
    Meant("known: an empty segment is masked", r"segment_reduce|embedding_bag", r"mask"),
    Meant(
        "known: interpolation of uint8 gives float32", r"upsample|interpolate", r"dtype: torch.float32, not torch.uint8"
    ),
    Meant("known: a masked weight of lower precision does not promote", r"cov$", r"dtype"),
    Meant("known: an in-place op that torch refuses for its dtype is taken", r"(abs|float_power)_$", r"does not raise"),
    Meant(
        "known: what torch gives back as it is comes as a view of it",
        r"flatten|conj_physical|positive",
        r"identity|gradient",
    ),
    Meant("known: fractional_max_pool takes no masked samples", r"fractional_max_pool", r"AttributeError"),
]


def declared(name: str, detail: str, arguments: Arguments) -> str:
    """Why a difference is meant, or nothing."""
    for known in (*EXCEPTIONS, *KNOWN):
        if re.search(known.names, name) and re.search(known.detail, detail) and known.when(arguments):
            return known.reason
    return ""

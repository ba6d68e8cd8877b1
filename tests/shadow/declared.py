"""Differences that are meant, and faults that are known: each of named functions, one kind, one condition.

An entry explains one detail of one comparison.  Its functions are named in full, its pattern matches the whole kind of
the detail, and its condition looks at the arguments, at which of them are masked, and at what plain torch gave.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.utils._pytree import tree_unflatten

from .compare import Outcome, shares
from .copies import Arguments


@dataclass(frozen=True)
class Case:
    """One comparison: the arguments, which of them were masked, and what plain torch gave."""

    arguments: Arguments
    chosen: frozenset[int]
    theirs: Outcome
    detail: str

    def only(self, *numbers: int) -> bool:
        """Whether nothing else is masked than these arguments."""
        return self.chosen <= set(numbers)

    def result(self) -> Tensor | None:
        """Plain torch's result that the detail is about."""
        found = re.match(r"result (\d+)", self.detail)
        leaf = self.theirs.leaves[int(found[1])] if found and self.theirs.leaves else None
        return leaf if isinstance(leaf, Tensor) else None


@dataclass(frozen=True)
class Meant:
    """A kind of difference: in which functions (their last names), how it reads, and when it is meant."""

    reason: str
    names: str
    detail: str
    when: Callable[[Case], bool] = lambda case: True
    known: bool = False  # a fault, and not meant
    garbage: bool = False  # meant between two kinds of garbage, too, where plain torch plays no part


def without_self(case: Case) -> bool:
    """Whether the first tensor is plain and each masked one is a number: what is written stays plain."""
    return 0 not in case.chosen and all(case.arguments.tensors[i].dim() == 0 for i in case.chosen)


def own_argument_is_plain(case: Case) -> bool:
    """Whether the argument of the same number as the result is plain."""
    found = re.match(r"result (\d+)", case.detail)
    leaves = [x for x in case.arguments.leaves if isinstance(x, Tensor)]
    if not found or int(found[1]) >= len(leaves):
        return False
    own = leaves[int(found[1])]
    return not any(case.arguments.tensors[i] is own for i in case.chosen)


def undefined(case: Case) -> bool:
    """Whether plain torch divides by nothing: finite arguments, and no finite number in any result but a mean."""
    first = case.theirs.leaves[0] if case.theirs.leaves else None
    finite = all(bool(x.isfinite().all()) for x in case.arguments.tensors)
    return isinstance(first, Tensor) and finite and not bool(first.isfinite().any())


def has_ignored_target(case: Case) -> bool:
    """Whether an integer target holds ignore_index, which is -100 if it is not said."""
    said = {x for x in case.arguments.leaves if type(x) is int}
    targets = [x for x in case.arguments.tensors if x.dtype in (torch.int64, torch.uint8)]
    return any(bool((x == number).any()) for x in targets for number in (-100, *said))


def is_view_of_tracked(case: Case) -> bool:
    """Whether the result shares memory with a masked argument that requires a gradient, under no_grad."""
    result = case.result()
    tensors = case.theirs.built.tensors
    return (
        not torch.is_grad_enabled()
        and result is not None
        and any(tensors[i].requires_grad and shares(result, tensors[i]) for i in case.chosen)
    )


def of(*dtypes: torch.dtype) -> Callable[[Case], bool]:
    """Whether a tensor of these dtypes is among the arguments."""
    return lambda case: any(x.dtype in dtypes for x in case.arguments.tensors)


def of_values(case: Case) -> bool:
    """Whether ``x.new`` is given values, such as a list or a storage, and not sizes."""
    args, _ = tree_unflatten(case.arguments.leaves, case.arguments.spec)
    return len(args) == 2 and not isinstance(args[1], int | torch.Size)


def after(count: int) -> Callable[[Case], bool]:
    """Whether each masked tensor is a number, and none is among the first ``count`` arguments."""

    def is_after(case: Case) -> bool:
        chosen = [case.arguments.tensors[i] for i in case.chosen]
        return all(x.dim() == 0 and not any(x is leaf for leaf in case.arguments.leaves[:count]) for x in chosen)

    return is_after


def two_observations(case: Case) -> bool:
    """Whether a correlation of half precision is of two values, so that its derivative is 0 and all else rounding."""
    x = case.arguments.tensors[0]
    return x.dtype.itemsize == 2 and x.dim() > 0 and x.shape[-1] == 2


def half(case: Case) -> bool:
    """Whether all tensors with fractions are of half precision."""
    return all(x.dtype in (torch.float16, torch.bfloat16) for x in case.arguments.tensors if x.is_floating_point())


def scales(case: Case) -> bool:
    """Whether what is masked is a factor that torch's signature reads as a number."""
    _, named = tree_unflatten(case.arguments.leaves, case.arguments.spec)
    factors = [named.get("alpha"), named.get("value")]
    return all(any(case.arguments.tensors[i] is factor for factor in factors) for i in case.chosen)


def numbers(case: Case) -> bool:
    """Whether each tensor is a number."""
    return all(x.dim() == 0 for x in case.arguments.tensors)


def integer_key(case: Case) -> bool:
    """Whether each masked argument is a key of no dimensions."""
    tensors = [case.arguments.tensors[i] for i in case.chosen]
    return 0 not in case.chosen and all(x.dim() == 0 and not x.is_floating_point() for x in tensors)


def has_ties(case: Case) -> bool:
    """Whether the values that are put in order are not all different, so that any of several may be named."""
    x = case.arguments.tensors[0]
    return x.unique().numel() < x.numel()


def spreads_nothing(case: Case) -> bool:
    """Whether a standard deviation is rounding of the mean: all values are the same."""
    first, x = case.theirs.leaves[0], case.arguments.tensors[0]
    return bool(first.abs().max() <= 16 * torch.finfo(x.dtype).eps * x.abs().max())


def lies_in_two_orders(case: Case) -> bool:
    """Whether torch's result takes the order of memory of one of several operands, and is not contiguous."""
    result = case.result()
    return result is not None and len(case.arguments.tensors) > 1 and not result.is_contiguous()


def second_is_masked(case: Case) -> bool:
    """Whether the first argument is a number or a plain tensor."""
    return not isinstance(case.arguments.leaves[0], Tensor) or case.only(1)


def has_half(case: Case) -> bool:
    """Whether a tensor of half precision is among the arguments, others of which may be wider."""
    return any(x.dtype in (torch.float16, torch.bfloat16) for x in case.arguments.tensors)


def is_empty(case: Case) -> bool:
    """Whether an argument has no entries."""
    return any(x.numel() == 0 for x in case.arguments.tensors)


def is_expanded(case: Case) -> bool:
    """Whether entries of the first argument, or of its gradient, lie in one place of memory."""
    return 0 in case.chosen


def has_nan(case: Case) -> bool:
    """Whether a NaN is among the values."""
    return any(bool(x.isnan().any()) for x in case.arguments.tensors if x.is_floating_point() or x.is_complex())


def has_hidden_keys(case: Case) -> bool:
    """Whether a mask or a bias of attention may hide all keys of a query."""
    return any(
        x.dtype is torch.bool or (x.is_floating_point() and bool((x == -torch.inf).any()))
        for x in case.arguments.tensors
    )


PLAIN = r"result \d+: class: a plain tensor"
IN_PLACE = r"(?:[a-z]\w*[a-z\d]_|__i[a-z]+__)"
VIEWS_IN_PLACE = r"(?:as_strided|squeeze|unsqueeze|transpose|t|swapaxes|swapdims)_"
EXCEPTIONS = [
    Meant("a question about all entries has a plain answer", r"_is_all_true", PLAIN),
    Meant(
        "ignore_index is a masked target",
        r"nll_loss|(linear_)?cross_entropy",
        r"result 0: mask: \d+ valid.*",
        has_ignored_target,
    ),
    Meant(
        "var, std and covariance of too few values are masked",
        r"var|std|var_mean|std_mean|cov|corrcoef",
        r"result 0: mask: 0 valid, not .*|gradient \d+: value: .*",
        undefined,
    ),
    Meant("a valid 0-d masked tensor is a number in a plain one", IN_PLACE, PLAIN, without_self),
    Meant(
        "a valid 0-d masked tensor is a number in a plain out=, and of no entries a result is made without the input",
        r"cond|inner|norm",
        PLAIN,
        lambda case: (
            (r := case.result()) is not None
            and (r.dim() == 0 or not r.numel() or not case.arguments.tensors[0].numel())
        ),
    ),
    Meant(
        "singular vectors that nobody asked for are zeros without the input",
        r"svd",
        r"result [02]: class: a plain tensor",
    ),
    Meant(
        "the rank of no system is memory that torch does not write",
        r"lstsq",
        r"result 2: value: .*",
        lambda case: not all(x.numel() for x in case.arguments.tensors),
        garbage=True,
    ),
    Meant("a key of no dimensions is a number", r"__getitem__", PLAIN, integer_key),
    Meant(
        "integers of empty_like are masked until they are written",
        r"empty_like",
        r"result 0: mask: 0 valid, not .*",
        lambda case: (r := case.result()) is not None and not r.is_floating_point() and not r.is_complex(),
    ),
    Meant("a list of numbers is asked for its values", r"tensor", PLAIN, numbers),
    Meant("new of values is plain, as new_tensor is", r"new", PLAIN, of_values),
    Meant("positions to split at are numbers", r"tensor_split", PLAIN, lambda case: case.only(1)),
    Meant(
        "only the shape or the dtype of the masked one is asked",
        r"expand_as|view_as|reshape_as|type_as|to",
        PLAIN,
        lambda case: case.only(1),
    ),
    Meant("whether a plain element is among the valid ones is known", r"isin", PLAIN, second_is_masked),
    Meant(
        "each result has the mask of its own argument",
        r"broadcast_tensors|meshgrid|atleast_[123]d|_foreach_\w+",
        PLAIN,
        own_argument_is_plain,
    ),
    Meant(
        "a view of a masked tensor under no_grad requires no gradient",
        r"\w+",
        r"result \d+: requires_grad: False, not True",
        is_view_of_tracked,
    ),
    Meant(
        "a rule knows a dtype that torch's kernel does not",
        r"\w+",
        r"does not raise (NotImplementedError|RuntimeError): \"\w+\" not implemented for '\w+'",
    ),
    Meant(
        "an in-place view of what requires a gradient is refused",
        VIEWS_IN_PLACE,
        r"raises RuntimeError: \w+ on a masked tensor that requires grad: use .*",
        lambda case: 0 in case.chosen,
    ),
    Meant(
        "as_strided stays within the tensor's own memory",
        r"as_strided_?",
        r"raises RuntimeError: as_strided.* the tensor's own memory.*",
        lambda case: 0 in case.chosen,
    ),
    Meant(
        "a correlation of two values has the derivative 0, and torch's is rounding",
        r"corrcoef",
        r"gradient 0: value: .*",
        two_observations,
    ),
    Meant(
        "torch adds up in half precision",
        r"\w*(layer|batch|group)_norm\w*|pad|cross_entropy|multilabel_soft_margin_loss",
        r"(gradient|argument|result) \d+: value: .*",
        half,
    ),
    Meant(
        "the derivative of a norm in another dtype is taken in that dtype, where torch's overflows in half precision",
        r"vector_norm|norm|_foreach_norm",
        r"gradient \d+: value: .*",
        lambda case: half(case) or any(x.is_complex() for x in case.arguments.tensors),  # torch's are NaN
    ),
    Meant(
        "which of equal values is named is free",
        r"sort|argsort|topk|kthvalue|median|nanmedian|mode",
        r"result [01]: value: .*|gradient 0: value: .*",
        has_ties,
    ),
    Meant("differences of order 0 use nothing but the input", r"diff", PLAIN, lambda case: 0 not in case.chosen),
    Meant("each gradient has the mask of its own coordinates", r"gradient", PLAIN, lambda case: 0 not in case.chosen),
    Meant(
        "a masked condition selects what is valid in it",
        r"index_put_",
        PLAIN,
        lambda case: case.arguments.tensors[1].dtype is torch.bool and case.only(1),
    ),
    Meant("where to begin is a number", r"narrow", PLAIN, lambda case: case.only(1)),
    Meant("how often to repeat is a number", r"repeat_interleave", PLAIN, lambda case: case.only(1)),
    Meant(
        "the norm of an empty matrix is a constant",
        r"norm",
        PLAIN,
        lambda case: not case.arguments.tensors[0].numel(),
    ),
    Meant(
        "torch keeps the gradient of what a logical op overwrote",
        r"logical_(and|or|xor|not)_",
        r"gradient 0: value: .*",
    ),
    Meant(
        "an in-place view of what requires a gradient is refused",
        r"dropout3d",
        r"raises RuntimeError: unsqueeze_ on a masked tensor that requires grad: use .*",
    ),
    Meant(
        "torch itself refuses this derivative out of place",
        r"silu|uniform_",
        r"raises RuntimeError: \w+ does not support automatic differentiation for outputs with complex dtype.",
        of(torch.complex64, torch.complex128),
    ),
    Meant("the spread of equal values has the gradient 0", r"std", r"gradient 0: value: .*", spreads_nothing),
    Meant(
        "as_masked_tensor of a tracked tensor is a view of it",
        r"detach_",
        r"raises RuntimeError: a view of a masked tensor cannot be detached in place.*",
    ),
    Meant(
        "of operands in two orders of memory the result has that of another one",
        r"add|sub|mul|div",
        r"result 0: strides: .*",
        lies_in_two_orders,
    ),
    Meant(
        "sizes, bounds and what is read into a new tensor are numbers",
        r"randn|rand|randint|empty|zeros|ones|arange|full|tensor|new_tensor|new_zeros|linspace",
        PLAIN,
    ),
    Meant("a dual of a plain primal is plain, and its masked tangents are 0", r"_make_dual", PLAIN),
    Meant("the sizes of a packed sequence are numbers", r"_pack_padded_sequence", r"result 1: class: a plain tensor"),
    Meant(
        "the steps that padding adds are masked, and lengths are numbers",
        r"_pad_packed_sequence",
        r"result 0: mask: .*|result 1: class: a plain tensor",
    ),
    Meant("an extreme that is NaN has its gradient where the NaN is", r"amin|amax|aminmax", r"gradient 0: .*", has_nan),
    Meant(
        "a query that sees no key is masked",
        r"(scaled_dot_product|_native_multi_head|multi_head)_attention\w*|baddbmm",
        r"result [01]: mask: .*|gradient \d+: value: .*",
        has_hidden_keys,
    ),
    Meant(
        "a causal attention may have a mask, as torch's kernels for four dimensions take",
        r"scaled_dot_product_attention",
        r"does not raise RuntimeError: _scaled_dot_product_attention: Explicit attn_mask should not be set .*",
    ),
    Meant(
        "keys that are replaced by static ones are not read",
        r"multi_head_attention_forward",
        r"result [01]: class: a plain tensor",
        lambda case: 0 not in case.chosen,
    ),
    Meant(
        "the weights of attention lie in the order in which they were computed",
        r"multi_head_attention_forward",
        r"result 1: strides: .*",
    ),
    Meant("a conjugate or a negation is computed, and no bit of a view", r"is_neg|is_conj", r"result 0: value: .*"),
    Meant(
        "torch chooses its own kernels of plain tensors",
        r"_nested_tensor_from_mask_left_aligned|_fused_sdp_choice",
        r"result 0: value: .*",
    ),
    Meant("a parameter that is loaded is what was given", r"module_load", PLAIN),
    Meant(
        "out= is refused for what requires a gradient, also where torch has no derivative",
        r"\w+",
        r"raises RuntimeError: \w+\(\): functions with out=.* don't support automatic differentiation.*",
    ),
    Meant(
        "what torch has one kernel for is made of ops that have deterministic ones",
        r"max_unpool[123]d|put_?",
        r"does not raise RuntimeError: \w+ does not have a deterministic implementation.*",
    ),
    Meant("edges that were given are copied", r"histogramdd|histogram", r"identity: .*|result \d+: strides: .*"),
    Meant(
        "what is written is computed first, so that operands may overlap",
        r"\w+",
        r"does not raise RuntimeError: unsupported operation: .*",
    ),
    Meant(
        "an out= of another dtype is cast to, if values can be",
        r"\w+",
        r"does not raise RuntimeError: (.*(out|output)\b.*type.*|expected scalar_type \w+ but found \w+)",
    ),
    Meant(
        "an out= of another dtype is cast to, if values can be",
        r"heaviside|isposinf|isneginf",
        r"does not raise RuntimeError: \w+ (is not yet implemented for|does not support non-boolean outputs).*",
    ),
    Meant("a sample without a step is masked", r"ctc_loss", r"result 0: mask: .*"),
    Meant(
        "torch itself refuses this derivative out of place",
        r"scatter_reduce_?",
        r"raises RuntimeError: \w+ does not support automatic differentiation for outputs with complex dtype.",
        of(torch.complex64, torch.complex128),
    ),
    Meant(
        "torch adds up in half precision",
        r"embedding_bag|index_reduce_?|_foreach_\w+|cdist",
        r"(gradient|argument|result) \d+: value: .*",
        half,
    ),
    Meant(
        "powers are differentiated out of place",
        r"vander",
        r"result 0: (requires_grad|strides): .*|gradient: one, where .*",
    ),
    Meant(
        "a masked byte of a condition selects what is valid in it",
        r"index_put_|__setitem__",
        PLAIN,
        lambda case: case.only(1) and case.arguments.tensors[1].dtype is torch.uint8,
    ),
    Meant(
        "torch adds up in half precision",
        r"\w*(layer|batch|group)_norm\w*|embedding_bag",
        r"(gradient|argument|result) \d+: value: .*",
        has_half,
    ),
    Meant(
        "the gradient of a bias is a sum that cancels",
        r"scaled_dot_product_attention",
        r"gradient 3: value: \[[-\d.]*e-0[4-9].*|gradient 3: value: \[0.0, [-\d.]*e-0[4-9].*",
    ),
    Meant(
        "sums of thousands of terms are added up in another order",
        r"group_norm",
        r"gradient [12]: value: .*",
        lambda case: any(x.numel() > 5000 for x in case.arguments.tensors),
    ),
    Meant("a distance of two roundings", r"cdist|embedding_bag", r"result 0: value: .*|gradient 0: value: .*"),
    Meant("a tolerance is a number", r"isclose", PLAIN, after(2)),
    Meant("which dimension to sum along is a number", r"cumsum", PLAIN, after(1)),
    Meant("how much is added is a number", r"add|sub|rsub|addcmul|addcdiv", PLAIN, scales),
    Meant(
        "torch rounds this gradient to half, ours is computed in float32",
        r"xlogy_|copy_",
        r"gradient 1: value: .*",
        has_half,
    ),
    Meant("a threshold and its value are numbers", r"threshold_?", PLAIN, lambda case: 0 not in case.chosen),
    Meant("draws of other memory come in another order", r"normal_", r"(result|argument) 0: value: .*|random: .*"),
    Meant(
        "a result of no entries reads no memory that nobody wrote",
        r"multi_?(label_)?margin_loss|multilabel_margin_loss|multi_margin_loss|cosine_embedding_loss|batch_norm|embedding|normal",
        r"result 0: value: \[nan\].*|does not raise .*|raises RuntimeError: .*|gradient: raises RuntimeError: .*",
        is_empty,
    ),
    Meant(
        "entries that lie in one place of memory are not written one by one",
        r"fill_|masked_fill_|index_put_|index_fill_|threshold_?",
        r"(gradient: )?raises RuntimeError: unsupported operation: more than one element of the written-to tensor .*",
        is_expanded,
    ),
    Meant(
        "a result lies in memory in the order of its dimensions",
        r"conv_tbc|interpolate|max_pool3d\w*|einsum|solve_triangular",
        r"result \d+: strides: .*",
    ),
    Meant("a second derivative has a mask for what depends on a mask", r"_convolution_double_backward", PLAIN),
    Meant(
        "integers have no gradient, and what is drawn for them neither",
        r"bernoulli_?",
        r"raises RuntimeError: (Autograd not support dtype: \w+|result type torch.float\d+ can't be cast .*)",
    ),
    Meant(
        "a loop over lists that torch cannot differentiate is differentiated, or says that nothing is recorded",
        r"_foreach_(addcmul|addcdiv)_?|_foreach_div",
        r"(result|argument) \d+: requires_grad: False, not True",
    ),
    Meant(
        "a gradient of what is wrapped inside of a Function is masked",
        r"custom_op_backed_by_autograd_fn",
        r"gradient 0: a Tensor of a MaskedTensor",
        garbage=True,
    ),
    Meant(
        "anomaly detection may report a NaN under the mask that reaches no gradient",
        r".*",
        r"gradient: raises RuntimeError: Function '\w+' returned nan values.*",
        lambda case: torch.is_anomaly_enabled(),
        garbage=True,
    ),
    Meant(
        "the key is bytes, which torch takes for a mask",
        r"__setitem__",
        r"raises RuntimeError: masked_fill_ only .*",
        of(torch.uint8),
    ),
    Meant(
        "a view of memory that was taken away", r"as_strided", r"raises RuntimeError: setStorage: .*|result 0: mask: .*"
    ),
    Meant(
        "an in-place view of what requires a gradient is refused",
        r"dropout1d",
        r"raises RuntimeError: unsqueeze_ on a masked tensor that requires grad: use .*",
    ),
    Meant(
        "torch itself refuses this derivative out of place",
        r"scatter_",
        r"raises RuntimeError: \w+ does not support automatic differentiation for outputs with complex dtype.",
        of(torch.complex64, torch.complex128),
    ),
    Meant(
        "torch's derivative over no named dimension divides by 0", r"var|std", r"gradient 0: value: .*, not \[-?inf.*"
    ),
    Meant(
        "private operators that read memory raise torch's own error",
        r"_sobol_\w+|_validate_sparse_\w+|fbgemm_\w+",
        r"raises RuntimeError: The tensor has a non-zero number of elements, but its data is not allocated yet.*",
    ),
]


def known(reason: str, names: str, detail: str, when: Callable[[Case], bool] = lambda case: True) -> Meant:
    return Meant(f"known: {reason}", names, detail, when, known=True)


# Faults that are known and not mended yet: they are counted on their own, and no reason for alarm in another test.
STRIDES = r"result \d+: strides: .*"
KNOWN: list[Meant] = []  # faults that are not mended yet, by ``known``


def declared(
    name: str, detail: str, arguments: Arguments, chosen: frozenset[int], theirs: Outcome, garbage: bool
) -> Meant | None:
    """Why a difference from plain torch is meant or known, or one of ``garbage`` from other data; or nothing."""
    case = Case(arguments, chosen, theirs, detail)
    last = name.rpartition(".")[2]
    for entry in (*EXCEPTIONS, *KNOWN):
        if garbage and not entry.garbage:
            continue
        if re.fullmatch(entry.names, last) and re.fullmatch(entry.detail, detail, re.DOTALL) and entry.when(case):
            return entry
    return None

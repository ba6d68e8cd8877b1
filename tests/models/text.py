"""The text models of transformers: every type whose model takes tokens, as eager code and by default."""

import copy
import inspect
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext, suppress
from typing import Any

import torch
from torch import Tensor, nn

import masked_tensor as mt

from .configs import ATTEMPTS, tiny
from .judge import LENGTHS, Inputs, Verdict, first_states, judge, padded, rows_of_ids, short, takes

VARIANTS = {  # name: dtype and the arguments of from_config
    "eager": (torch.float64, {"attn_implementation": "eager", "experts_implementation": "eager"}),
    "default": (torch.float32, {}),
}

Given = Callable[[nn.Module, float], tuple[list[Inputs], Inputs]]  #: rows alone, and the batch of them
WHOLE = (16, 7, 10)  #: rows of which the longest fills the blocks that code cuts time into, where LENGTHS do not
LARGE = 30_000_000  # weights


def types() -> list[str]:
    """The model types of the installed transformers that are text."""
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING

    return [name for name in CONFIG_MAPPING if is_text(name)]


def model_class(name: str) -> Any:
    """The class that ``AutoModel`` makes of a type; None if there is none."""
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING
    from transformers.models.auto.modeling_auto import MODEL_MAPPING

    try:
        found = MODEL_MAPPING[CONFIG_MAPPING[name]]
    except (KeyError, ImportError, ValueError):  # configurations without a model, or of packages that are not installed
        return None
    return found[0] if isinstance(found, tuple) else found


def is_text(name: str) -> bool:
    """Whether the type's model takes tokens, and nothing else that it must have."""
    found = model_class(name)
    if found is None:
        return False
    try:
        arguments = inspect.signature(found.forward).parameters
    except ImportError:  # of a package that is not installed
        return False
    other = {"pixel_values", "input_features", "image_features"} & set(arguments)
    return found.main_input_name == "input_ids" and "input_ids" in arguments and not other


def build(
    name: str, variant: str, dtype: torch.dtype | None = None, head: Any = None, given: Given | None = None
) -> nn.Module:
    """A tiny model of the type with random weights: of the configurations that are tried, the first that runs."""
    usual, options = VARIANTS[variant]
    built: list[nn.Module] = []
    errors: list[Exception] = []
    for attempt in ATTEMPTS:
        try:
            built.append(_made(name, options, attempt, head).to(dtype or usual).eval())
            with torch.no_grad():
                call(built[-1], (given or inputs)(built[-1], 0)[0][0])
            return built[-1]
        except Exception as error:
            errors.append(error)
    if not built:
        raise errors[0]
    return built[0]


def _made(name: str, options: dict[str, Any], attempt: frozenset[str], head: Any) -> nn.Module:
    """A model with weights that are not zero anywhere."""
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING

    config = tiny(CONFIG_MAPPING[name], attempt)
    made = head or model_class(name)
    with torch.device("meta"), suppress(NotImplementedError, RuntimeError, TypeError, ValueError):
        weights = sum(p.numel() for p in made._from_config(copy.deepcopy(config)).parameters())
        if weights > LARGE:
            raise MemoryError(f"{weights:,} weights are not tiny")
    torch.manual_seed(0)
    try:
        model = made._from_config(config, **options)
    except (TypeError, ValueError):  # a type that has one implementation only
        model = made._from_config(config)
    with torch.no_grad():
        for p in model.parameters():
            if p.is_floating_point():
                p.copy_(torch.randn(p.shape) * (0.3 if p.dim() > 1 else 0.1) + (p.dim() == 1) * 0.5)
    return model


def vocabulary(model: nn.Module) -> int:
    """How many tokens the model knows; more than 99 are not given."""
    size: int = getattr(model.config, "vocab_size", 99)
    with suppress(NotImplementedError):
        size = getattr(model.get_input_embeddings(), "num_embeddings", size)
    return min(99, size)


def call(model: nn.Module, inputs: Inputs) -> Tensor:
    """The states of the model for tokens, and for the tokens of its decoder if it has one."""
    return first_states(model(**inputs, **({"use_cache": False} if takes(model, "use_cache") else {})))


def _from_the_right(model: nn.Module, given: Inputs) -> Tensor:
    """The same with the padding first, for code that reads the last step of a block of time."""
    if not isinstance(given["input_ids"], mt.MaskedTensor):
        return call(model, given)
    ids = given["input_ids"]
    turned = mt.to_right(ids)
    return mt.to_left(call(model, {"input_ids": turned.packed() if ids.is_packed else turned}))


def _in_blocks(model: nn.Module, given: Inputs) -> Tensor:
    """The same padded up to a multiple of 16, as data collators make them, for code that pads to its own blocks."""
    ids = given["input_ids"]
    if not isinstance(ids, mt.MaskedTensor) or ids.shape[1] % 16 == 0:
        return call(model, given)
    padding = mt.as_masked_tensor(torch.zeros_like(ids.get_data()[:, :1]), torch.tensor(False)).expand(
        -1, -ids.shape[1] % 16
    )
    return call(model, given | {"input_ids": torch.cat([ids, padding], 1)})[:, : ids.shape[1]]


def inputs(model: nn.Module, garbage: float, lengths: tuple[int, ...] = LENGTHS) -> tuple[list[Inputs], Inputs]:
    """Rows alone, and the padded batch of them."""
    size = vocabulary(model)
    ids = rows_of_ids(size, lengths=lengths)
    rows: list[dict[str, Any]] = [{"input_ids": row} for row in ids]
    batch = {"input_ids": padded(ids, garbage)}
    if takes(model, "decoder_input_ids"):
        targets = rows_of_ids(size, seed=1, lengths=(6, 9, 4))
        rows = [row | {"decoder_input_ids": target} for row, target in zip(rows, targets, strict=True)]
        batch["decoder_input_ids"] = padded(targets, garbage)
    return rows, batch


# What makes a model exact that is not: by name, a context, and how it is called.
MEANS: dict[str, tuple[Callable[[], AbstractContextManager[Any]], Callable[[nn.Module, Inputs], Tensor]]] = {
    'meaning(padding="tensor")': (lambda: mt.meaning(padding="tensor"), call),
    'meaning(product="all")': (lambda: mt.meaning(product="all"), call),
    "masked_factories()": (mt.masked_factories, call),
    "rows padded to a multiple of its block": (nullcontext, _in_blocks),
    "to_right(x)": (nullcontext, _from_the_right),
}


def verdict(
    name: str, variant: str, garbage: float = -100, packed: bool = False, given: Given | None = None
) -> Verdict:
    """What becomes of one type; where its own code cannot do float64, in float32."""
    for dtype in (VARIANTS[variant][0], torch.float32):
        try:
            model = build(name, variant, dtype, given=given)
            rows, batch = (given or inputs)(model, garbage)
        except Exception as error:
            return Verdict("not built", short(error))
        batches = [(rows, batch), *([] if given else [inputs(model, garbage, WHOLE)])]
        if packed:
            batches = [(rows, {k: x.packed() for k, x in batch.items()}) for rows, batch in batches]
        found = judge(model, call, *batches[0])
        if found.outcome != "fails alone":
            return found if found.outcome == "exact" else _helped(model, found, batches)
    return found


def _helped(model: nn.Module, found: Verdict, batches: list[tuple[list[Inputs], Inputs]]) -> Verdict:
    """What the first of the means does that helps, with rows of other lengths, too; ``found`` if none does."""
    for name, (context, called) in MEANS.items():
        if called is not _from_the_right or set(batches[0][1]) == {"input_ids"}:
            with context():
                if all(judge(model, called, *given).outcome == "exact" for given in batches):
                    return Verdict("helped", name)
    return found

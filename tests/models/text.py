"""The text models of transformers: every type whose model takes tokens, as eager code and by default."""

import inspect
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch import Tensor, nn

import masked_tensor as mt

from .configs import tiny
from .judge import Inputs, Verdict, first_states, judge, padded, rows_of_ids, short, takes

VARIANTS = {  # name: dtype and the arguments of from_config
    "eager": (torch.float64, {"attn_implementation": "eager", "experts_implementation": "eager"}),
    "default": (torch.float32, {}),
}


def types() -> list[str]:
    """The model types of the installed transformers whose model takes tokens, and nothing else that it must have."""
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING

    return [name for name in CONFIG_MAPPING if _takes_tokens(name)]


def model_class(name: str) -> Any:
    """The class that ``AutoModel`` makes of a type; None if there is none."""
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING
    from transformers.models.auto.modeling_auto import MODEL_MAPPING

    try:
        found = MODEL_MAPPING[CONFIG_MAPPING[name]]
    except (KeyError, ImportError, ValueError):  # configurations without a model, or of packages that are not installed
        return None
    return found[0] if isinstance(found, tuple) else found


def _takes_tokens(name: str) -> bool:
    found = model_class(name)
    if found is None:
        return False
    try:
        arguments = inspect.signature(found.forward).parameters
    except ImportError:  # of a package that is not installed
        return False
    other = {"pixel_values", "input_features", "image_features"} & set(arguments)
    return found.main_input_name == "input_ids" and "input_ids" in arguments and not other


def build(name: str, variant: str, dtype: torch.dtype | None = None, head: Any = None) -> nn.Module:
    """A tiny model of the type with random weights that are not zero anywhere."""
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING

    usual, options = VARIANTS[variant]
    torch.manual_seed(0)
    config = tiny(CONFIG_MAPPING[name])
    made = head or model_class(name)
    try:
        model = made._from_config(config, **options)
    except (TypeError, ValueError):  # a type that has one implementation only
        model = made._from_config(config)
    with torch.no_grad():
        for p in model.parameters():
            if p.is_floating_point():
                p.copy_(torch.randn(p.shape) * (0.3 if p.dim() > 1 else 0.1) + (p.dim() == 1) * 0.5)
    return model.to(dtype or usual).eval()


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


def inputs(model: nn.Module, garbage: int, packed: bool = False) -> tuple[list[Inputs], Inputs]:
    """Rows alone, and the batch of them with holes, packed or not."""
    ids = rows_of_ids(99)
    rows: list[dict[str, Any]] = [{"input_ids": row} for row in ids]
    batch = {"input_ids": padded(ids, garbage)}
    if takes(model, "decoder_input_ids"):
        targets = rows_of_ids(99, seed=1, lengths=(6, 9, 4))
        rows = [row | {"decoder_input_ids": target} for row, target in zip(rows, targets, strict=True)]
        batch["decoder_input_ids"] = padded(targets, garbage)
    return rows, {k: x.packed() for k, x in batch.items()} if packed else batch


# What makes a model exact that is not: by name, a context, and how it is called.
MEANS: dict[str, tuple[Callable[[], AbstractContextManager[Any]], Callable[[nn.Module, Inputs], Tensor]]] = {
    'meaning(padding="tensor")': (lambda: mt.meaning(padding="tensor"), call),
    'meaning(product="all")': (lambda: mt.meaning(product="all"), call),
    "masked_factories()": (mt.masked_factories, call),
    "to_right(x)": (nullcontext, _from_the_right),
}


def verdict(name: str, variant: str, garbage: int = -100, packed: bool = False) -> Verdict:
    """What becomes of one type; where its own code cannot do float64, in float32."""
    for dtype in (VARIANTS[variant][0], torch.float32):
        try:
            model = build(name, variant, dtype)
        except Exception as error:
            return Verdict("not built", short(error))
        found = judge(model, call, *inputs(model, garbage, packed))
        if found.outcome != "fails alone":
            return found if found.outcome == "exact" else _helped(model, found, garbage, packed)
    return found


def _helped(model: nn.Module, found: Verdict, garbage: int, packed: bool) -> Verdict:
    """What the first of the means does that helps; ``found`` if none does."""
    for name, (context, called) in MEANS.items():
        if called is call or not takes(model, "decoder_input_ids"):
            with context():
                if judge(model, called, *inputs(model, garbage, packed)).outcome == "exact":
                    return Verdict("helped", name)
    return found

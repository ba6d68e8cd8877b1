"""Models of transformers: an attention function of this package, asked for while the model runs on flat tokens."""

import inspect
import sys
from functools import cache
from typing import Any

from torch import Tensor, nn

from ...packing.flat_attention import attend_within
from ...patches.places import ATTENTION
from ...rules.cross_entropy import IGNORED
from ...settings import in_force
from .attention import OwnMaskError, is_among, mask_of_its_own
from .tokens import FlatTokens

NAME = "masked_tensor"


def attention(
    module: nn.Module, query: Tensor, key: Tensor, value: Tensor, attention_mask: Tensor | None = None,
    scaling: float | None = None, dropout: float = 0.0, is_causal: bool | None = None,
    sliding_window: int | None = None, softcap: float | None = None, s_aux: Tensor | None = None, **given: Any,
) -> tuple[Tensor, None]:  # fmt: skip
    """Attention of one layer, ``(1, H, N, D)`` to ``(1, N, H, D)``, within each sequence; no weights."""
    mode = in_force().flat
    if mode is None or not is_among(mode.tokens, query, key, value):
        raise OwnMaskError(
            f"mt.flat: {type(module).__name__} attends from {query.shape[-2]} to {key.shape[-2]} steps, which are not "
            "the tokens of the batch; call the model on the masked batch without mt.flat"
        )
    if attention_mask is not None:
        raise OwnMaskError(mask_of_its_own(attention_mask))
    if given.get("position_bias") is not None:
        raise OwnMaskError(mask_of_its_own(given["position_bias"]))
    causal = bool(getattr(module, "is_causal", True) if is_causal is None else is_causal)
    grouped = query.shape[1] != key.shape[1]
    out = attend_within(
        mode.tokens.grid, query, key, value, dropout=dropout, causal=causal, scale=scaling, grouped=grouped,
        window=sliding_window, softcap=softcap, sinks=s_aux,
    )  # fmt: skip
    return out.transpose(1, 2).contiguous(), None


def configurations(module: nn.Module) -> list[Any]:
    """The configurations of the models of transformers within a module, each once."""
    library = sys.modules.get("transformers.configuration_utils")
    if library is None:
        return []
    found = [part.__dict__.get("config") for part in module.modules()]
    return list({id(c): c for c in found if isinstance(c, library.PreTrainedConfig)}.values())


def prepare(module: nn.Module) -> None:
    """While the module is flat, its models ask for this package's attention function, and make no mask for it."""
    configs = configurations(module)
    if configs:
        registry = sys.modules["transformers.modeling_utils"].ALL_ATTENTION_FUNCTIONS
        registry.register(NAME, attention)
    for config in configs:
        if not hasattr(type(config), "flat_of"):
            kind: Any = type(config)
            config.__class__ = _flat_configuration(kind)


def restore(module: nn.Module) -> None:
    """What :func:`prepare` changed is as it was."""
    for config in configurations(module):
        if hasattr(type(config), "flat_of"):
            config.__class__ = type(config).flat_of


@cache
def _flat_configuration(kind: Any) -> Any:
    before = getattr(kind, ATTENTION)

    def chosen(self: Any) -> Any:
        return before.fget(self) if in_force().flat is None else NAME

    def reduce(self: Any, protocol: int) -> Any:
        return _configured, (kind,), self.__dict__

    members = {
        ATTENTION: property(chosen, before.fset),
        "__reduce_ex__": reduce,
        "__module__": kind.__module__,
        "__qualname__": kind.__qualname__,
        "__doc__": kind.__doc__,
        "flat_of": kind,
    }
    return type(kind.__name__, (kind,), members)


def _configured(kind: Any) -> Any:
    new = _flat_configuration(kind)
    return new.__new__(new)


def first_position(module: nn.Module) -> int:
    """The number that positions begin at: ``padding_idx + 1`` in RoBERTa and what follows it, else 0."""
    part: Any
    for part in module.modules():
        if hasattr(type(part), "create_position_ids_from_input_ids"):
            return int(part.padding_idx) + 1
    return 0


def added(module: nn.Module, forward: Any, given: dict[str, Any], tokens: FlatTokens) -> dict[str, Any]:
    """What a model is told beside its tokens: positions, and that nothing is kept for generation."""
    if not configurations(module):
        return {}
    names = _parameters(forward)
    new: dict[str, Any] = {}
    if "position_ids" in names and given.get("position_ids") is None:
        new["position_ids"] = tokens.position_ids + first_position(module)
    if "use_cache" in names or (given.get("use_cache") is not None):
        new["use_cache"] = False
    return new


@cache
def _parameters(forward: Any) -> frozenset[str]:
    return frozenset(inspect.signature(forward).parameters)


def is_shifted(module: Any) -> bool:
    """Whether a model moves its labels by one step before it compares: a language model that predicts what follows."""
    kind = getattr(module, "loss_type", None)
    if kind is None:
        return bool(configurations(module)) and hasattr(module, "can_generate") and bool(module.can_generate())
    return kind in ("ForCausalLM", "ForConditionalGeneration")


def windows(module: nn.Module) -> list[int]:
    """The widths of windows that configurations name."""
    names = ("sliding_window", "local_attention", "attention_window", "window_size", "attention_chunk_size")
    found = [getattr(config, name, None) for config in configurations(module) for name in names]
    return [n for n in found if type(n) is int and n > 0]


def without_prediction_over_borders(labels: Tensor, starts: Tensor) -> Tensor:
    """Labels ``(1, N)`` that a model will shift: the first of each sequence is none that its last token predicts."""
    new = labels.clone()
    new[:, starts[starts < labels.shape[1]].long()] = IGNORED
    return new


def poolers(module: nn.Module) -> list[nn.Module]:
    """Submodules that read the first step of what they are given: poolers, and heads that classify sequences."""
    if not configurations(module):
        return []
    return [
        part
        for name, part in module.named_modules()
        if name.rpartition(".")[2] == "pooler" or type(part).__name__.endswith(("Pooler", "ClassificationHead"))
    ]


def first_tokens(args: tuple[Any, ...], tokens: Any) -> tuple[Any, ...]:
    """A hook's arguments: flat hidden states ``(1, N, C)`` as the first step of each sequence, ``(B, 1, C)``."""
    number = tokens.grid.index.shape[0]
    if 0 in tokens.grid.sizes:
        empty = tokens.grid.sizes.index(0)
        raise ValueError(
            f"mt.flat: sequence {empty} has no step that the model's pooler could read; leave it out of the batch"
        )
    starts = tokens.cu_seqlens[:-1].long()
    return tuple(
        x[0].index_select(0, starts)[:, None]
        if isinstance(x, Tensor) and x.dim() == 3 and x.shape[:2] == (1, number)
        else x
        for x in args
    )

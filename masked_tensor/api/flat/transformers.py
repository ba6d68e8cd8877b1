"""Models of the transformers library: this package's attention function, used while the model runs on flat tokens."""

import inspect
import sys
from functools import cache, wraps
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from ...patches.places import ATTENTION
from ...rules.cross_entropy import IGNORED
from .attention import MASK_OF_ITS_OWN, Flat, OwnMaskError, mode_in_force
from .classes import heir, put, take_back

NAME = "masked_tensor"


def attention(
    module: nn.Module, query: Tensor, key: Tensor, value: Tensor, attention_mask: Tensor | None = None,
    scaling: float | None = None, dropout: float = 0.0, is_causal: bool | None = None,
    sliding_window: int | None = None, softcap: float | None = None, s_aux: Tensor | None = None, **given: Any,
) -> tuple[Tensor, None]:  # fmt: skip
    """Attention of one layer, ``(1, H, N, D)`` to ``(1, N, H, D)``, within each sequence; no weights."""
    mode = mode_in_force()
    if mode is None or not mode.holds(query, key, value):
        raise OwnMaskError(
            f"mt.flat: {type(module).__name__} attends from {query.shape[-2]} to {key.shape[-2]} steps, which are not "
            "the tokens of the batch; call the model on the masked batch without mt.flat"
        )
    if attention_mask is not None:
        raise OwnMaskError(MASK_OF_ITS_OWN)
    if given.get("position_bias") is not None:
        raise OwnMaskError(MASK_OF_ITS_OWN)
    causal = bool(getattr(module, "is_causal", True) if is_causal is None else is_causal)
    grouped = query.shape[1] != key.shape[1]
    options = (dropout, causal, scaling, grouped, sliding_window, softcap, s_aux)
    out = mode.aside(mode.within, query, key, value, *options)
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
        put(config, _flat_configuration)
    for part in poolers(module):
        put(part, _flat_pooler)


def restore(module: nn.Module) -> None:
    """What :func:`prepare` changed is as it was."""
    for changed in (*configurations(module), *poolers(module)):
        take_back(changed)


@cache
def _flat_configuration(kind: Any) -> Any:
    before = getattr(kind, ATTENTION)

    def chosen(self: Any) -> Any:
        mode = mode_in_force()
        return before.fget(self) if mode is None or mode.apart else NAME

    return heir(kind, _flat_configuration, **{ATTENTION: property(chosen, before.fset)})


@cache
def _flat_pooler(kind: Any) -> Any:
    @wraps(kind.forward)
    def forward(self: Any, *args: Any, **kwargs: Any) -> Any:
        mode = mode_in_force()
        return kind.forward(self, *(args if mode is None else first_tokens(args, mode)), **kwargs)

    return heir(kind, _flat_pooler, forward=forward)


def first_position(module: nn.Module) -> int:
    """The number that positions begin at: ``padding_idx + 1`` in RoBERTa and what follows it, else 0."""
    part: Any
    for part in module.modules():
        if hasattr(type(part), "create_position_ids_from_input_ids"):
            return int(part.padding_idx) + 1
    return 0


class Asked(NamedTuple):
    """What is asked of a model once; to look through its parts at every call would take a while."""

    is_model: bool  #: of transformers
    names: frozenset[str] = frozenset()  #: what it may be told
    first: int = 0  #: where positions begin
    shifted: bool = False  #: whether labels are


def asked(module: Any, forward: Any) -> Asked:
    """What was asked of a flat module at its first call."""
    way = module.__dict__["flat_way"]
    if way.asked is None:
        is_model = bool(configurations(module))
        first = first_position(module) if is_model else 0
        names = _names(module, forward) if is_model else frozenset()
        way.asked = Asked(is_model, names, first, is_shifted(module))
    found: Asked = way.asked
    return found


def wanted(module: nn.Module, forward: Any, given: Any) -> tuple[int | None, bool]:
    """What a model is told beside its tokens: where positions begin, if at all; that nothing is kept to generate."""
    known = asked(module, forward)
    if not known.is_model:
        return None, False
    placed = "position_ids" in known.names and given.get("position_ids") is None
    return known.first if placed else None, "use_cache" in known.names or given.get("use_cache") is not None


def _names(module: nn.Module, forward: Any) -> frozenset[str]:
    """What a model may be told; of what hands on any argument, such as an adapter, what the model inside may be."""
    names, any_name = _parameters(forward)
    inside = (part for part in module.modules() if part is not module and "config" in part.__dict__)
    inner: Any = next(inside, None) if any_name and "position_ids" not in names else None
    return names if inner is None else names | _parameters(type(inner).forward)[0]


@cache
def _parameters(forward: Any) -> tuple[frozenset[str], bool]:
    """The names of arguments, and whether any other is taken."""
    given = inspect.signature(forward).parameters
    return frozenset(given), any(x.kind is x.VAR_KEYWORD for x in given.values())


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


def has_choices(module: nn.Module) -> bool:
    """Whether a model takes ``(B, choices, T)``."""
    return type(module).__name__.endswith("ForMultipleChoice") and bool(configurations(module))


def depends_on_length(module: nn.Module) -> str | None:
    """What a configuration says that short sequences do not show, or None."""
    if any(getattr(config, "attention_type", None) == "block_sparse" for config in configurations(module)):
        return "its attention is another one for long inputs (attention_type='block_sparse')"
    return None


def without_prediction_over_borders(labels: Tensor, position_ids: Tensor) -> Tensor:
    """Labels ``(1, N)`` that a model will shift: the first of each sequence is none that the last token predicts."""
    return labels.masked_fill(position_ids.to(labels.device) == 0, IGNORED)


def poolers(module: nn.Module) -> list[nn.Module]:
    """Submodules that read the first step of what they are given: poolers, and heads that classify sequences."""
    if not configurations(module):
        return []
    return [
        part
        for name, part in module.named_modules()
        if name.rpartition(".")[2] == "pooler" or type(part).__name__.endswith(("Pooler", "ClassificationHead"))
    ]


def first_tokens(args: tuple[Any, ...], mode: Flat) -> tuple[Any, ...]:
    """A pooler's arguments: flat hidden states ``(1, N, C)`` as the first step of each sequence, ``(B, 1, C)``."""
    number = mode.index.shape[0]
    if not torch.compiler.is_dynamo_compiling() and mode.grid is not None and 0 in mode.grid.sizes:
        empty = mode.grid.sizes.index(0)
        raise ValueError(
            f"mt.flat: sequence {empty} has no step that the model's pooler could read; leave it out of the batch"
        )
    starts = mode.lengths.cumsum(0) - mode.lengths
    return tuple([
        x[0].index_select(0, starts)[:, None]
        if isinstance(x, Tensor) and x.dim() == 3 and x.shape[0] == 1 and x.shape[1] == number
        else x
        for x in args
    ])  # fmt: skip

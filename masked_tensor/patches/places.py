"""Where this package changes modules of torch that it does not import: the names, and when they are replaced.

docs/importing.md lists the same names.  A torch that lacks one keeps its own errors there; a test reads ``PLACES``.
"""

from collections.abc import Callable
from functools import wraps
from typing import Any, NamedTuple

from .imports import when_imported

DYNAMO = "torch._dynamo"  #: is told what not to trace
FUNCTIONAL_COLLECTIVES = "torch.distributed._functional_collectives"  #: defines an op that gets a rule

_DISTRIBUTED = "torch.distributed"


class Place(NamedTuple):
    """Functions of a module, or methods of a class in it."""

    module: str
    owner: str  #: the class, "" for the module itself
    names: tuple[str, ...]


#: Pads shards of different length to one.
PAD_SHARDS = (
    Place(f"{_DISTRIBUTED}.tensor._collective_utils", "", ("pad_tensor",)),
    Place(f"{_DISTRIBUTED}.tensor.placement_types", "", ("pad_tensor",)),
)
#: Makes the ops by which a pipeline stage sends.
PIPELINE_SENDS = (
    Place(f"{_DISTRIBUTED}.pipelining.stage", "_PipelineStageBase", ("get_fwd_send_ops", "get_bwd_send_ops")),
)
#: Take the parameters of a model, or one of them.
DATA_PARALLEL = (Place("torch.nn.parallel.distributed", "DistributedDataParallel", ("__init__",)),)
FSDP_PARAMETER = (Place(f"{_DISTRIBUTED}.fsdp._fully_shard._fsdp_param", "FSDPParam", ("__init__",)),)
FSDP_PARAMETERS = (Place(f"{_DISTRIBUTED}.fsdp._flat_param", "FlatParamHandle", ("__init__",)),)
#: Says what the summed gradients are divided by.
FSDP_DIVISOR = (Place(f"{_DISTRIBUTED}.fsdp._fully_shard._fully_shard", "FSDPModule", ("set_gradient_divide_factor",)),)
#: Gathers a state dict, and hands one out.
GATHER_STATE_DICT = (Place(f"{_DISTRIBUTED}._state_dict_utils", "", ("_iterate_state_dict",)),)
PLACE_STATE_DICT = tuple(
    Place(f"{_DISTRIBUTED}.{module}", "", ("_broadcast_state_dict", "_distribute_state_dict"))
    for module in ("_state_dict_utils", "checkpoint.state_dict")  # which has them by name
)
#: Reads a checkpoint without a state dict, and stages one that is saved asynchronously.
READ_EMPTY = (Place(f"{_DISTRIBUTED}.checkpoint.default_planner", "_EmptyStateDictLoadPlanner", ("set_up_planner",)),)
STAGE = (Place(f"{_DISTRIBUTED}.checkpoint._state_dict_stager", "StateDictStager", ("_offload_tensor",)),)

PLACES = (
    *PAD_SHARDS, *PIPELINE_SENDS, *DATA_PARALLEL, *FSDP_PARAMETER, *FSDP_PARAMETERS, *FSDP_DIVISOR, *GATHER_STATE_DICT,
    *PLACE_STATE_DICT, *READ_EMPTY, *STAGE,
)  # fmt: skip


def wrap_when_imported(places: tuple[Place, ...], make: Callable[[Callable[..., Any]], Any]) -> None:
    """Has each function become what ``make`` makes of it, as soon as its module is imported."""
    for place in places:
        when_imported(place.module, _wrapping(place, make))


def _wrapping(place: Place, make: Callable[[Callable[..., Any]], Any]) -> Callable[[Any], None]:
    def wrap_all(module: Any) -> None:
        owner = getattr(module, place.owner, None) if place.owner else module
        for name in place.names:
            function = getattr(owner, name, None)
            if function is not None and not hasattr(function, "masks"):  # not twice: a module may have it from another
                made: Any = wraps(function)(make(function))
                made.masks = True
                setattr(owner, name, made)

    return wrap_all

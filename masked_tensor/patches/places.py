"""Where this package changes modules of torch that it does not import: the names, and when they are replaced.

docs/importing.md lists the same names.  A torch that lacks one keeps its own errors there; a test reads ``PLACES``.
"""

import sys
from collections.abc import Callable
from functools import wraps
from typing import Any, NamedTuple

import torch

from .imports import when_imported

DYNAMO = "torch._dynamo"  #: is told what not to trace
FLEX_ATTENTION = "torch._higher_order_ops.flex_attention"  #: is told what it does with masked tensors
FUNCTIONAL_COLLECTIVES = "torch.distributed._functional_collectives"  #: defines an op that gets a rule

_DISTRIBUTED = "torch.distributed"
_DIFFERENTIATE, _VMAP = "torch._functorch.eager_transforms", "torch._functorch.vmap"


class Place(NamedTuple):
    """A record that names functions of a module, or methods of a class in it.

    Args:
        module (str): The name of the module.
        owner (str): The name of the class; ``""`` for functions of the module itself.
        names (tuple of str): The names of the functions or methods.

    Example:
        >>> from masked_tensor.extend.libraries import Place
        >>> Place("torch.nn.utils.rnn", "", ("pad_sequence",)).owner
        ''
    """

    module: str
    owner: str
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

#: Fill a whole tensor with what they copy into it, or write at places of it.
INITIALIZERS = (Place("torch.nn.init", "", ("eye_", "dirac_", "orthogonal_", "sparse_")),)

#: Take data with a mask beside it.
TORCH_MASKED = (
    Place("torch.masked", "", ("amax", "amin", "argmax", "argmin", "cumprod", "cumsum", "log_softmax", "logaddexp")),
    Place("torch.masked", "", ("logsumexp", "mean", "median", "norm", "normalize", "prod", "softmax", "softmin")),
    Place("torch.masked", "", ("std", "sum", "var")),
)

#: Divide by a size, or by the sum of all weights.
TORCH_LOSSES = (Place("torch.nn.functional", "", ("mse_loss", "l1_loss", "kl_div", "multilabel_soft_margin_loss")),)

#: Is written in Python, in twelve ops.
WRITTEN_LOSSES = (Place("torch.nn.functional", "", ("gaussian_nll_loss",)),)

#: Attends in some 22 ops, of which nobody sees the results.
ATTENTION_FORWARD = (Place("torch.nn.functional", "", ("multi_head_attention_forward",)),)

#: Take a tensor into a level of torch.func and out of it.
WRAP_FOR_GRAD = (Place(_DIFFERENTIATE, "", ("_wrap_for_grad",)),)
UNWRAP_FOR_GRAD = (Place(_DIFFERENTIATE, "", ("_unwrap_for_grad",)),)
ADD_BATCH_DIM = (Place(_VMAP, "", ("_add_batch_dim",)),)
REMOVE_BATCH_DIM = (Place(_VMAP, "", ("_remove_batch_dim",)),)
#: Differentiate in a level of torch.func.
REQUIRE_GRAD = (Place(_DIFFERENTIATE, "", ("_set_tensor_requires_grad",)),)
AUTOGRAD_GRAD = (Place(_DIFFERENTIATE, "", ("_autograd_grad",)),)
STANDARD_BASIS = (Place(_DIFFERENTIATE, "", ("_chunked_standard_basis_for_",)),)
JVP = (Place(_DIFFERENTIATE, "", ("_jvp_with_argnums",)),)
#: Begin a level of torch.func, and end it.
BEGIN_LEVEL = (
    Place(_DIFFERENTIATE, "", ("_grad_increment_nesting", "_jvp_increment_nesting")),
    Place(_VMAP, "", ("_vmap_increment_nesting",)),
)
END_LEVEL = (
    Place(_DIFFERENTIATE, "", ("_grad_decrement_nesting", "_jvp_decrement_nesting")),
    Place(_VMAP, "", ("_vmap_decrement_nesting",)),
)
#: What the configuration of a model of transformers calls the name of its attention function.
ATTENTION = "_attn_implementation"
#: What ``torch.compile(module)`` calls the module that it compiles.
COMPILED_MODULE = "_orig_mod"
#: Reads an attribute of a tensor in a function that is compiled.
_READ = "var_getattr" if torch.__version__ < "2.14" else "tp_getattro_impl"
READ_ATTRIBUTE = (Place("torch._dynamo.variables.tensor", "TensorVariable", (_READ,)),)
#: Runs an ``autograd.Function`` in a level of torch.func.
CALL_FUNCTION = (Place("torch._functorch.autograd_function", "CustomFunctionHigherOrderOperator", ("__call__",)),)
#: Call a function of TorchScript, and a method of one of its modules.
TORCHSCRIPT = (Place("torch._C", "ScriptFunction", ("__call__",)), Place("torch._C", "ScriptMethod", ("__call__",)))

PLACES = (
    *PAD_SHARDS, *PIPELINE_SENDS, *DATA_PARALLEL, *FSDP_PARAMETER, *FSDP_PARAMETERS, *FSDP_DIVISOR, *GATHER_STATE_DICT,
    *PLACE_STATE_DICT, *READ_EMPTY, *STAGE, *WRAP_FOR_GRAD, *UNWRAP_FOR_GRAD, *ADD_BATCH_DIM, *REMOVE_BATCH_DIM,
    *REQUIRE_GRAD, *AUTOGRAD_GRAD, *STANDARD_BASIS, *JVP, *BEGIN_LEVEL, *END_LEVEL, *CALL_FUNCTION, *TORCHSCRIPT,
    *INITIALIZERS, *TORCH_MASKED, *TORCH_LOSSES, *WRITTEN_LOSSES, *ATTENTION_FORWARD, *READ_ATTRIBUTE,
)  # fmt: skip


def wrap_when_imported(places: tuple[Place, ...], make: Callable[[Callable[..., Any]], Any]) -> None:
    """Has each function become what ``make`` makes of it, as soon as its module is imported."""
    for place in places:
        when_imported(place.module, _wrapping(place, make))


def rebind(places: tuple[Place, ...], package: str = "") -> None:
    """Puts each wrapped function where another module, of ``package`` if one is named, had it by name before."""
    made: dict[int, Any] = {}
    for home, owner, names in places:
        if not owner and home in sys.modules:
            functions: list[Any] = [getattr(sys.modules[home], name, None) for name in names]
            made |= {id(f.__wrapped__): f for f in functions if hasattr(f, "masks")}
    for name, module in list(sys.modules.items()):
        if made and (not package or name.partition(".")[0] == package):
            held: dict[str, Any] = getattr(module, "__dict__", {})
            if made.keys().isdisjoint(map(id, list(held.values()))):  # one call: most modules have none
                continue
            for attribute, value in list(held.items()):
                if id(value) in made:
                    setattr(module, attribute, made[id(value)])


def missing(places: tuple[Place, ...]) -> list[str]:
    """The names among them that torch lacks, of modules that are imported."""
    found = []
    for module, owner, names in places:
        if module in sys.modules:
            where = getattr(sys.modules[module], owner, None) if owner else sys.modules[module]
            found += [f"{module}.{owner}.{name}".replace("..", ".") for name in names if not hasattr(where, name)]
    return found


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

"""Graphs for a device that this machine has not: tensors without memory on a device of another name.

``lazy`` stands for a GPU.  Autograd knows it in every build of torch (of ``cuda`` a build for the CPU knows no
streams), and nothing of this package looks for its name.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from importlib import import_module
from typing import Any

import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx import GraphModule
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils._pytree import tree_map

DEVICE = "lazy"
#: What computes nothing: other views of memory, and room for what follows.
VIEWS = {
    "view", "_unsafe_view", "expand", "permute", "slice", "select", "squeeze", "unsqueeze", "t", "transpose", "alias",
    "detach", "as_strided", "getitem", "split", "split_with_sizes", "unbind", "empty_like", "diagonal",
}  # fmt: skip


@lru_cache
def begin() -> str:
    """The device; from now on it computes, too, on the CPU."""
    import_module("torch._lazy.ts_backend").init()
    return DEVICE


@contextmanager
def elsewhere() -> Iterator[FakeTensorMode]:
    """Inside, tensors have no memory, and there is the device."""
    begin()
    with FakeTensorMode(allow_non_fake_inputs=True) as mode:
        yield mode


def there(value: Any, device: str = DEVICE) -> Any:
    """Tensors as such of the device, also inside of lists and dicts; anything else unchanged."""

    def move(x: Any) -> Any:
        if not isinstance(x, Tensor):
            return x
        made = torch.empty_strided(x.shape, x.stride(), dtype=x.dtype, device=device)
        return made.requires_grad_(x.requires_grad and x.is_leaf)

    return tree_map(move, value)


def move_module(module: nn.Module) -> nn.Module:
    """The module, with parameters and buffers there."""
    for part in module.modules():
        for name, p in list(part._parameters.items()):
            if p is not None:
                part._parameters[name] = nn.Parameter(there(p.detach()))
        for name, b in list(part._buffers.items()):
            part._buffers[name] = there(b)
    return module


def graph_of(function: Callable[..., Any], *args: Any) -> GraphModule:
    """What ``function`` calls, without what nobody uses."""
    graph = make_fx(function)(*args)
    graph.graph.eliminate_dead_code()
    return graph


def calls(graph: GraphModule) -> Counter[str]:
    """How often each op is called, without views."""
    names = (str(getattr(n.target, "__name__", n.target)) for n in graph.graph.nodes if n.op == "call_function")
    found = Counter(name.split(".")[0] for name in names)
    return Counter({name: n for name, n in found.items() if name not in VIEWS})


def strays(graph: GraphModule, device: str = DEVICE) -> list[str]:
    """The nodes of a graph that lie elsewhere than on the device, or are read on the host.

    What has no memory anywhere (``meta``) is a question about shapes, of which a graph keeps nothing.
    """
    found = []
    for node in graph.graph.nodes:
        made = getattr(graph, node.target) if node.op == "get_attr" else node.meta.get("val")
        several: Sequence[Any] = made if isinstance(made, tuple | list) else [made]
        for x in several:
            if (isinstance(x, Tensor) and x.device.type not in (device, "meta")) or isinstance(
                x, torch.SymInt | torch.SymFloat
            ):
                found.append(f"{node.name}: {node.target}")
    return found

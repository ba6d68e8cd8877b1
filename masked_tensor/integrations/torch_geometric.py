"""PyG: a mean over a group counts its valid members, and a quantile sorts them."""

from inspect import BoundArguments
from typing import Any

import torch
from torch import Tensor

from .. import MaskedSizeError, MaskedTensor, as_masked_tensor
from ..extend.libraries import replace
from .places import GRAPH_ATTENTION, MEMBERS, NORMS, QUANTILE, SCATTER
from .wrapping import Function, call, data_of, mask_of, valid_rows, which_rows, with_masked


def _scatter(scatter: Function, given: BoundArguments) -> Any:
    src, index, dim, size, reduce = (given.arguments[k] for k in ("src", "index", "dim", "dim_size", "reduce"))
    if reduce != "mean" or type(src) is not MaskedTensor or index.dim() != 1:
        return call(scatter, given)
    if size is None:
        size = int(index.max()) + 1 if len(index) else 0
    dim %= src.dim()
    shape = [size if d == dim else n for d, n in enumerate(src.shape)]
    groups = index.view([-1 if d == dim else 1 for d in range(src.dim())]).expand(src.shape)
    zeros = torch.zeros(shape, dtype=src.dtype, device=src.device)
    return zeros.scatter_reduce(dim, groups, src, "mean", include_self=False)


def _quantile(forward: Function, given: BoundArguments) -> Any:
    """Each feature of each group is a group of its own; what is masked goes to one more, which is dropped."""
    aggregation, x, index, size = (given.arguments[k] for k in ("self", "x", "index", "dim_size"))
    if type(x) is not MaskedTensor or index is None:
        return call(forward, given)
    if x.dim() != 2 or given.arguments["dim"] not in (0, -2):
        raise MaskedSizeError(
            f"{type(aggregation).__name__} would count masked members of a tensor of shape {tuple(x.shape)}; give it "
            "two dimensions, the members first: x.flatten(1)"
        )
    if size is None:
        size = int(index.max()) + 1 if len(index) else 0
    features = x.shape[1]
    groups = index[:, None] + size * torch.arange(features, device=index.device)
    groups = torch.where(mask_of(x), groups, size * features)
    given.arguments |= {"x": data_of(x).reshape(-1, 1), "index": groups.flatten(), "dim": 0}
    given.arguments |= {"ptr": None, "dim_size": size * features + 1}
    found: Tensor = call(forward, given)
    found = found[:-1].view(features, size, -1).permute(1, 2, 0).reshape(size, -1)
    return as_masked_tensor(found, torch.ones_like(found, dtype=torch.bool))


def _members(forward: Function, given: BoundArguments) -> Any:
    """Runs on the valid members, with their groups."""
    aggregation, x, index, ptr, dim = (given.arguments[k] for k in ("self", "x", "index", "ptr", "dim"))
    if type(x) is not MaskedTensor or not getattr(aggregation, "need_degree", True):  # fused sums need no count
        return call(forward, given)
    valid = which_rows(type(aggregation).__name__, x.movedim(dim, 0)).nonzero().squeeze(1)
    index = torch.repeat_interleave(ptr.diff()) if index is None else index
    given.arguments |= {"x": data_of(x).index_select(dim, valid), "index": index[valid], "ptr": None}
    return call(forward, given)


def _attention(forward: Function, given: BoundArguments) -> Any:
    """Runs on the valid nodes of each graph, which are then put back in their places."""
    x, told = given.arguments["x"], given.arguments["mask"]
    if type(x) is not MaskedTensor:
        return call(forward, given)
    valid = which_rows("SGFormerAttention", x, 2)
    found = []
    for nodes, own, where in zip(data_of(x), valid, [None] * len(x) if told is None else data_of(told), strict=True):
        given.arguments |= {"x": nodes[own][None], "mask": None if where is None else where[own][None]}
        found.append(call(forward, given)[0])
    joined = torch.cat(found)
    mask = valid[..., None].expand(*valid.shape, joined.shape[-1])
    return as_masked_tensor(joined.new_zeros(mask.shape).index_put((valid,), joined), mask)


def _norm(forward: Function, given: BoundArguments) -> Any:
    """Runs on the valid nodes, which are then put back in their places."""
    x, batch = given.arguments["x"], given.arguments["batch"]
    if type(x) is not MaskedTensor or (batch is None and given.arguments["self"].__class__.__name__ != "GraphSizeNorm"):
        return call(forward, given)
    (given.arguments["x"],) = valid_rows(type(given.arguments["self"]).__name__, x)
    valid = mask_of(x).flatten(1).any(1)
    given.arguments |= {"batch": None if batch is None else data_of(batch)[valid]}
    found: Tensor = call(forward, given)
    return as_masked_tensor(found.new_zeros(x.shape).index_put((valid,), found), mask_of(x))


replace(MEMBERS, with_masked(_members))
replace(GRAPH_ATTENTION, with_masked(_attention))
replace(NORMS, with_masked(_norm))
replace(SCATTER, with_masked(_scatter))
replace(QUANTILE, with_masked(_quantile))

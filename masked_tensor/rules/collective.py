"""Collectives: data moved between ranks keeps its validity; a reduction is over the ranks where an entry is valid.

A move sends data and mask in one message, with zeros where masked.  A reduction sends two: the data, with a value that
does not change the result where masked, and the number of ranks on which an entry is valid.  All ranks must pass masked
tensors: a rank whose tensor is valid everywhere passes ``as_masked_tensor(x, True)``.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, distributed

from .. import errors, masks, pair
from ..compat import OpOverload, schema, tree_leaves
from ..kernels.identity import identity
from ..op import Op, ops
from ..pair import Pair, Payload
from ..select import fill_masked, select, zero_masked

# ------------------------------------------------------------------------------------- into tensors that are given


@dataclass(frozen=True, slots=True)
class PendingWrite:
    """What is on its way: the works to wait for, and then the new pairs, nested as the first argument is."""

    works: Sequence[Any]  # as the dispatcher has them
    pairs: Callable[[], Any]


def _map_results(value: Any, change: Callable[[Pair], Any]) -> Any:
    if isinstance(value, list | tuple):
        return [_map_results(v, change) for v in value]
    return change(pair.as_pair(value)) if isinstance(value, Pair | Tensor) else value


def _work(result: Any) -> Any:
    return result[-1] if isinstance(result, tuple) else result


def _bytes(x: Pair, blocks: int) -> Tensor:
    """Data and mask as ``blocks`` rows of bytes: of each block first the data, then a byte for each of its masks."""
    data, mask = zero_masked(Pair(x.data.detach(), x.mask, x.payload)), x.mask
    size = data.numel() // blocks if blocks else 0
    parts = data.reshape(blocks, size).contiguous().view(torch.uint8), masks.to_bytes(mask.reshape(blocks, size))
    return torch.cat(parts, 1)


def _pair(sent: Tensor, like: Pair) -> Pair:
    """The reverse."""
    size = like.data.numel() // len(sent) if len(sent) else 0
    data = sent[:, : size * like.data.element_size()].flatten().view(like.data.dtype)
    mask = sent[:, size * like.data.element_size() :].flatten().view(torch.bool)
    return Pair(data.reshape(like.data.shape), mask.reshape(like.data.shape), Payload.ZERO)


def _blocks(op: OpOverload, outputs: Any, inputs: Any) -> tuple[Callable[[Pair], int], Callable[[Pair], int]]:
    """Into how many blocks of its own a tensor to be written, and one that is read, is divided."""
    name = schema(op).name
    if "alltoall_base" in name:  # rows may be split unevenly
        return (lambda x: x.data.shape[0],) * 2
    if "allgather_base" in name or "into_tensor" in name:
        out, given = (tree_leaves(part)[0] for part in (outputs, inputs))
        ranks = pair.data_of(out).numel() // max(1, pair.data_of(given).numel())
        return (lambda x: ranks), (lambda x: 1)
    return (lambda x: 1,) * 2


def move_tensors(op: OpOverload, outputs: Any, *args: Any) -> PendingWrite:
    """broadcast, all_gather, scatter, gather, all_to_all, recv: into masked tensors only."""
    out, given = _blocks(op, outputs, args[0])
    names = [a.name for a in schema(op).arguments][1:]
    source = "broadcast" in schema(op).name and args[names.index("root_rank")] == _group(args, names).rank()
    sent = _map_results(outputs, lambda x: _bytes(x, out(x)))
    works = [_work(op(sent, *(_map_results(a, lambda x: _bytes(x, given(x))) for a in args)))]

    def arrived() -> Any:
        found = iter(tree_leaves(sent))
        if source:  # it is not written, nor is its masked-out data
            return outputs
        return _map_results(outputs, lambda x: _pair(next(found), x))

    return PendingWrite(works, arrived)


def _group(args: Sequence[Any], names: list[str]) -> Any:
    return distributed.ProcessGroup.unbox(args[names.index("process_group")])


def send(op: OpOverload, tensors: Any, *args: Any) -> Any:
    """send and isend: data and mask are one message."""
    return op(_map_results(tensors, lambda x: _bytes(x, 1)), *args)


def reduce_ranks(op: OpOverload, outputs: Any, *args: Any) -> PendingWrite:
    """all_reduce, reduce, reduce_scatter: over the ranks on which an entry is valid."""
    names = [a.name for a in schema(op).arguments][1:]
    at, group = names.index("reduce_op"), _group(args, names)
    reduction = args[at].op()
    name = next((k for k in _REDUCTIONS if reduction == getattr(distributed.ReduceOp, k)), None)
    if name is None:
        raise errors.unsupported(f"{op.name()} with {reduction}", ["tensors"])
    number = torch.classes.c10d.ReduceOp()  # a sum
    how = number if name == "AVG" else args[at]
    data = _map_results(outputs, lambda x: _neutral(x, name))
    counts = _map_results(outputs, lambda x: x.mask.to(torch.int64))
    given = [_map_results(a, lambda x: _neutral(x, name)) for a in args]
    number_given = [_map_results(a, lambda x: x.mask.to(torch.int64)) for a in args]
    works = [
        _work(op(data, *(how if i == at else a for i, a in enumerate(given)))),
        _work(op(counts, *(number if i == at else a for i, a in enumerate(number_given)))),
    ]
    root = args[names.index("root_rank")] if "root_rank" in names else group.rank()

    def arrived() -> Any:
        found = zip(tree_leaves(data), tree_leaves(counts), strict=True)
        if root != group.rank():
            return outputs
        return _map_results(outputs, lambda x: _of_count(*next(found), name))

    return PendingWrite(works, arrived)


_REDUCTIONS = {"SUM": "sum", "AVG": "mean", "PRODUCT": "prod", "MIN": "min", "MAX": "max"}
_REDUCTIONS |= {"BAND": "band", "BOR": "sum", "BXOR": "sum"}  # which a 0 does not change, either


def _neutral(x: Pair, name: str) -> Tensor:
    fill = -1 if name == "BAND" else identity(_REDUCTIONS[name], x.data.dtype)
    return select(x.data.detach(), x.mask, fill).contiguous().clone()


def _of_count(data: Tensor, count: Tensor, name: str) -> Pair:
    if name == "AVG":
        data = _divide(data, count)
    return Pair(select(data, count > 0, 0), count > 0, Payload.ZERO)


def _divide(total: Tensor, count: Tensor) -> Tensor:
    count = count.clamp_min(1)
    if total.is_floating_point() or total.is_complex():
        return total / count.to(total.dtype)
    return total.div(count, rounding_mode="trunc").to(total.dtype)


# ------------------------------------------------------------------------------------------------- functional forms


def _wait_for(op: OpOverload, x: Any, *args: Any) -> Any:
    wait = torch.ops._c10d_functional.wait_tensor
    result = op(x, *args)
    return [wait(y) for y in result] if isinstance(result, list) else wait(result)


def move(op: OpOverload, x: Any, *args: Any) -> Any:
    """The functional broadcast, all_gather_into_tensor and all_to_all_single, of a tensor or of several."""
    if isinstance(x, list | tuple):
        return [move_one(*both) for both in _both(op, x, args)]
    return move_one(_wait_for(op, zero_masked(x).contiguous(), *args), _wait_for(op, _mask(x), *args))


def move_one(data: Tensor, mask: Tensor) -> Pair:
    """What arrived of the data and of its mask."""
    return Pair(data, mask.view(torch.bool), Payload.ZERO)


def _both(op: OpOverload, x: Sequence[Any], args: Any) -> Iterator[tuple[Tensor, Tensor]]:
    pairs = [pair.as_pair(v) for v in x]
    data = _wait_for(op, [zero_masked(p).contiguous() for p in pairs], *args)
    return zip(data, _wait_for(op, [_mask(p) for p in pairs], *args), strict=True)


def _mask(x: Pair) -> Tensor:
    return masks.to_bytes(x.mask).contiguous()


def reduce(op: OpOverload, x: Any, reduce_op: str, *args: Any) -> Any:
    """The functional all_reduce and reduce_scatter_tensor, of a tensor or of several."""
    name = {"product": "PRODUCT"}.get(reduce_op.lower(), reduce_op.upper())
    if name not in _REDUCTIONS:
        raise errors.unsupported(f"{op.name()} with {reduce_op!r}", ["input"])
    several = isinstance(x, list | tuple)
    pairs = [pair.as_pair(v) for v in (x if several else [x])]
    how = "sum" if name == "AVG" else reduce_op
    fills = [-1 if name == "BAND" else identity(_REDUCTIONS[name], p.data.dtype) for p in pairs]
    data: Any = [fill_masked(p, fill).contiguous() for p, fill in zip(pairs, fills, strict=True)]
    counts: Any = [p.mask.to(torch.int64) for p in pairs]
    data = _wait_for(op, data if several else data[0], how, *args)
    counts = _wait_for(op, counts if several else counts[0], "sum", *args)
    found = zip(data, counts, strict=True) if several else [(data, counts)]
    results = [_of_count(d, n, name) for d, n in found]
    return results if several else results[0]


def wait(x: Pair) -> Pair:
    """wait_tensor: the results of these rules have already arrived."""
    return x


OPS: list[Op] = []
if distributed.is_available():
    OPS = [
        *ops(
            "c10d::broadcast_ c10d::allgather_ c10d::_allgather_base_ c10d::allgather_coalesced_ c10d::scatter_ "
            "c10d::allgather_into_tensor_coalesced_ c10d::gather_ c10d::alltoall_ c10d::alltoall_base_ c10d::recv_ "
            "c10d::recv_any_source_",
            move_tensors,
            generic=True,
            arrives=True,
        ),
        *ops(
            "c10d::allreduce_ c10d::allreduce_coalesced_ c10d::reduce_ c10d::reduce_scatter_ "
            "c10d::_reduce_scatter_base_ c10d::reduce_scatter_tensor_coalesced_",
            reduce_ranks,
            generic=True,
            arrives=True,
        ),
        Op("c10d::send", send, generic=True),
        *ops(
            "_c10d_functional::broadcast _c10d_functional::all_gather_into_tensor "
            "_c10d_functional::all_gather_into_tensor_coalesced _c10d_functional::all_to_all_single "
            "_c10d_functional_autograd::all_gather_into_tensor _c10d_functional_autograd::all_to_all_single",
            move,
            generic=True,
        ),
        *ops(
            "_c10d_functional::all_reduce _c10d_functional::all_reduce_coalesced "
            "_c10d_functional::reduce_scatter_tensor _c10d_functional::reduce_scatter_tensor_coalesced "
            "_c10d_functional_autograd::reduce_scatter_tensor",
            reduce,
            generic=True,
        ),
        Op("_c10d_functional::wait_tensor", wait),
    ]

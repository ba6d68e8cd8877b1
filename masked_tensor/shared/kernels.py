"""Reductions of large tensors by kernels that inductor builds: filled, reduced and counted in one pass over memory.

Only where ``kernels("compiled")`` is in force.  What torch offers eagerly takes three passes, which the cache makes
cheap and not free.  A kernel is built once per reduction, dtype and number of threads, for all sizes; inductor keeps it
on disk for the next process.

``(A, n, size)`` is reduced along its last dimension, ``(A, n, size, B)`` along the last but one, in stretches of
``size``: the results of the stretches are few, and reduced as they are.
"""

import errno
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from math import prod
from os import getpid
from threading import Lock

import torch
from torch import Tensor

from .. import settings
from ..compat import compile_kernel, current_trace, is_readable_memory, is_tracked, mode_is_active
from ..fill import can_fill_bits
from ..pair import Pair, Payload
from .chunks import rounds_noticeably
from .identity import identity

Built = Callable[[Tensor, Tensor], Sequence[Tensor]]  #: (data, mask in bytes) to (reduced, valid entries in float32)

PLAIN: dict[str, Callable[..., Tensor]] = {
    "sum": torch.sum, "prod": torch.prod, "amax": torch.amax, "amin": torch.amin,
}  # fmt: skip
#: What there are kernels for: inductor does not vectorise smaller integers.
DTYPES = frozenset((torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int64, torch.int32))

_BUILT: dict[object, Built] = {}
_BUILDING = Lock()
#: One thread a process, where no mode and no dispatch key of a caller is at work; torch 2.11 does not bear a second.
_WORKERS: dict[int, ThreadPoolExecutor] = {}


def reduce(
    name: str, x: Pair, dims: tuple[int, ...], keepdim: bool, dtype: torch.dtype | None = None
) -> tuple[Tensor, Tensor] | None:
    """The reduction over the valid entries, and how many there are (int64).  None: the ordinary way is to be taken.

    That is so unless somebody asked for kernels, and for what is small, tracked or not in order in memory.
    """
    data = x.data
    if data.numel() < settings.LARGE or torch.compiler.is_dynamo_compiling():
        return None
    if settings.in_force().kernels != "compiled" or not _is_supported(x, name):
        return None
    out = dtype or (data.dtype if name not in ADDS or data.dtype.is_floating_point else torch.int64)
    order = sorted(range(data.dim()), key=data.stride, reverse=True)
    flat, mask = data.permute(order), x.mask.permute(order)
    blocks = _blocks(flat.shape, [d in dims for d in order])
    if out not in DTYPES or not (flat.is_contiguous() and mask.is_contiguous()) or not _is_worthwhile(blocks):
        return None
    found = _reduce_block(name, flat, mask.view(torch.uint8), blocks, torch.float32 if rounds_noticeably(out) else out)
    left = [d for d in order if keepdim or d not in dims]
    shape = [1 if d in dims else data.shape[d] for d in left]
    back = sorted(range(len(left)), key=lambda i: left[i])
    result, count = (t.view(shape).permute(back) for t in found)
    return result.to(out), count


#: Those whose result has a dtype of its own.
ADDS = ("sum", "prod")


def _is_supported(x: Pair, name: str) -> bool:
    data = x.data
    if data.dtype not in DTYPES or not can_fill_bits(data) or not is_readable_memory(x.mask) or is_tracked(data):
        return False
    if x.payload is Payload.ZERO and name == "sum":  # the plain op itself
        return False
    return not mode_is_active() and current_trace() is None


def _blocks(shape: Sequence[int], reduced: Sequence[bool]) -> list[tuple[int, bool]]:
    """The sizes of neighbours that are reduced, or kept, together."""
    blocks: list[tuple[int, bool]] = []
    for size, drop in zip(shape, reduced, strict=True):
        if blocks and blocks[-1][1] is drop:
            blocks[-1] = (blocks[-1][0] * size, drop)
        elif size != 1:
            blocks.append((size, drop))
    return blocks


def _is_worthwhile(blocks: list[tuple[int, bool]]) -> bool:
    """Whether there are rows long enough for vectors, and much less is left than there was."""
    reduced = [size for size, drop in blocks if drop]
    return len(reduced) > 0 and min(reduced[-1], blocks[-1][0]) >= settings.LANES


def _reduce_block(
    name: str, data: Tensor, mask: Tensor, blocks: list[tuple[int, bool]], dtype: torch.dtype
) -> tuple[Tensor, Tensor]:
    """The kernel along the last block that is reduced, then the plain op over its stretches and the other blocks."""
    at = max(i for i, (_, drop) in enumerate(blocks) if drop)
    before, length, after = blocks[:at], blocks[at][0], [size for size, _ in blocks[at + 1 :]]
    size = min(length, settings.STRIP if after else settings.RUN)
    whole = length - length % size
    kernel = _kernel(name, data.dtype, dtype, len(after))
    wide = [t.view(prod(n for n, _ in before), length, *after) for t in (data, mask)]
    result, count = kernel(*(t.narrow(1, 0, whole).unflatten(1, (whole // size, size)) for t in wide))
    if whole < length:
        rest = kernel(*(t.narrow(1, whole, length - whole).unsqueeze(1) for t in wide))
        result, count = torch.cat((result, rest[0]), 1), torch.cat((count, rest[1]), 1)
    over = [*(i for i, (_, drop) in enumerate(before) if drop), at]
    if over == [at] and size == length:
        return result, count.to(torch.int64)
    shape = [*(n for n, _ in before), result.shape[1], *after]
    result, count = result.view(shape), count.view(shape).sum(over, dtype=torch.int64)
    for d in reversed(over):
        result = _plain(name, result, d, dtype)
    return result, count


def _plain(name: str, data: Tensor, dim: int, dtype: torch.dtype) -> Tensor:
    return PLAIN[name](data, dim, dtype=dtype) if name in ADDS else PLAIN[name](data, dim)


def _kernel(name: str, dtype: torch.dtype, out: torch.dtype, after: int) -> Built:
    key = (name, dtype, out, after, torch.get_num_threads())
    if key not in _BUILT:
        with _BUILDING:
            _BUILT[key] = _BUILT.get(key) or _build(*key)
    return _BUILT[key]


def _build(name: str, dtype: torch.dtype, out: torch.dtype, after: int, threads: int) -> Built:
    fill = identity(name, dtype)

    def formula(data: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        valid = mask.to(torch.float32)  # inductor vectorises this, not a comparison of bytes
        return _plain(name, torch.where(valid != 0, data, fill), 2, out), torch.sum(valid, 2)

    def example(dtype: torch.dtype) -> Tensor:  # no two sizes are equal, and the first stride is not their product
        last = 127 if after else 1
        sizes = (37, 11, 61, last)[: 3 + after]
        strides = ((11 * 61 + 1) * last, 61 * last, last, 1)[: 3 + after]
        return torch.empty_strided(sizes, strides, dtype=dtype, device="cpu")

    def work() -> Built:
        torch.set_num_threads(threads)
        return compile_kernel(formula, (example(dtype), example(torch.uint8)))

    pool = _WORKERS.setdefault(getpid(), ThreadPoolExecutor(1))
    try:
        return pool.submit(copy_context().run, work).result()  # inductor's options lie in the context
    except Exception as error:
        what = f"kernels('compiled'): {name} of {dtype} could not be built: {error}\n"
        if _is_denied(error):
            raise RuntimeError(
                f"{what}Its cache on disk cannot be written: name a folder that can in TORCHINDUCTOR_CACHE_DIR (and "
                "TRITON_CACHE_DIR, TMPDIR), or leave the context"
            ) from error
        raise RuntimeError(
            f"{what}It takes a C++ compiler: g++, or what CXX names in the environment; leave the context without one"
        ) from error


def _is_denied(error: BaseException | None) -> bool:
    """Whether a file or folder that could not be written is at the bottom of ``error``."""
    while error is not None:
        if isinstance(error, OSError) and error.errno in UNWRITABLE:
            return True
        error = error.__cause__ or error.__context__
    return False


UNWRITABLE = {errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOSPC, errno.ENOTDIR, errno.EEXIST}

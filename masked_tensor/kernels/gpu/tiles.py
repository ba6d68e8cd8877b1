"""What the kernels share: indices, places in memory, and which entries are valid.

A tile has kept entries down and reduced entries across.  Its offsets are sums of two small vectors, in 64 bits.
"""

import triton
import triton.language as tl


@triton.jit
def indices(block, SIZE: tl.constexpr, WIDE: tl.constexpr):
    """The indices of a block."""
    if WIDE:
        return block.to(tl.int64) * SIZE + tl.arange(0, SIZE).to(tl.int64)
    else:
        return block * SIZE + tl.arange(0, SIZE)


@triton.jit
def places(i, near, outer, inner, TWO: tl.constexpr):
    """Where the entries ``i`` of one or two dimensions lie: ``near`` of them in the inner one."""
    if TWO:
        return (i // near).to(tl.int64) * outer + (i % near).to(tl.int64) * inner
    else:
        return i.to(tl.int64) * inner


@triton.jit
def down(k, near, strides, TWO: tl.constexpr):
    """The places of kept entries, as a column."""
    return places(k, near[0], strides[0], strides[1], TWO)[:, None]


@triton.jit
def across(r, near, strides, TWO: tl.constexpr):
    """The places of reduced entries, as a row."""
    return places(r, near[1], strides[2], strides[3], TWO)[None, :]


@triton.jit
def load_mask(m, at, inside):
    """Which entries of a tile are valid."""
    return (tl.load(m + at, mask=inside, other=0) != 0) & inside


@triton.jit
def load_valid(x, at, valid, ACC: tl.constexpr):
    """The valid entries, and 0: what is masked is never read."""
    return tl.load(x + at, mask=valid, other=0).to(ACC)


@triton.jit
def is_nan(x):
    return x != x


@triton.jit
def multiply(a, b):
    return a * b

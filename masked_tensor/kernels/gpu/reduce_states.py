"""What a reduction keeps while it runs: one or two numbers a lane, and how they are joined.

====================  ===========================================  ========================
ops                   the first                                    the second
====================  ===========================================  ========================
sum, mean, norms      the sum, as of nansum
any, count_nonzero    nothing                                      how many are not 0
all                   nothing                                      how many are 0
amax, amin, norminf   the greatest (of amin: of the negatives)     how often it was seen
prod                  the product of what is not 0                 the number of zeros
logsumexp             the greatest                                 the sum of ``exp(x - it)``
====================  ===========================================  ========================
"""

import triton
import triton.language as tl

from .tiles import is_nan, multiply


@triton.jit
def initial(BK: tl.constexpr, BR: tl.constexpr, OP: tl.constexpr, ACC: tl.constexpr):
    """Both numbers of a lane that has seen nothing."""
    if (OP == "amax") or (OP == "amin") or (OP == "norminf"):
        return tl.full([BK, BR], -float("inf"), ACC), tl.zeros([BK, BR], tl.int32)
    elif OP == "logsumexp":
        return tl.full([BK, BR], -float("inf"), ACC), tl.zeros([BK, BR], ACC)
    elif OP == "prod":
        return tl.full([BK, BR], 1.0, ACC), tl.zeros([BK, BR], tl.int32)
    else:
        return tl.zeros([BK, BR], ACC), tl.zeros([BK, BR], tl.int32)


@triton.jit
def step(a, b, d, v, OP: tl.constexpr):
    """Both numbers with one more entry ``d``, which is 0 where it is not valid."""
    if (OP == "any") or (OP == "count_nonzero"):
        return a, b + (v & (d != 0)).to(tl.int32)
    elif OP == "all":
        return a, b + (v & (d == 0)).to(tl.int32)
    elif (OP == "sum") or (OP == "mean"):
        return a + d, b
    elif OP == "nansum":
        return a + tl.where(is_nan(d), 0.0, d), b
    elif OP == "norm1":
        return a + tl.abs(d), b
    elif OP == "norm2":
        return a + d * d, b
    elif OP == "prod":
        zero = v & (d == 0)
        return a * tl.where(v & (d != 0), d, 1.0), b + zero.to(tl.int32)
    elif OP == "logsumexp":
        top = tl.maximum(a, tl.where(v, d, -float("inf")))
        return top, b * _below(a, top) + tl.where(v, _below(d, top), 0.0)
    else:
        d = _rank(d, OP)
        better = v & ((d > a) | (is_nan(d) & (a == a)))
        alike = v & ((d == a) | (is_nan(d) & is_nan(a)))
        return tl.where(better, d, a), tl.where(better, 1, b + alike.to(tl.int32))


@triton.jit
def _rank(d, OP: tl.constexpr):
    """What is greatest."""
    if OP == "amin":
        return -d
    elif OP == "norminf":
        return tl.abs(d)
    else:
        return d


@triton.jit
def _below(d, top):
    """``exp(d - top)``, 1 where both are the same infinity."""
    return tl.where(d == top, 1.0, tl.exp(d - top))


@triton.jit
def join(a, b, OP: tl.constexpr):
    """Both numbers, of all lanes of a row or of all parts."""
    if (OP == "amax") or (OP == "amin") or (OP == "norminf"):
        nan = is_nan(a)
        some = tl.max(nan.to(tl.int32), 1) > 0
        top = tl.max(tl.where(nan, -float("inf"), a), 1)
        attained = tl.where(some[:, None], nan, a == top[:, None])
        return tl.where(some, float("nan"), top), tl.sum(tl.where(attained, b, 0).to(tl.int64), 1)
    elif OP == "logsumexp":
        top = tl.max(a, 1)
        return top, tl.sum(b * _below(a, top[:, None]), 1)
    elif OP == "prod":
        return tl.reduce(a, 1, multiply), tl.sum(b.to(tl.int64), 1)
    else:
        return tl.sum(a, 1), tl.sum(b.to(tl.int64), 1)


@triton.jit
def finish(a, b, n, OP: tl.constexpr):
    """The result."""
    if OP == "any":
        return (b > 0).to(tl.uint8)
    elif OP == "all":
        return (b == 0).to(tl.uint8)
    elif OP == "count_nonzero":
        return b
    elif OP == "mean":
        return a / tl.maximum(n, 1).to(a.dtype)
    elif OP == "norm2":
        return tl.sqrt(a)
    elif OP == "prod":
        return tl.where(b > 0, a * 0.0, a)
    elif OP == "amin":
        return -a
    elif OP == "norminf":
        return tl.where(n > 0, a, 0.0)
    elif OP == "logsumexp":
        return tl.log(b) + a
    else:
        return a

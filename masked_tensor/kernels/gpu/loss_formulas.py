"""What an entry adds to a loss, and its slopes by input, target and variance; see losses.py."""

import triton
import triton.language as tl


@triton.jit
def entry(x, y, s, p, w, KIND: tl.constexpr, A: tl.constexpr, B: tl.constexpr):
    """The loss of an entry; ``s`` is its variance, ``p`` the weight of a positive, ``w`` a weight of the entry."""
    d = x - y
    size = tl.abs(d)
    if KIND == "mse_loss":
        return d * d * w
    elif KIND == "l1_loss":
        return size * w
    elif KIND == "smooth_l1_loss":
        return tl.where(size < A, 0.5 * d * d / A, size - 0.5 * A) * w
    elif KIND == "huber_loss":
        return tl.where(size < A, 0.5 * d * d, A * (size - 0.5 * A)) * w
    elif KIND == "binary_cross_entropy":
        return -(y * _log(x) + (1 - y) * _log(1 - x)) * w
    elif KIND == "binary_cross_entropy_with_logits":
        return ((1 - y) * x + (1 + (p - 1) * y) * (log1p(tl.exp(-tl.abs(x))) + tl.maximum(-x, 0.0))) * w
    elif KIND == "kl_div":
        if A != 0:  # the target is a logarithm
            return tl.exp(y) * (y - x) * w
        else:
            return tl.where(y == 0, 0.0, y * tl.log(tl.where(y == 0, 1.0, y))) * w - y * x * w
    else:
        spread = _spread(s, A)
        result = 0.5 * (tl.log(spread) + d * d / spread)
        return (result + B) * w


@triton.jit
def slopes(x, y, s, p, w, KIND: tl.constexpr, A: tl.constexpr):
    """The derivatives of ``entry`` by ``x``, ``y`` and ``s``."""
    d = x - y
    size = tl.abs(d)
    sign = tl.where(d > 0, 1.0, tl.where(d < 0, -1.0, d))
    none = d * 0.0
    if KIND == "mse_loss":
        return 2 * d * w, -2 * d * w, none
    elif KIND == "l1_loss":
        return sign * w, -sign * w, none
    elif KIND == "smooth_l1_loss":
        slope = tl.where(size < A, d / A, sign) * w
        return slope, -slope, none
    elif KIND == "huber_loss":
        slope = tl.where(size < A, d, A * sign) * w
        return slope, -slope, none
    elif KIND == "binary_cross_entropy":
        return d / tl.maximum((1 - x) * x, 1e-12) * w, none, none
    elif KIND == "binary_cross_entropy_with_logits":
        small = tl.exp(-tl.abs(x))
        below = tl.where(x > 0, small, 1.0) / (1 + small)  # sigmoid(-x)
        soft = log1p(small) + tl.maximum(-x, 0.0)
        return ((1 - y) - (1 + (p - 1) * y) * below) * w, ((p - 1) * soft - x) * w, none
    elif KIND == "kl_div":
        if A != 0:
            return -tl.exp(y) * w, tl.exp(y) * (y - x + 1) * w, none
        else:
            return -y * w, none, none
    else:
        spread = _spread(s, A)
        slope = d / spread * w
        return slope, -slope, 0.5 * (1 - d * d / spread) / spread * w


@triton.jit
def _spread(s, A: tl.constexpr):
    """A variance, at least A; a negative one, which is an error elsewhere, gives NaN."""
    return tl.where(s < 0, float("nan"), tl.where(s < A, A, s))


@triton.jit
def _log(x):
    """The logarithm, at least -100, as binary cross entropy takes it."""
    return tl.where(x == 0, -100.0, tl.maximum(tl.log(x), -100.0, propagate_nan=tl.PropagateNan.ALL))


@triton.jit
def log1p(x):
    """``log(1 + x)``, exact for a small ``x`` too: Kahan's correction of the rounded sum."""
    u = 1 + x
    return tl.where(u == 1, x, tl.log(u) * (x / tl.where(u == 1, 1.0, u - 1)))

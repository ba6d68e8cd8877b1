"""Forward mode by hand: the tangent of a tracked masked tensor stays on the data inside, past enter and leave.

Those are autograd Functions, and record the data without their tangent.
"""

from torch import Tensor
from torch.autograd import forward_ad

from ...compat import in_dual_level


def take_tangent(data: Tensor) -> tuple[Tensor, Tensor | None]:
    """The data without their tangent, and the tangent if there is one."""
    if not in_dual_level():
        return data, None
    primal, tangent = forward_ad.unpack_dual(data)
    return primal, tangent


def give_tangent(data: Tensor, tangent: Tensor | None) -> Tensor:
    """The data with that tangent."""
    return data if tangent is None else forward_ad.make_dual(data, tangent)

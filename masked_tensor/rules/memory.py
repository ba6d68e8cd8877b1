"""Memory: an op that would use a masked tensor's memory without its mask raises an error."""

from typing import Any

from .. import errors
from ..op import Op
from ..pair import Pair


def take_over(*args: Any, **kwargs: Any) -> Any:
    """``set_`` with a masked tensor on either side: an error."""
    raise errors.past_the_mask("set_()", "copy what x.filled(value) or x.get_data() gives")


def compatible(x: Any, new: Any) -> bool:
    """Whether ``x.data = new`` is possible, which torch asks first: an error for a plain ``x`` and a masked ``new``."""
    if type(x) is not Pair:
        raise errors.plain_target("plain.data = masked")
    return True


OPS = [Op("set_", take_over), Op("_has_compatible_shallow_copy_type", compatible)]

"""Memory: that of a masked tensor is not taken over by another tensor, which would read it past the mask."""

from typing import Any

from .. import errors
from ..op import Op


def take_over(*args: Any, **kwargs: Any) -> Any:
    """``set_`` with a masked tensor on either side: an error."""
    raise errors.past_the_mask("set_()", "copy what x.filled(value) or x.get_data() gives")


ROWS = [Op("set_", take_over)]

"""How the package's own libraries check what their public calls are given."""

from ..shapes import expect_int as expect_int
from ..shared.names import names_arguments as names_arguments

"""How the package's own libraries check the arguments of their public functions."""

from ..shapes import expect_int as expect_int
from ..shared.names import names_arguments as names_arguments

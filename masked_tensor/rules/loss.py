"""Not written yet."""

from ..op import Op

ROWS: list[Op] = []

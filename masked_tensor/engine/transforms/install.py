"""What is put into torch for its transforms when the first masked tensor of the process is made."""

from ...patches.first_use import when_first_made
from ...patches.places import wrap_when_imported
from ...patches.transforms import catch_ops
from ..torch_keys import transform_count
from .detour import detour
from .functions import REPLACED
from .levels import begin_level


def install() -> None:
    """Replaces torch's functions; a transform may be running, of a function that makes the first masked tensor."""
    for places, make in REPLACED:
        wrap_when_imported(places, make)
    catch_ops(detour)
    for _ in range(transform_count()):
        begin_level()


when_first_made(install)

"""What is installed in torch for its transforms when the first masked tensor of the process is made."""

import warnings

from ... import errors
from ...patches.first_use import when_first_made
from ...patches.places import missing, wrap_when_imported
from ..torch_keys import skip_engine, transform_count
from .detour import let_pass, register_kernels
from .functions import REPLACED
from .levels import begin_level


def install() -> None:
    """Replaces torch's functions; a transform may be running, of a function that makes the first masked tensor."""
    absent = [name for places, _ in REPLACED for name in missing(places)]
    if absent:
        warnings.warn(errors.transforms_lack(absent), RuntimeWarning, stacklevel=2)
    for places, make in REPLACED:
        wrap_when_imported(places, make)
    let_pass()
    skip_engine(True)
    for level in range(transform_count()):
        register_kernels()
        begin_level(level + 1)


when_first_made(install)

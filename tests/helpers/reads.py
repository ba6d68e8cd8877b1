"""Where nothing may be read on the host."""

import contextlib
import warnings
from collections.abc import Iterator

import torch


@contextlib.contextmanager
def no_sync(device: str, allowed: bool) -> Iterator[None]:
    """On a GPU, an error for every synchronisation, unless it is ``allowed``."""
    if device == "cpu" or allowed:
        yield
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch's own: a prototype
        torch.cuda.set_sync_debug_mode("error")
    try:
        yield
    finally:
        torch.cuda.set_sync_debug_mode("default")

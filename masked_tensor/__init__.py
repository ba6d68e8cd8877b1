"""A torch.Tensor subclass with a validity mask, and the same operations for plain tensors with ``mask=``."""

from typing import TYPE_CHECKING
from typing import Any as _Any

from . import extend as extend
from . import functional
from .api import satellites
from .api.batches.align import to_left, to_right
from .api.batches.batch import (
    from_attention_mask,
    from_lengths,
    from_nested,
    from_sequences,
    lengths_to_mask,
    pad_sequence,
)
from .api.batches.documents import document_mask, from_documents
from .api.batches.joins import cat, join
from .api.batches.packing import packed, unpacked
from .api.batches.unbatch import lengths, to_nested, to_packed_sequence, unpad
from .api.containers.arrow import writing  # noqa: F401 (it registers methods)
from .api.containers.arrow.table import to_arrow
from .api.containers.collate import collate
from .api.containers.files import load_file, save_file
from .api.display import html  # noqa: F401 (the same)
from .api.display import plot as plot
from .api.display.explain import explain
from .api.distributed import checkpoint, guards, mesh, state_dicts  # noqa: F401 (the same)
from .api.flat.module import flat
from .api.flat.tokens import from_flat
from .api.leave.convert import compressed, count, filled, get_data, get_mask, is_masked_tensor, to_numpy_ma
from .api.leave.select_valid import select_valid
from .api.losses import numel_warning  # noqa: F401 (the same)
from .api.make import hard_mask, initializers  # noqa: F401 (they register methods)
from .api.make.create import as_masked_tensor, masked_equal, masked_invalid, masked_tensor, masked_where
from .api.make.factories import masked_factories
from .api.modes import meaning, strict
from .api.python import comparison, flex_attention, other_names, protocols, torchscript  # noqa: F401 (they register methods)
from .engine.boundary import (
    autograd_queries,  # noqa: F401 (it gives the class its members)
    vmap,  # noqa: F401 (it registers kernels)
)
from .engine.compiled import flatten  # noqa: F401 (it gives the class its members)
from .engine.dynamo import run_eagerly
from .engine.tensor import MaskedTensor
from .engine.transforms import install as _install  # noqa: F401 (it waits for the first masked tensor)
from .errors import (
    MaskedLossWarning,
    MaskedSizeError,
    MaskedSizeWarning,
    MaskedValueError,
    MaskedWriteError,
    MaskMismatchError,
    UnsupportedOpError,
)
from .functional import *  # noqa: F403 (its names are listed there)
from .functional import torch_attention as _torch_attention  # noqa: F401 (it replaces a function)
from .functional import torch_masked as _torch_masked  # noqa: F401 (the same)
from .functional.losses import torch_losses as _torch_losses  # noqa: F401 (they replace functions)

__version__ = "0.1.0"  #: the one place where it stands

__all__ = [
    "LastValid",
    "MaskMismatchError",
    "MaskedLossWarning",
    "MaskedSizeError",
    "MaskedSizeWarning",
    "MaskedTensor",
    "MaskedValueError",
    "MaskedWriteError",
    "RunningStatistics",
    "UnsupportedOpError",
    "as_masked_tensor",
    "balanced_batches",
    "cat",
    "collate",
    "compressed",
    "count",
    "document_mask",
    "explain",
    "filled",
    "flat",
    "from_attention_mask",
    "from_documents",
    "from_flat",
    "from_lengths",
    "from_nested",
    "from_sequences",
    "get_data",
    "get_mask",
    "is_masked_tensor",
    "join",
    "lengths",
    "lengths_to_mask",
    "load_file",
    "masked_equal",
    "masked_factories",
    "masked_invalid",
    "masked_tensor",
    "masked_where",
    "mean_over",
    "meaning",
    "packed",
    "pad_sequence",
    "save_file",
    "select_valid",
    "strict",
    "to_arrow",
    "to_left",
    "to_nested",
    "to_numpy_ma",
    "to_packed_sequence",
    "to_right",
    "total",
    "unpacked",
    "unpad",
]
__all__ += functional.__all__

if TYPE_CHECKING:
    from .stats.last_valid import LastValid as LastValid
    from .stats.running import RunningStatistics as RunningStatistics
    from .train.batching import balanced_batches as balanced_batches
    from .train.mean_over import mean_over as mean_over
    from .train.total import total as total
else:

    def __getattr__(name: str) -> _Any:
        """What a satellite has, which is imported when it is asked for."""
        if name in satellites.HOMES:
            return satellites.load(name)
        owner = f"module {__name__!r}"
        known = name in other_names.LINES
        raise AttributeError(other_names.message(owner, name) if known else f"{owner} has no attribute {name!r}")


def __dir__() -> list[str]:
    """The public names and the public submodules; what else is imported here is the package's own."""
    return sorted([*__all__, "__version__", "extend", "functional", "plot", "testing"])


run_eagerly(__name__)
satellites.watch_libraries()

"""Where the ops of this package that compiled graphs call are defined: once in a process."""

import torch

if hasattr(torch.ops.masked_tensor, "attend"):
    raise ImportError(
        "masked_tensor was imported before in this process, which registers its kernels once; import it once, or start "
        "a new process (in a notebook, restart the kernel)"
    )
LIBRARY = torch.library.Library("masked_tensor", "FRAGMENT")  # lives as long as the process

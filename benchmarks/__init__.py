"""What masked tensors cost: ``python -m benchmarks`` runs everything here, or what is named."""

import os

os.environ.setdefault("KINETO_LOG_LEVEL", "99")  # torch's profiler, which counts memory, writes about itself

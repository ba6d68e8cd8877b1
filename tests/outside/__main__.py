"""Run outside suites by name; without a name, all of them.  The status is 1 where one found a difference."""

import sys
import warnings

from . import numpy_ma, upstream

SUITES = {"upstream": upstream.run, "numpy_ma": numpy_ma.run}

if __name__ == "__main__":
    names = sys.argv[1:] or list(SUITES)
    unknown = [name for name in names if name not in SUITES]
    if unknown:
        sys.exit(f"no suite named {', '.join(unknown)}; there are {', '.join(SUITES)}")
    warnings.simplefilter("ignore")  # each suite's own: of prototypes, betas, deprecations
    sys.exit(max(SUITES[name]() for name in names))

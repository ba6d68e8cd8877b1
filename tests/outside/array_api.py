"""The array-api-tests package over a thin namespace of masked tensors in which nothing is masked.

The package is ``array-api-tests`` of data-apis; it names the module under test by ``ARRAY_API_TESTS_MODULE``, which is
``tests.outside.namespace`` here.  Plain torch under the same namespace is the number to reach.
"""

import importlib.util
import os
import subprocess
import sys


def run() -> int:
    """Run the package's suite over ``namespace``; where it is not installed, say so and pass."""
    found = importlib.util.find_spec("array_api_tests")
    if found is None or found.origin is None:
        print("array_api: skipped: the package array_api_tests is not installed (pip install array-api-tests)")
        return 0
    environment = os.environ | {"ARRAY_API_TESTS_MODULE": "tests.outside.namespace"}
    command = [sys.executable, "-m", "pytest", "-q", "-W", "ignore", "-o", "addopts=", os.path.dirname(found.origin)]
    return int(subprocess.run(command, env=environment, check=False).returncode != 0)

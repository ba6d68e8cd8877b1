"""Suites of other projects, run on demand: ``python -m tests.outside array_api``, ``numpy_ma`` or ``upstream``."""

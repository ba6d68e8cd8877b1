"""Suites of other projects, run on demand: ``python -m tests.outside numpy_ma`` or ``upstream``."""

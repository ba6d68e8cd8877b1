"""Suites of other projects, run on demand: ``python -m tests.outside numpy_ma``, ``upstream`` or ``array_api``."""

"""Engines that start at once, where they are installed; ``python -m tests.engines`` runs all."""

from pathlib import Path

import pytest

from . import engines


@pytest.mark.parametrize("name", ["polars", "duckdb"])
@pytest.mark.parametrize("task", engines.TASKS)
def test_an_engine_gives_what_one_table_gives(name: str, task: str, tmp_path: Path) -> None:
    reason = engines.why_not(name)
    if reason:
        pytest.skip(reason)
    table = engines.write(str(tmp_path))
    engines.TASKS[task](engines.ENGINES[name], str(tmp_path), table)

"""The op table as users read it."""

import subprocess
import sys

import pytest

from masked_tensor import explain
from masked_tensor.api.inspect import families
from masked_tensor.engine import table


def test_explain_gives_schema_law_rule_and_parameters() -> None:
    text = explain("alpha_dropout")
    assert "aten::alpha_dropout(Tensor input, float p, bool train) -> Tensor" in text
    assert "law   Randomness: a random op draws the numbers the plain op draws" in text
    assert "rule  masked_tensor.rules.random.dropout" in text
    assert "keeps_zero=False" in text
    assert explain("where").count("law ") == 1


@pytest.mark.parametrize("name", ["add", "aten::add", "add.Tensor", "add_", "_to_copy", "max.other"])
def test_explain_knows_every_way_to_name_an_op(name: str) -> None:
    assert explain(name)


def test_explain_of_an_unknown_op() -> None:
    with pytest.raises(KeyError, match="no row for 'no_such_op'"):
        explain("no_such_op")


def test_rows_of_every_family_can_be_explained() -> None:
    for overload in list(table.ENTRIES)[::20]:
        assert "law   " in explain(overload.name())


def test_families_hold_every_functional_op_once() -> None:
    names = [name for group in families().values() for name in group]
    functional = {e.overload._schema.name for e in table.ENTRIES.values() if e.kind == "functional"}
    assert len(set(names)) == len(functional)


def test_the_command_line() -> None:
    run = subprocess.run([sys.executable, "-m", "masked_tensor"], capture_output=True, text=True, check=True)
    assert run.stdout.startswith("masked_tensor ")
    assert "pointwise (" in run.stdout
    one = subprocess.run([sys.executable, "-m", "masked_tensor", "relu"], capture_output=True, text=True, check=True)
    assert "law   Elementwise" in one.stdout
    unknown = subprocess.run([sys.executable, "-m", "masked_tensor", "no_such"], capture_output=True, text=True)
    assert unknown.returncode == 1
    assert "no row for 'no_such'" in unknown.stderr

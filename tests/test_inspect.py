"""The op table as users read it."""

import runpy
import subprocess
import sys
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import masked_tensor as mt
from masked_tensor import explain, extend
from masked_tensor.api.display.explain import families
from masked_tensor.api.display.op_lookup import operators_of
from masked_tensor.engine import table


def test_explain_gives_schema_law_rule_and_parameters() -> None:
    text = explain("alpha_dropout")
    assert "aten::alpha_dropout(Tensor input, float p, bool train) -> Tensor" in text
    assert "means   Randomness: a random op draws the same numbers as the plain op" in text
    assert "rule    masked_tensor.rules.random.dropout" in text
    assert "keeps_zero=False" in text
    assert explain("where").count("means ") == 1


@pytest.mark.parametrize("name", ["add", "aten::add", "add.Tensor", "add_", "_to_copy", "max.other"])
def test_explain_knows_every_way_to_name_an_op(name: str) -> None:
    assert explain(name)


CALLED = [
    ("cross_entropy", "cross_entropy_loss"), (F.mse_loss, "mse_loss"), (nn.Conv1d, "conv1d"), (torch.sum, "sum"),
    (torch.Tensor.sum, "sum"), ("Tensor.sum", "sum"), ("torch.sum", "sum"), ("x.sum()", "sum"), ("F.relu", "relu"),
    ("nn.Linear", "linear"), (nn.Linear(1, 1), "linear"), (nn.LSTM, "lstm"), (nn.LayerNorm, "layer_norm"),
    (nn.Dropout, "dropout"), (nn.BatchNorm1d, "batch_norm"), ("@", "matmul"), ("+", "add"), ("x[i]", "index"),
    (F.max_pool1d, "max_pool1d"), (nn.MaxPool1d, "max_pool1d"), ("__getitem__", "index"),
    ("interpolate", "upsample_nearest1d"), (F.normalize, "norm"), (nn.CrossEntropyLoss, "cross_entropy_loss"),
    (nn.GELU(), "gelu"), (mt.sum, "sum"), ("multi_head_attention_forward", "linear"), ("linalg.norm", "norm"),
]  # fmt: skip


@pytest.mark.parametrize(("typed", "op"), CALLED, ids=[getattr(t, "__name__", str(t)) for t, _ in CALLED])
def test_explain_takes_what_a_user_types(typed: object, op: str) -> None:
    assert op in operators_of(typed)
    assert f"aten::{op}" in explain(typed) or f"{op}," in explain(typed).splitlines()[0] + ","


@pytest.mark.parametrize("typed", [torch.einsum, "torch.einsum", "pad", F.pad, "tensordot", torch.fft.fft])
def test_explain_of_what_torch_composes(typed: object) -> None:
    assert "torch composes it of other operators" in explain(typed)
    assert "modules that it is made of" in explain(nn.Transformer)


def test_explain_of_an_unknown_op() -> None:
    with pytest.raises(KeyError, match="no operator is known as 'sofmax'; did you mean softmax"):
        explain("sofmax")


def test_ops_of_every_family_can_be_explained() -> None:
    own = [o for o, entry in table.ENTRIES.items() if str(entry.op.rule.__module__).startswith("masked_tensor.")]
    for overload in own[::20]:  # other tests register ops of theirs, also with rules that have no module
        text = explain(overload.name())
        assert "means   " in text
        assert " at 0x" not in text, "a function is shown by its name"


def test_a_rule_whose_code_has_no_module_is_explained() -> None:
    """As one that is written in a block of a page, or sent to ``exec``."""
    twice = torch.library.custom_op("inspected::twice", lambda x: 2 * x, mutates_args=(), schema="(Tensor x) -> Tensor")
    names = dict[str, Any]()
    exec("def rule(x):\n    return x", names)
    extend.register_rule(twice._qualname)(names["rule"])
    assert "rule    rule\n" in explain("inspected::twice")
    assert families()["inspected"] == ["inspected::twice"]


def test_families_hold_every_functional_op_once() -> None:
    names = [name for group in families().values() for name in group]
    functional = {e.overload._schema.name for e in table.ENTRIES.values() if e.kind == "functional"}
    assert len(set(names)) == len(functional)


def test_the_command_line() -> None:
    run = subprocess.run([sys.executable, "-m", "masked_tensor"], capture_output=True, text=True, check=True)
    assert run.stdout.startswith("masked_tensor ")
    assert "pointwise (" in run.stdout


@pytest.mark.parametrize(
    ("argument", "shown", "code"),
    [
        ("relu", "means   Elementwise", None),
        ("--help", "usage: python -m masked_tensor", 0),
        ("no_such", "", "no operator is known as 'no_such'"),
    ],
)
def test_the_command_line_takes_arguments(
    argument: str, shown: str, code: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["masked_tensor", argument])
    try:
        runpy.run_module("masked_tensor", run_name="__main__")
        found = None
    except SystemExit as stopped:
        found = stopped.code
    assert str(found).startswith(str(code))
    assert shown in capsys.readouterr().out

"""Arguments that no call can mean, in each place of each public call that is no functional form: converters, classes
and their methods, samplers, settings, what extends the package, and what tests with it.

``MASKED_TENSOR_HOSTILE=1`` tries all of them in all places, by default every 23rd.
"""

import inspect
import os
import tempfile
from collections.abc import Callable, Iterator
from functools import wraps
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import masked_tensor as mt
from masked_tensor import extend, functional, testing
from masked_tensor.api.display import plot
from masked_tensor.extend import masks

from .helpers.hostile import HOSTILE, fault
from .names import lines

EVERY = 1 if os.environ.get("MASKED_TENSOR_HOSTILE") else 23
Call = tuple[Callable[..., Any], dict[str, Any]]


def x() -> Any:
    return mt.masked_tensor([[1.0, None, 4.0], [3.0, 5.0, 2.0]])


def padded() -> Any:
    return mt.from_lengths(torch.ones(2, 3), [3, 2])


def packed() -> Any:
    return mt.from_lengths(torch.ones(2, 3), [3, 2], packed=True)


def plain() -> Tensor:
    return torch.ones(2, 3)


def mask() -> Tensor:
    return torch.tensor([[True, False, True], [True, True, False]])


def segments() -> extend.Segments:
    return extend.Segments(2, torch.tensor([0, 0, 1]), torch.tensor([[2], [1]]))


def flat_module() -> nn.Module:
    return nn.Sequential(nn.Linear(4, 4), nn.ReLU())


def flat_tokens() -> Any:
    return mt.from_lengths(torch.ones(2, 3, 4), [3, 2]).to_flat()


def sampler() -> mt.balanced_batches:
    return mt.balanced_batches([1, 2, 3], tokens=6)


def statistics() -> mt.RunningStatistics:
    return mt.RunningStatistics(3, sketch=True).update(x())


def states() -> mt.LastValid:
    return mt.LastValid(3).update(x())


def mean() -> mt.mean_over:
    made = mt.mean_over([nn.Parameter(torch.ones(3))])
    with made:
        nn.functional.mse_loss(plain(), x())
    return made


@torch.library.custom_op("hostile::scale", mutates_args=(), schema="(Tensor x, float by) -> Tensor")
def scale(x: Tensor, by: float) -> Tensor:
    return x * by


def rule(x: Any, by: float) -> Any:
    return extend.Pair(scale(x.data, by), x.mask)


def sums(values: Tensor, segments: extend.Segments) -> Tensor:
    return segments.sum(values)


def of(function: Callable[..., Any], /, **arguments: Callable[[], Any]) -> Callable[[], Call]:
    """A call whose arguments are made anew each time."""
    return lambda: (function, {key: make() for key, make in arguments.items()})


def method(make: Callable[[], Any], name: str, /, **arguments: Callable[[], Any]) -> Callable[[], Call]:
    return lambda: (getattr(make(), name), {key: made() for key, made in arguments.items()})


def entered(setting: Callable[..., Any]) -> Callable[..., Any]:
    """A setting that is made, entered and left; a sampler that is run through."""

    @wraps(setting)
    def use(*args: Any, **kwargs: Any) -> None:
        with setting(*args, **kwargs):
            nn.functional.mse_loss(plain(), x())

    return use


def run_through(kind: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(kind)
    def use(*args: Any, **kwargs: Any) -> None:
        list(kind(*args, **kwargs))

    return use


def saved() -> str:
    file = Path(tempfile.gettempdir()) / f"hostile{os.getpid()}.safetensors"
    if not file.exists():
        mt.save_file({"x": x()}, file)
    return str(file)


#: Every public call that is no functional form: one that succeeds.
CALLS: dict[str, Callable[[], Call]] = {
    "LastValid": of(mt.LastValid, columns=lambda: 3),
    "LastValid.__call__": method(states, "__call__", x=x),
    "LastValid.before": of(mt.LastValid.before, rows=lambda: states().to_arrow()),
    "LastValid.from_arrow": of(mt.LastValid.from_arrow, rows=lambda: states().to_arrow()),
    "LastValid.merge": method(states, "merge", later=states),
    "LastValid.to_arrow": method(states, "to_arrow"),
    "LastValid.update": method(states, "update", x=x),
    **{
        f"MaskedTensor.{name}": method(make, name, **more)
        for make, more, *names in (
            (x, {}, "clear_masked", "compressed", "count", "filled", "get_data", "get_mask", "harden_mask"),
            (x, {}, "soften_mask", "to_numpy", "to_numpy_ma", "unpacked"),
            (x, {"value": lambda: 0.0}, "to_tensor"),
            (padded, {}, "lengths", "packed", "to_nested", "to_packed_sequence", "unpad", "to_flat"),
        )
        for name in names
    },
    "RunningStatistics": of(mt.RunningStatistics, features=lambda: 3),
    "RunningStatistics.forward": method(statistics, "forward", x=x),
    "RunningStatistics.refined": method(
        lambda: mt.RunningStatistics(3, edges=torch.linspace(0.0, 9.0, 4)).update(x()), "refined", q=lambda: 0.5
    ),
    "RunningStatistics.from_arrow": of(mt.RunningStatistics.from_arrow, rows=lambda: statistics().to_arrow()),
    "RunningStatistics.map_batches": method(statistics, "map_batches", batches=lambda: [x()]),
    "RunningStatistics.merge": method(statistics, "merge", other=statistics),
    "RunningStatistics.merge_all": of(mt.RunningStatistics.merge_all, states=lambda: [statistics()]),
    **{f"RunningStatistics.{name}": method(statistics, name, q=lambda: 0.5) for name in ("quantile", "quantile_error")},
    **{
        f"RunningStatistics.{name}": method(statistics, name)
        for name in ("all_reduce", "rank_error", "reset", "summary", "to_arrow", "to_pandas")
    },
    **{
        f"RunningStatistics.{name}": method(lambda: mt.RunningStatistics(3, cov=True).update(x()), name)
        for name in ("corr", "corrcoef", "cov")
    },
    "RunningStatistics.update": method(statistics, "update", x=x),
    "as_masked_tensor": of(mt.as_masked_tensor, data=plain, mask=mask),
    "balanced_batches": of(run_through(mt.balanced_batches), lengths=lambda: [1, 2, 3], tokens=lambda: 6),
    "balanced_batches.left": method(sampler, "left"),
    "balanced_batches.load_state_dict": method(sampler, "load_state_dict", state=lambda: sampler().state_dict()),
    "balanced_batches.set_epoch": method(sampler, "set_epoch", epoch=lambda: 1),
    "balanced_batches.state_dict": method(sampler, "state_dict"),
    "cat": of(mt.cat, tensors=lambda: [x(), plain()]),
    "collate": of(mt.collate, batch=lambda: [x(), x()]),
    "document_mask": of(mt.document_mask, segment_ids=lambda: torch.tensor([[0, 0, 1]])),
    "explain": of(mt.explain, op=lambda: "softmax"),
    **{name: of(getattr(mt, name), x=x) for name in ("compressed", "count", "filled", "get_data", "get_mask")},
    **{name: of(getattr(mt, name), x=x) for name in ("is_masked_tensor", "to_arrow", "to_numpy_ma", "unpacked")},
    **{name: of(getattr(mt, name), x=padded) for name in ("lengths", "packed", "to_left", "to_nested", "to_right")},
    **{name: of(getattr(mt, name), x=padded) for name in ("to_packed_sequence", "unpad")},
    "flat": of(mt.flat, module=flat_module),
    "from_attention_mask": of(mt.from_attention_mask, inputs=plain, attention_mask=mask),
    "from_documents": of(
        mt.from_documents, rows=lambda: torch.arange(3)[None], segment_ids=lambda: torch.tensor([[0, 0, 1]])
    ),
    "from_flat": of(mt.from_flat, values=lambda: flat_tokens().values, flat=flat_tokens),
    "from_lengths": of(mt.from_lengths, padded=plain, lengths=lambda: [3, 2]),
    "from_nested": of(mt.from_nested, nested=lambda: padded().to_nested()),
    "from_sequences": of(mt.from_sequences, sequences=lambda: [x(), plain()]),
    "join": of(mt.join, batches=padded),
    "lengths_to_mask": of(mt.lengths_to_mask, lengths=lambda: [1, 2]),
    "load_file": of(mt.load_file, filename=saved),
    "masked_equal": of(mt.masked_equal, data=plain, value=lambda: 1.0),
    "masked_factories": of(entered(mt.masked_factories)),
    "masked_invalid": of(mt.masked_invalid, data=plain),
    "masked_tensor": of(mt.masked_tensor, data=plain, mask=mask),
    "masked_where": of(mt.masked_where, condition=mask, data=plain),
    "mean_over": of(entered(mt.mean_over), parameters=lambda: [nn.Parameter(torch.ones(3))]),
    **{
        f"mean_over.{name}": method(mean, name, **more)
        for name, more in {
            "finish": {},
            "mean": {"x": x},
            "reset": {},
            "skip": {},
            "weigh": {"term": lambda: torch.tensor(1.0)},
        }.items()
    },
    "meaning": of(entered(mt.meaning)),
    "pad_sequence": of(mt.pad_sequence, sequences=lambda: [x(), plain()]),
    "save_file": of(mt.save_file, tensors=lambda: {"x": x()}, filename=lambda: saved() + ".more"),
    "select_valid": of(mt.select_valid, tensors=lambda: mt.masked_tensor([1.0, None])),
    "strict": of(entered(mt.strict)),
    "total": of(mt.total, losses=lambda: torch.tensor(1.0)),
    "extend.Pair": of(extend.Pair, data=plain, mask=mask),
    "extend.Packed.pair": method(lambda: packed()._packed, "pair"),
    "extend.Segments": of(
        extend.Segments,
        number=lambda: 2,
        ids=lambda: torch.tensor([0, 0, 1]),
        count=lambda: torch.tensor([2, 1]),
    ),
    "extend.Segments.expand": method(segments, "expand", results=lambda: torch.ones(2)),
    **{
        f"extend.Segments.{name}": method(segments, name, values=lambda: torch.ones(3))
        for name in ("max", "min", "sum")
    },
    **{f"extend.{name}": of(getattr(extend, name), data=plain, mask=mask) for name in ("guard", "select")},
    "extend.pack_like": of(extend.pack_like, result=lambda: torch.ones(5), like=lambda: packed()._packed),
    "extend.packed_features": of(extend.packed_features),
    **{f"extend.{kind}_rule": of(getattr(extend, f"{kind}_rule"), rule=lambda: rule) for kind in ("packed", "sparse")},
    **{
        f"extend.{kind}_reduction": of(getattr(extend, f"{kind}_reduction"), function=lambda: sums)
        for kind in ("packed", "sparse")
    },
    "extend.packing_report": of(entered(extend.packing_report)),
    "extend.register_container": of(extend.register_container, kinds=lambda: Path),
    "extend.register_rule": of(extend.register_rule, name=lambda: "hostile::scale"),
    "extend.specified_mask": of(extend.specified_mask, x=lambda: torch.eye(2).to_sparse()),
    "extend.zero_masked": of(extend.zero_masked, x=lambda: extend.Pair(plain(), mask())),
    **{
        f"extend.masks.{name}": of(getattr(masks, name), mask=mask)
        for name in ("all", "any", "count", "reduce_validity")
    },
    "extend.masks.expand_to": of(masks.expand_to, mask=mask, shape=lambda: (2, 3)),
    "extend.masks.full": of(masks.full, shape=lambda: (2, 3), device=lambda: torch.device("cpu")),
    "extend.masks.logical_and": of(masks.logical_and, a=mask, b=mask),
    "extend.masks.reshape": of(masks.reshape, mask=mask, shape=lambda: (3, 2)),
    "testing.assert_close": of(testing.assert_close, actual=x, expected=x),
    "testing.check_invisible_data": of(testing.check_invisible_data, function=lambda: torch.exp, inputs=x),
    "testing.check_padding_invariance": of(
        testing.check_padding_invariance,
        module=lambda: nn.Linear(4, 2),
        x=lambda: torch.ones(2, 3, 4),
        lengths=lambda: [3, 2],
    ),
    "testing.check_rule": of(testing.check_rule, function=lambda: torch.exp, inputs=x),
    "testing.poison": of(testing.poison, x=x),
    "plot.distributions": of(plot.distributions, x=x),
    "plot.missing": of(plot.missing, x=x),
}
#: Public classes that users do not make.
GIVEN = {"MaskedTensor", "extend.Packed"}
#: What is not tried, and why.
LEFT_OUT = {
    "extend.data.": "called by libraries, with what the package made",
    "extend.libraries.": "called by integrations, with modules of other libraries",
    "extend.means.": "called by losses, inside a setting",
    "extend.ranks.": "called with groups of processes",
    "extend.register_kernel": "keeps what it is given for the whole process",
    "extend.run_kernel": "called by rules in every call, with what they made",
    "testing.check_flat": "an error of the module that it is given is passed on",
}
#: Calls that need a library.
NEEDS = {"load_file": "safetensors", "save_file": "safetensors"}
#: Arguments that a function of the caller is given, whose errors are its own.
PASSED_ON = {("explain", "inputs")}


def test_every_public_call_is_here() -> None:
    named = [line.split(maxsplit=1) for line in lines()]
    kinds = ("property", "attribute", "enum", "error", "module")
    called = {name for name, kind in named if not kind.startswith(kinds)}
    left_out = {name for name in called if name.startswith(tuple(LEFT_OUT))}
    assert all(any(name.startswith(entry) for name in left_out) for entry in LEFT_OUT)
    assert called - set(functional.__all__) - GIVEN - left_out == {
        n for n in CALLS if not n.endswith(("__", ".forward"))
    }


def run(call: Callable[..., Any], arguments: dict[str, Any]) -> object:
    """Calls, with what is given for ``*args`` as one of them."""
    parameters = inspect.signature(call).parameters
    first = next((p.name for p in parameters.values() if p.kind is p.VAR_POSITIONAL), None)
    if first is None:
        return call(**arguments)
    before = [
        arguments[p]
        for p in parameters
        if p in arguments and p != first and list(parameters).index(p) < list(parameters).index(first)
    ]
    rest = {key: v for key, v in arguments.items() if parameters[key].kind is inspect.Parameter.KEYWORD_ONLY}
    return call(*before, *([arguments[first]] if first in arguments else []), **rest)


def is_installed(name: str) -> bool:
    """Whether the library is there that a call needs."""
    return name not in NEEDS or find_spec(NEEDS[name]) is not None


@pytest.mark.parametrize("name", CALLS)
def test_the_calls_are_right(name: str) -> None:
    if not is_installed(name):
        pytest.skip(f"needs {NEEDS[name]}")
    run(*CALLS[name]())


def cases() -> Iterator[tuple[str, str, str]]:
    for name, make in CALLS.items():
        if not is_installed(name):
            continue
        for place, parameter in inspect.signature(make()[0]).parameters.items():
            if parameter.kind is not parameter.VAR_KEYWORD and (name, place) not in PASSED_ON:
                yield from ((name, place, what) for what in HOSTILE)


@pytest.mark.filterwarnings("ignore")
def test_hostile_arguments_of_every_public_call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # a file may be written under any name
    every, found = [*cases()][::EVERY], []
    for name, place, what in every:
        call, arguments = CALLS[name]()
        arguments[place] = HOSTILE[what]()
        reason = fault(lambda c=call, a=arguments: run(c, a), arguments, lambda _: False)
        if reason is not None:
            found.append(f"{name}({place}={what}): {reason}")
    assert not found, f"{len(found)} of {len(every)}\n" + "\n".join(found)

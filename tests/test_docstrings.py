"""Every public name is documented in one style: Google's sections, which Sphinx's napoleon and editors read.

A docstring has a line that says in one sentence what comes out, prose where there is more to say, then ``Args:`` (or
``Attributes:`` of a class that users do not make), ``Returns:``, ``Raises:``, ``Example:``, ``See also:`` and
``References:``, in this order.  What it says of parameters, defaults and errors is compared with the code.
"""

import ast
import builtins
import contextlib
import doctest
import enum
import inspect
import re
import textwrap
from collections.abc import Iterator
from functools import cache, partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any, get_args

import pytest
import torch

import masked_tensor as mt
from masked_tensor import errors
from masked_tensor.functional.entrance import run_op
from masked_tensor.functional.series.rolling import Rolling

from .helpers.joined import over

SECTIONS = ["Args", "Attributes", "Returns", "Raises", "Example", "See also", "References"]
SUBPACKAGES = tuple(
    f"masked_tensor.{name}" for name in ("api", "extend", "functional", "testing")
)  # where errors are looked for
CHANGED = ("item", "new_tensor", "nelement", "numel", "numpy", "tolist")  # torch's methods that users ask us about
CLASSES = {  # whose methods users call, beside MaskedTensor's
    **{f"{home}{name}": getattr(module, name) for home, module in (("", mt), ("extend.", mt.extend))
       for name in module.__all__ if inspect.isclass(getattr(module, name)) and name != "MaskedTensor"},
    "Rolling": Rolling,
}  # fmt: skip
OURS = {"extend.Packed": {"shape", "pair"}}  # of a class that the engine uses, too, what rules of users call
GIVEN = (mt.MaskedTensor, mt.extend.Packed, mt.extend.Segments)  # classes that users get and do not make
PRIVATE_WORDS = re.compile(
    r"\b(holes?|payloads?|spreads?|twins?|sisters?|kin|doors?|ports?|wings?|lent|packed rows?|has no row)\b",
    re.IGNORECASE,
)


def modules() -> dict[str, ModuleType]:
    """The public submodules, beside the functional forms, which are at the top level, too."""
    homes = {"plot": "api.display.plot"}
    homes |= {n: n for n in dir(mt) if find_spec(f"masked_tensor.{n}") and n != "functional"}
    return {n: import_module(f"masked_tensor.{home}") for n, home in homes.items()}


def members(kind: type) -> dict[str, Any]:
    """The public methods and properties that a class has of its own."""
    own = {n: m for n, m in vars(kind).items() if not n.startswith("_")}
    return {n: m for n, m in own.items() if isinstance(m, FunctionType | property) or hasattr(m, "get")}


def public() -> Iterator[tuple[str, Any]]:
    for name in mt.__all__:
        yield name, getattr(mt, name)
    for home, module in modules().items():
        yield from contents(home, module)
    for name, member in members(mt.MaskedTensor).items():
        if name != "to_numpy" and (not hasattr(torch.Tensor, name) or name in CHANGED):  # (which matplotlib calls)
            yield f"MaskedTensor.{name}", member
    for home, kind in CLASSES.items():
        inherited = {n for base in kind.__mro__[1:] for n in vars(base)}  # such as a context's own begin() and end()
        own = {n: m for n, m in members(kind).items() if n not in inherited and n in OURS.get(home, {n})}
        yield from ((f"{home}.{n}", m) for n, m in own.items())


def contents(home: str, module: ModuleType) -> Iterator[tuple[str, Any]]:
    """The functions and classes of a public submodule, and of those that it has."""
    own = getattr(module, "__all__", None) or [n for n, v in vars(module).items() if is_own(v, module)]
    for name in own:
        value = getattr(module, name)
        if inspect.ismodule(value):
            yield from contents(f"{home}.{name}", value)
        elif callable(value):
            yield f"{home}.{name}", value


def is_own(value: Any, module: ModuleType) -> bool:
    return callable(value) and value.__module__ == module.__name__ and not value.__name__.startswith("_")


def code_of(thing: Any) -> Any:
    """The function behind a name: of a property its getter, of a method for meshes the function that it calls."""
    if isinstance(thing, property):
        return thing.fget
    if isinstance(getattr(thing, "get", None), partial):
        return thing.get.args[0]
    return inspect.unwrap(thing) if inspect.isroutine(thing) else thing


def is_attribute(thing: Any) -> bool:
    """Whether it is read, not called."""
    return isinstance(thing, property) or not isinstance(code_of(thing), FunctionType | type)


def distinct() -> dict[str, Any]:
    """Each documented thing once: most methods are functions of the top level, too."""
    found: dict[int, tuple[str, Any]] = {}
    for name, thing in public():
        found.setdefault(id(code_of(thing)), (name, thing))
    return dict(found.values())


NAMES = distinct()


def parameters(thing: Any) -> dict[str, inspect.Parameter]:
    """The parameters that a user gives."""
    if is_attribute(thing):
        return {}
    if inspect.isclass(thing) and (issubclass(thing, Exception | enum.Enum) or thing in GIVEN):
        return {}
    found = dict(inspect.signature(code_of(thing)).parameters)
    found.pop("self", None)
    return found


@cache
def sections(name: str) -> dict[str, str]:
    """The text of each section, dedented; what comes before the first has no name."""
    found, current = {"": ""}, ""
    for line in (inspect.getdoc(NAMES[name]) or "").splitlines():
        title = re.fullmatch(r"(\w+|See also):", line)
        if title:
            current = title[1]
            assert current not in found, f"{current} twice"
            found[current] = ""
        else:
            found[current] += line + "\n"
    return {title: textwrap.dedent(text).strip("\n") for title, text in found.items()}


def items(text: str) -> list[str]:
    """The entries of a section, each in one line: what is indented continues the entry above it."""
    return [" ".join(part.split()) for part in re.split(r"\n(?=\S)", text) if part.strip()]


def arguments(name: str) -> dict[str, tuple[str, str]]:
    """Each parameter's type and text, as the docstring has them."""
    found = {}
    for item in items(sections(name).get("Args", "")):
        entry = re.fullmatch(r"\*{0,2}(\w+) \((.+?)\): (.+)", item)
        assert entry, f"an argument is `name (type): text`, not {item!r}"
        found[entry[1]] = entry[2], entry[3]
    return found


def prose(name: str) -> str:
    """What is written in English: without code, examples and the names of parameters."""
    text = re.sub(r"^\s*\w+ \(.*?\):", "", inspect.getdoc(NAMES[name]) or "", flags=re.MULTILINE)
    return re.sub(r"``.*?``|:\w+:`.*?`", "code", text.partition("\nExample:\n")[0], flags=re.DOTALL)


every = over(sorted(NAMES))


# ---------------------------------------------------------------------------------------------------------- the style


@every
def test_the_first_line_is_one_sentence(name: str) -> None:
    summary, _, rest = (inspect.getdoc(NAMES[name]) or "").partition("\n")
    assert summary.endswith("."), summary
    assert not re.search(r"\. [A-Z]", re.sub(r"``.*?``", "code", summary)), "more than one sentence"
    assert not rest or rest.startswith("\n"), "the summary is one line"


@every
def test_sections_stand_in_one_order(name: str) -> None:
    found = [title for title in sections(name) if title]
    assert found == [title for title in SECTIONS if title in found]
    assert all(sections(name)[title].strip() for title in found)


@every
def test_every_parameter_is_described_and_nothing_else(name: str) -> None:
    wanted = parameters(NAMES[name])
    described = arguments(name)
    assert list(described) == list(wanted)
    for parameter, (kind, text) in described.items():
        optional = wanted[parameter].default is not inspect.Parameter.empty
        assert kind.endswith(", optional") == optional, f"{parameter} ({kind})"
        assert text.endswith("."), parameter


@every
def test_defaults_are_those_of_the_code(name: str) -> None:
    """A number, text or flag is told as ``Default: value.``; what None stands for is told in words."""
    described = arguments(name)
    for parameter, default in ((p.name, p.default) for p in parameters(NAMES[name]).values()):
        text, kinds = described[parameter][1], (bool, int, float, str)
        if isinstance(default, kinds) and default != "" and not isinstance(default, enum.Enum):
            told = re.search(r"Default: (.+)\.$", text)
            assert told, f"the default of {parameter}"
            said = told[1].strip('`"')
            assert (
                said == str(default) if isinstance(default, str | bool) else repr(float(said)) == repr(float(default))
            )


#: How the text of an argument that many names have begins, wherever it stands.
SAME_WORDS = {
    "dim": ("The dimension", "The time dimension", "The only dimension", "A dimension that only some"),
    "keepdim": ("Keep the reduced dimension",),
    "lengths": ("The number of ", "The length of each list"),
    "mask": ("True = ", "A bool tensor"),
    "packed": ("Store ", "The rule for packed"),
    "padding_side": ("The side ",),
    "reduction": ('``"mean"`` divides the sum by',),
    "target_mask": ("True = valid entry of ",),
    "dtype": ("The dtype of ", "Convert "),
    "min_count": ("The number of ",),
    "fill_value": ("The value ", "The loss if no entry is valid", "The result of an event"),
    "group": ("The group", "The ranks", "The key of each row", "The result of ", "As in "),
}


@pytest.mark.parametrize("parameter", SAME_WORDS)
def test_an_argument_has_the_same_words_everywhere(parameter: str) -> None:
    found = {name: described[parameter][1] for name in NAMES if parameter in (described := arguments(name))}
    assert len(found) > 4
    assert {name: text for name, text in found.items() if not text.startswith(SAME_WORDS[parameter])} == {}


WAYWARD = re.compile(r", too\b|\balso if\b|\bgives\b|\bwhat it (?:has|takes)\b|(?:^|\. )(?:It is if|Of [a-z`:]+,)")


@every
def test_the_english_is_plain(name: str) -> None:
    """No turns of phrase that a reader has to read twice."""
    assert not WAYWARD.findall(prose(name))


def related(name: str) -> list[str]:
    """The names of a docstring's See also."""
    text = sections(name).get("See also", "")
    assert not text or re.fullmatch(r"(:func:`\w+`(, |\.$))+", " ".join(text.split())), "it is `:func:`name`, ...`"
    return re.findall(r"`(\w+)`", text)


def test_see_also_links_names_that_link_back() -> None:
    """Of two functions that are easily taken for each other, each names the other one."""
    found = {name: related(name) for name in NAMES if related(name)}
    assert len(found) > 10
    assert [(name, other) for name, others in found.items() for other in others if other not in NAMES] == []
    alone = [(a, b) for a, others in found.items() for b in others if a not in found.get(b, [])]
    assert alone == []


@every
def test_raises_is_a_list_of_cases(name: str) -> None:
    """An entry for each case, in a sentence; those of one error stand together."""
    kinds, cases = documented(name), items(sections(name).get("Raises", ""))
    assert list(kinds) == [kind for each in dict.fromkeys(kinds) for kind in kinds if kind is each]
    assert len(set(cases)) == len(cases)
    assert not [case for case in cases if len(case) > 200 or ";" in re.sub(r"``.*?``", "code", case)]


SHAPE = re.compile(r"shape|broadcast|0-d|1-D|``\(.*?\)``", re.IGNORECASE)
DTYPE = re.compile(r"dtype|bool|int\d*\b|integer|float|complex", re.IGNORECASE)


@every
def test_tensors_are_described_by_shape_and_dtype(name: str) -> None:
    for parameter, (kind, text) in arguments(name).items():
        if re.search(r"\b(Masked)?Tensor\b", kind):
            assert SHAPE.search(text), f"the shape of {parameter}"
            assert DTYPE.search(text), f"the dtype of {parameter}"
    returns = " ".join(sections(name).get("Returns", "").split())
    if re.match(r"(Masked)?Tensor\b", returns):
        assert SHAPE.search(returns), "the shape of the result"
        assert DTYPE.search(returns), "the dtype of the result"


@every
def test_the_result_is_described(name: str) -> None:
    thing, returns = NAMES[name], sections(name).get("Returns", "")
    if is_attribute(thing) or inspect.isclass(thing) or code_of(thing).__annotations__.get("return") is None:
        assert not returns
    else:
        assert re.fullmatch(r"\w[^:]*: .+\.", " ".join(returns.split())), "it is `type: text`"
        assert "\n " not in returns, "Sphinx reads an indented line as a definition"


@every
def test_no_private_word(name: str) -> None:
    assert not PRIVATE_WORDS.findall(prose(name))


@pytest.mark.parametrize("name", sorted(NAMES))
def test_the_example_runs_with_nothing_but_torch_and_the_package(name: str) -> None:
    text = sections(name).get("Example", "")
    example = doctest.DocTestParser().get_doctest(text, {"torch": torch, "mt": mt}, name, name, 0)
    assert example.examples
    assert doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(example).failed == 0


@over(sorted(set(mt.functional.__all__) & set(NAMES)))
def test_a_functional_form_names_what_it_is_modelled_on(name: str) -> None:
    assert re.search(r"``(torch|pandas|numpy|scipy|paddle)\b", sections(name).get("References", ""))


# ------------------------------------------------------------------------------------------------------------- errors


def documented(name: str) -> tuple[type[BaseException], ...]:
    """The exceptions that a docstring names."""
    found = []
    for item in items(sections(name).get("Raises", "")):
        entry = re.fullmatch(r"(\w+): (.+\.)", item)
        assert entry, f"an error is `Type: when.`, not {item!r}"
        found.append(getattr(mt, entry[1], None) or getattr(builtins, entry[1]))
    return tuple(found)


def called(node: ast.AST, function: FunctionType) -> Any:
    """What a name in a function's source stands for, if it is a global one, or one of the function around it."""
    try:
        names = function.__globals__ | dict(inspect.getclosurevars(function).nonlocals)
        return eval(compile(ast.Expression(node), "name", "eval"), names)
    except Exception:
        return None


def raised(function: Any, seen: set[Any]) -> Iterator[type[BaseException]]:
    """The errors that a function raises itself, and those of what it calls in the packages that users call."""
    if not isinstance(function, FunctionType) or function in seen or function is run_op:
        return  # (an op with a functional form has a rule)
    seen.add(function)
    for node in ast.walk(ast.parse(textwrap.dedent(inspect.getsource(function)))):
        if isinstance(node, ast.Raise) and node.exc is not None:
            error = called(node.exc.func if isinstance(node.exc, ast.Call) else node.exc, function)
            if error in ANYWHERE:
                continue
            if inspect.isclass(error):
                yield error
            else:
                kind = getattr(error, "__annotations__", {}).get("return")
                yield from get_args(kind) or [kind]
        if isinstance(node, ast.Call):
            inner = called(node.func, function)
            if str(getattr(inner, "__module__", "")).startswith(SUBPACKAGES):
                yield from raised(inspect.unwrap(inner), seen)


ANYWHERE = (None, errors.exporting, errors.inside_transform, mt.extend.NoRule)  # in torch.export; no error for users
UNREACHED: dict[str, tuple[type[BaseException], ...]] = {  # the code has such a line, and these never come to it
    **{name: (TypeError, ValueError) for name in NAMES if name.startswith("Rolling.")},  # which were given tensors
    "RunningStatistics.all_reduce": (RuntimeError,),  # of states that come from outside
    "RunningStatistics.summary": (TypeError,),  # of what is no tensor
    "RunningStatistics.to_arrow": (TypeError,),  # the same
    "LastValid.to_arrow": (TypeError,),  # the same
    "extend.data.sparse_tensor": (TypeError,),  # of other libraries' quantities
}


@every
def test_errors_of_the_code_are_documented(name: str) -> None:
    known = documented(name) + UNREACHED.get(name, ())
    assert {kind for kind in raised(code_of(NAMES[name]), set()) if not issubclass(kind, known)} == set()


def examples_of_errors() -> Iterator[tuple[str, str]]:
    """The error and the public name of every call in test_errors.py that is refused."""
    tree = ast.parse((Path(__file__).parent / "test_errors.py").read_text())
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("refused", "message"):
            kind, call = [*node.args, node, node][:2]
            body = getattr(call, "body", None)
            if isinstance(body, ast.Call) and isinstance(body.func, ast.Attribute):
                home = getattr(body.func.value, "id", "a tensor")
                name = body.func.attr if home == "mt" else f"{home}.{body.func.attr}"
                own = f"MaskedTensor.{body.func.attr}"
                for found in (name, own, body.func.attr if own in dict(public()) else ""):
                    if found in NAMES:
                        yield found, ast.unparse(kind).rpartition(".")[2]


def test_errors_that_have_an_example_are_documented() -> None:
    known = sorted(set(examples_of_errors()))
    kinds = {kind: getattr(mt, kind, None) or getattr(builtins, kind, None) for _, kind in known}
    assert len(known) > 60
    assert not [(n, k) for n, k in known if kinds[k] and not issubclass(kinds[k], documented(n))]


def takes_a_tensor(name: str) -> bool:
    """Whether it is a function of the top level that can raise; ``save_file`` takes whatever has ``items()``."""
    return (
        isinstance(NAMES[name], FunctionType) and name in mt.__all__ and bool(documented(name)) and name != "save_file"
    )


@over(sorted(filter(takes_a_tensor, NAMES)))
def test_a_senseless_argument_raises_what_is_documented(name: str) -> None:
    """Each required argument is an object that is nothing at all."""
    required = [p for p in parameters(NAMES[name]).values() if p.default is inspect.Parameter.empty]
    positional = [object() for p in required if p.kind is not inspect.Parameter.KEYWORD_ONLY]
    with contextlib.suppress(*documented(name)):
        NAMES[name](*positional)


SENSIBLE: dict[str, Any] = {  # what a functional form needs
    **dict.fromkeys(("input", "input1", "input2", "other", "target"), torch.ones(2, 3)),
    **dict.fromkeys(("anchor", "positive", "negative", "var"), torch.ones(2, 3)),
    "dim": 1,
    "q": 0.5,
    "normalized_shape": (3,),
    "num_groups": 1,
    "size": 2,
    "window": 2,
    "running_mean": None,
    "running_var": None,
}
MASKS = ("mask", "target_mask", "input_mask", "other_mask")
WRONG: list[tuple[str, Any, type[BaseException]]] = [
    *((name, "a word", TypeError) for name in (*MASKS, "input", "input1", "anchor", "other", "target")),
    *((name, torch.ones(7).bool(), ValueError) for name in MASKS),
    ("dim", 9, IndexError),
]
NUMBERS = torch.tensor([[0.25, 0.5, 1.0], [2.0, 3.5, 1.0]])
ODD = {
    "integers": NUMBERS.long(),
    "bools": NUMBERS > 1,
    "complex": NUMBERS.to(torch.complex64),
    "sparse": NUMBERS.to_sparse(),
    "compressed": NUMBERS.to_sparse_csr(),
    "0-d": NUMBERS[0, 0],
    "another shape": torch.ones(2, 7),
    "empty": NUMBERS[:, :0],
    "masked integers": mt.masked_tensor(NUMBERS.long(), NUMBERS > 0.5),
    "masked sparse": mt.masked_invalid(NUMBERS.to_sparse()),
}


def call_of(name: str) -> dict[str, Any]:
    """Sensible arguments for a functional form; empty for those whose mask says where to write."""
    wanted = [p for p, parameter in parameters(NAMES[name]).items() if parameter.default is inspect.Parameter.empty]
    return {p: SENSIBLE[p] for p in wanted} if set(wanted) <= set(SENSIBLE) else {}


FORMS = sorted(name for name in set(mt.functional.__all__) & set(NAMES) if call_of(name))


@pytest.mark.parametrize("name", FORMS)
def test_a_wrong_argument_raises_as_documented(name: str) -> None:
    known = [case for case in WRONG if case[0] in parameters(NAMES[name])]
    assert known
    for parameter, value, kind in known:
        assert kind in documented(name), f"{kind.__name__} of {parameter}"
        with pytest.raises(kind):
            NAMES[name](**{**call_of(name), parameter: value})


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", FORMS)
def test_what_an_odd_tensor_raises_is_documented(name: str) -> None:
    """Each tensor in turn is of another dtype, layout or shape: what is not computed raises what it should."""
    undocumented = []
    for parameter, (kind, text) in arguments(name).items():
        if not re.search(r"\bTensor\b", kind) or parameter in (*MASKS, "dim"):
            continue
        for what, odd in ODD.items():
            try:
                NAMES[name](**{**call_of(name), parameter: odd})
            except Exception as error:
                ours = [k for k in documented(name) if k.__module__.startswith("masked_tensor")]
                allowed = tuple(ours) if type(error) in vars(errors).values() else documented(name)
                if not isinstance(error, allowed) and not (what == "0-d" and "``(N" in text):
                    undocumented.append((parameter, what, repr(error)))
    assert not undocumented


@over(sorted(n for n in members(mt.MaskedTensor) if n != "to_numpy"))
def test_each_member_says_in_a_sentence_what_it_does(name: str) -> None:
    """Those that replace torch's own for the engine's sake, too."""
    text = (inspect.getdoc(vars(mt.MaskedTensor)[name]) or "").partition("\n\n")[0]
    assert text.endswith("."), text
    assert not PRIVATE_WORDS.findall(re.sub(r"``.*?``", "code", text)), text


# -------------------------------------------------------------------------------------------------------- annotations

#: Where ``Any`` stands in a public signature, by reason.
ANYTHING = {
    "what torch.as_tensor, numpy, pandas and Arrow take": """
        as_masked_tensor.mask from_lengths.lengths from_lengths.padded from_sequences.sequences lengths_to_mask.lengths
        masked_equal.data masked_invalid.data masked_tensor.data masked_tensor.mask masked_where.condition
        masked_where.data pad_sequence.sequences MaskedTensor.new_tensor.data MaskedTensor.new_tensor.kwargs
        LastValid.update.x LastValid.update.group RunningStatistics.update.x RunningStatistics.update.group
        RunningStatistics.map_batches.batches
        RunningStatistics.map_batches.return RunningStatistics.to_pandas.return cat.tensors document_mask.position_ids
        document_mask.segment_ids from_documents.position_ids from_documents.rows from_documents.segment_ids
        filled.value interpolate.index rolling.index
        """,
    "any structure, or any function": """
        collate.batch collate.return collate.length collate.capacity collate.pad_to_multiple_of
        from_attention_mask.attention_mask
        from_attention_mask.inputs from_attention_mask.return testing.assert_close.actual testing.assert_close.expected
        testing.check_invisible_data.function testing.check_invisible_data.inputs testing.check_rule.function
        testing.check_flat.inputs testing.check_flat.named testing.check_rule.inputs to_left.x to_right.x explain.op
        explain.inputs explain.keywords
        """,
    "arguments and results of rules": """
        extend.pack_like.result extend.pack_like.return extend.packed_rule.return extend.packed_rule.rule
        extend.register_container.return extend.register_kernel.backward extend.register_kernel.forward
        extend.register_kernel.twice extend.run_kernel.formula extend.run_kernel.options extend.run_kernel.return
        extend.register_rule.params extend.register_rule.return
        extend.sparse_rule.return extend.sparse_rule.rule
        """,
    "what a library of others is given": """
        extend.data.read.values extend.data.read.device extend.data.read_table.table extend.data.read_rows.data
        extend.data.read_rows.return extend.data.sparse_tensor.values extend.data.sparse_tensor.return
        extend.data.tree_leaves.tree extend.data.tree_leaves.return extend.data.tree_map.function
        extend.data.tree_map.tree extend.data.tree_map.return extend.ranks.resolve_group.group
        extend.ranks.resolve_group.return extend.ranks.group_size.group extend.ranks.group_device.group
        extend.ranks.group_timeout.group extend.ranks.check_data_ranks.group extend.ranks.own_group.group
        extend.ranks.own_group.return
        extend.libraries.replace.make extend.libraries.when_each_imported.act
        """,
    "as torch types it": "MaskedTensor.item.return MaskedTensor.tolist.return",
}


def test_signatures_say_any_where_the_value_is_any() -> None:
    found = set()
    for name, thing in NAMES.items():
        function = vars(thing).get("__init__") if inspect.isclass(thing) else code_of(thing)
        if isinstance(function, FunctionType):
            signature = inspect.signature(function)
            said = {p.name: p.annotation for p in signature.parameters.values() if p.name != "self"}
            said["return"] = signature.return_annotation
            found |= {f"{name}.{part}" for part, kind in said.items() if "Any" in str(kind)}
    expected = " ".join(ANYTHING.values()).split()
    assert len(expected) == len(set(expected))
    assert found == set(expected)

"""The house rules that no tool checks."""

import ast
import re
import runpy
import subprocess
import sys
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest
import torch

from masked_tensor.compat import IS_OLD
from masked_tensor.rules import FAMILIES

from .helpers.joined import over
from .oracles import FAMILY

ROOT = Path(__file__).parent.parent
FILES = sorted((ROOT / "masked_tensor").rglob("*.py"))


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


def commands(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.strip().startswith("pip install -c constraints.txt")]


def test_ci_runs_the_readmes_commands_word_for_word() -> None:
    readme = commands((ROOT / "README.md").read_text())
    assert len(readme) == 2
    assert commands((ROOT / ".ci/run").read_text())[:2] == readme


@over(FILES)
def test_imports_stand_at_the_top(path: Path) -> None:
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            inner = [n for n in ast.walk(node) if isinstance(n, ast.Import | ast.ImportFrom)]
            assert not inner, f"{node.name} imports: the floors are wrong"


@over(FILES)
def test_every_file_says_what_it_is(path: Path) -> None:
    first = (ast.get_docstring(tree_of(path)) or "").partition("\n\n")[0]
    assert re.match(r"[`\w].*[.:]", first, re.DOTALL), "a first sentence"
    assert len(first.split()) > 3, "which says what the file holds"


def test_tutorials_ask_a_question() -> None:
    for script in sorted((ROOT / "tutorials").glob("*.py")):
        question, underline, _ = (ast.get_docstring(ast.parse(script.read_text())) or "").split("\n", 2)
        assert question.endswith("?"), script.name
        assert set(underline) == {"="}, script.name


@over([family.__name__.rpartition(".")[2] for family in FAMILIES])
def test_every_family_has_a_namesake_test_file(family: str) -> None:
    assert (ROOT / "tests" / f"test_{family}.py").exists()


@over(sorted(set(FAMILY.values())))
def test_every_family_with_an_oracle_is_under_the_laws(family: str) -> None:
    assert f'test_law = laws("{family}")' in (ROOT / "tests" / f"test_{family}.py").read_text()


# ------------------------------------------------------------------------------------------- torch's private names

PRIVATE = {
    "compat.py": """
        torch._C._autograd._top_saved_tensors_default_hooks torch._C._len_torch_dispatch_stack
        torch._C._autograd._saved_tensors_hooks_is_enabled torch._C._dispatch_get_all_op_names
        torch._C._any_requires_grad
        torch._C._current_autograd_node torch._C._is_fwd_grad_enabled torch._guards.Guard torch._guards.TracingContext
        torch._C._dynamo.eval_frame._FrameAction torch._C._dynamo.eval_frame._FrameExecStrategy
        torch._C._dynamo.eval_frame.set_code_exec_strategy torch._C._functorch.TransformType
        torch._C._functorch.get_interpreter_stack torch._C._functorch.get_unwrapped torch._C._functorch.maybe_get_level
        torch._C._functorch.is_batchedtensor
        torch._C._functorch.is_functorch_wrapped_tensor torch._functorch.pyfunctorch.temporarily_clear_interpreter_stack
        torch._C._functorch.is_legacy_batchedtensor torch._C._functorch.peek_interpreter_stack
        torch._C._pop_torch_function_stack torch._C._push_on_torch_function_stack
        ._validate_args ._validate_sample
        torch._C._get_default_device torch._C._is_alias_of torch._functorch.eager_transforms._jvp_with_argnums
        torch._functorch.eager_transforms._vjp_with_argnums torch._functorch.eager_transforms.grad_and_value_impl
        torch._ops.OpOverload torch._ops.OpOverloadPacket torch._subclasses.fake_tensor.is_fake
        torch._subclasses.functional_tensor.FunctionalTensor
        torch._tensor_str.PRINT_OPTS torch._tensor_str._Formatter torch.autograd.forward_ad._current_level
        torch.utils._python_dispatch._disable_current_modes torch.overrides._get_current_function_mode_stack
        torch.utils._pytree.tree_flatten torch.utils._pytree.tree_leaves torch.utils._pytree.tree_map
        torch.utils._pytree.tree_unflatten torch.utils.data._utils.collate.default_collate_fn_map
        ._schema ._buffers
        torch.distributed.distributed_c10d._world.pg_names torch.distributed.distributed_c10d._get_object_coll_device
        ._get_backend ._device_types .options._timeout
        """,
    "patches/functions.py": """
        torch._functorch.utils torch.autograd._engine_run_backward torch.autograd._make_grads
        torch.testing._comparison.TensorLikePair._compare_values ._fail
        torch.utils.checkpoint._CheckpointFrame torch.utils.checkpoint._recomputation_hook
        """,
    "api/python/ufuncs.py": "._implementation",  # of numpy's functions
    # The namespace of torch's functional collectives is private, as most of its ops' names are not.
    "api/distributed/mesh.py": "torch.ops._c10d_functional",
    "rules/collective.py": "torch.ops._c10d_functional.wait_tensor",
    "engine/torch_keys.py": """
        torch._subclasses.functional_tensor.FunctionalTensor torch._subclasses.functional_tensor.FunctionalTensorMode
        torch._C._create_function_from_graph ._sequence_nr
        ._cdata ._base ._use_count torch._C._storage_Use_Count
        torch.Tensor._make_wrapper_subclass torch._C._set_throw_on_mutable_data_ptr
        torch._C.DispatchKey torch._C.DispatchKeySet torch._C._RestorePythonTLSSnapshot
        torch._C._ExcludeDispatchKeyGuard torch._C._disabled_torch_function_impl torch._C._dispatch_has_kernel
        torch._C._dispatch_has_kernel_for_dispatch_key torch._C._functorch._add_batch_dim
        torch._C._functorch._unwrap_batched torch._C._functorch.maybe_current_level
        torch._C._functorch.CGradInterpreterPtr torch._C._functorch.TransformType
        torch._C._functorch.get_interpreter_stack
        torch._C._functorch.peek_interpreter_stack torch._C._functorch.unwrap_if_dead
        torch._functorch.pyfunctorch.temporarily_clear_interpreter_stack
        torch._functorch.pyfunctorch.temporarily_pop_interpreter_stack
        torch._C._dispatch_tls_is_dispatch_key_excluded torch._C._dispatch_tls_set_dispatch_key_excluded
        torch._C._parse_dispatch_key ._backward_cls ._forward_cls ._op_dk
        """,
}
OPS = {  # a private op is an op: it may stand where ops are named
    "compat.py": "_is_zerotensor",
    "api/flat/compiled/nodes.py": "_assert_async",
    "engine/graph_inputs.py": "_assert_async",
    "rules/forward_mode.py": "_add_batch_dim _make_dual _remove_batch_dim _unpack_dual",
    "engine/boundary/packed.py": "_version",
    "train/mean_parts.py": "_foreach_add_ _foreach_mul _foreach_mul_",
    "engine/boundary/enter_leave.py": "_version",
    "engine/packed_pair.py": "_version",
    "functional/reductions/distinct.py": "_unique2",
    "kernels/attention/fused.py": "_fused_sdp_choice _scaled_dot_product_flash_attention_for_cpu "
    "_scaled_dot_product_flash_attention_for_cpu_backward",
    "kernels/attention/cuda.py": "_efficient_attention_forward _flash_attention_forward",
    "kernels/attention/efficient_op.py": "_efficient_attention_backward _efficient_attention_forward",
    "layouts/compressed.py": "_validate_sparse_compressed_tensor_args",
    "layouts/coo.py": "_validate_sparse_coo_tensor_args _indices _values",
    "sparse/csr.py": "_convert_indices_from_coo_to_csr",
    "rules/attention.py": "_scaled_dot_product_attention_math _scaled_dot_product_flash_attention_for_cpu",
    "rules/conv.py": "_convolution_mode",
    "rules/ctc.py": "_assert_async",
    "rules/embedding.py": "_embedding_bag",
    "rules/fourier.py": "_pad_circular",
    "rules/join.py": "_chunk_cat",
    "rules/matmul.py": "_grouped_mm",
    "rules/normalize.py": "_fused_rms_norm",
    "rules/recurrent.py": "_pad_packed_sequence",
    "fill.py": "_is_zerotensor",
    "kernels/table.py": "_is_zerotensor",
    "kernels/softmax.py": "_log_softmax_backward_data _softmax_backward_data",
    "rules/softmax.py": "_log_softmax_backward_data _softmax_backward_data",
}


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


def attributes(tree: ast.AST) -> set[str]:
    """The attributes that a file defines: in the body of a class, or by assignment."""
    nodes = list(ast.walk(tree))
    bodies = [part for n in nodes if isinstance(n, ast.ClassDef) for part in ast.walk(n)]
    named = {getattr(n, "id", None) or n.name for n in bodies if isinstance(n, ast.Name | ast.FunctionDef)}
    return named | {n.attr for n in nodes if isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Store)}


OURS = {n for path in FILES for n in attributes(tree_of(path)) if is_private(n)} - {"_compare_values"}


def imported(tree: ast.AST) -> dict[str, str]:
    """What a file imports from other packages: the name it has there, and its full name."""
    known = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            whole = ((a.asname, a.name if a.asname else a.name.partition(".")[0]) for a in node.names)
            known |= {short or name: name for short, name in whole}
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            known |= {a.asname or a.name: f"{node.module}.{a.name}" for a in node.names}
    return known


def dotted(node: ast.AST, known: dict[str, str]) -> str:
    """``torch._C.x`` for an attribute of a module (also by ``getattr``), ``.x`` for one of anything else."""
    if isinstance(node, ast.Name):
        return known.get(node.id, "")
    if isinstance(node, ast.Attribute):
        return f"{dotted(node.value, known)}.{node.attr}"
    if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "getattr":
        return f"{dotted(node.args[0], known)}.{getattr(node.args[1], 'value', '')}"
    return ""


def private_names(tree: ast.AST) -> set[str]:
    """The private names of torch in a file, in full, or as ``.name`` for an attribute of something."""
    known = imported(tree)
    whole = {dotted(node, known) for node in ast.walk(tree)} | set(known.values())
    for name in known.values():  # a member of what is imported is no name of its own, unless it is private, too
        whole -= {n for n in whole if n.startswith(f"{name}.") and "._" not in n.removeprefix(name) and "._" in name}
    found = {n for n in whole if n.startswith("torch") and any(is_private(part) for part in n.split("."))}
    found |= {n for n in whole if n.startswith(".") and is_private(last := n.rpartition(".")[2]) and last not in OURS}
    return {n for n in found if not any(other.startswith(f"{n}.") for other in found)}


def op_of(name: str) -> str | None:
    """The op that a private name is: ``torch._op``, ``torch.ops.aten._op.default`` or ``x._op``."""
    found = re.fullmatch(r"(?:torch|torch\.ops\.aten|)\.(\w+)(?:\.default)?", name)
    return found[1] if found and hasattr(torch.ops.aten, found[1]) else None


@over(FILES)
def test_private_names_of_torch_stand_in_one_file(path: Path) -> None:
    room = str(path.relative_to(ROOT / "masked_tensor"))
    found = {name: op_of(name) for name in private_names(tree_of(path))}
    assert {n for n, op in found.items() if op is None} == set(PRIVATE.get(room, "").split()), "it belongs in compat.py"
    assert {op for op in found.values() if op is not None} == set(OPS.get(room, "").split())


def test_callers_are_looked_at_in_three_places() -> None:
    """None of which decides what a number is."""
    asked = re.compile(r"\b(?:sys\._getframe|inspect\.currentframe|inspect\.stack)\(")
    found = {path.name: len(asked.findall(path.read_text())) for path in FILES if asked.search(path.read_text())}
    assert found == {"callers.py": 1, "compat.py": 1, "numel_warning.py": 1}


HIDDEN = {  # private words in strings that are no name of torch's, or that are an op's
    "api/containers/collate.py": "_fields",  # of Python's named tuples
    "integrations/accelerate.py": "_fields",  # the same
    "integrations/ignite.py": "_batch_size _is_multilabel",  # of ignite
    "api/copies/pickling.py": "_pickle",  # a module of ours
    "api/containers/kinds.py": "_mask",  # of pandas
    "engine/contexts/decorators.py": "_Run",
    "engine/compiled/flatten.py": "_data _bytes _stored _stored_bytes _places",  # what a graph is given
}
NAMING = (  # may write private names of torch as strings
    "compat.py",
    "engine/torch_keys.py",
    "patches/places.py",
    "integrations/places.py",  # of other libraries
)
OP_WORDS = {part for name in torch._C._dispatch_get_all_op_names() for part in re.split("::|[.]", name)}


def private_words(tree: ast.Module) -> set[str]:
    """The private words in a file's strings, without docstrings: whole, or a part of a dotted name."""
    owners = [n for n in ast.walk(tree) if isinstance(n, ast.Module | ast.ClassDef | ast.FunctionDef)]
    docs = {id(n.body[0].value) for n in owners if n.body and isinstance(n.body[0], ast.Expr)}
    texts = [n.value for n in ast.walk(tree) if isinstance(n, ast.Constant) and id(n) not in docs]
    return {word for text in texts if isinstance(text, str) for word in re.findall(r"(?<!\w)_[A-Za-z]\w*", text)}


def hidden_names(path: Path) -> set[str]:
    room = str(path.relative_to(ROOT / "masked_tensor"))
    found = private_words(tree_of(path)) - OURS - set(HIDDEN.get(room, "").split())
    return {word for word in found if not any(op.startswith(word) or op.endswith(word) for op in OP_WORDS)}


@pytest.mark.skipif(IS_OLD, reason="these are the private names of a newer torch")
@over(FILES)
def test_no_private_name_of_torch_is_hidden_in_a_string(path: Path) -> None:
    if str(path.relative_to(ROOT / "masked_tensor")) not in NAMING:
        assert hidden_names(path) == set(), "patches/places.py names what is replaced"


def test_every_private_name_says_what_it_is_for() -> None:
    """In compat.py each import stands under a comment, each function has a docstring."""
    lines = (ROOT / "masked_tensor/compat.py").read_text().splitlines()
    for above, line in pairwise(lines):
        if line.startswith("    from torch"):
            assert above.lstrip().startswith(("#", "from torch")), line


def test_two_private_names_can_be_done_without(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(torch._C, "_get_default_device")
    monkeypatch.delattr(torch._C._functorch, "is_legacy_batchedtensor")
    names = runpy.run_path(str(ROOT / "masked_tensor/compat.py"))
    assert names["default_device"]() == "cpu"
    assert names["is_readable_memory"](torch.ones(2))


# -------------------------------------------------------------------------------------------------------- importing

COMPILES = """
import sys, torch
{first}
before = set(sys.modules)
import masked_tensor as mt
added = {{name for name in set(sys.modules) - before if name.startswith(("torch._dynamo", "torch._inductor", "sympy"))}}
assert not added, sorted(added)
mean = torch.compile(lambda x, m: mt.as_masked_tensor(x, m).mean(1).filled(0.0), backend="eager", fullgraph=True)
print(mean(torch.tensor([[1.0, 2.0], [3.0, 5.0]]), torch.tensor([[True, False], [True, True]])).tolist())
"""


@pytest.mark.parametrize("first", ["", "import torch._dynamo"])
def test_importing_the_package_does_not_import_the_compiler_which_still_knows_it(first: str) -> None:
    run = subprocess.run([sys.executable, "-c", COMPILES.format(first=first)], capture_output=True, text=True)
    assert run.stdout == "[1.0, 4.0]\n", run.stderr


# ----------------------------------------------------------------------------------------------------------- devices

NAMES_DEVICES = {  # how many lines a room has that do, besides kernels/, compat.py and fill.py
    "engine": 2,  # torch's dispatch keys are those of devices
    "api": 10,  # what is printed, random states, warnings and errors that wait for no device
    "masks": 5,  # a copy to a device, what is kept for each, streams and graphs of CUDA
    "stats": 5,  # looks where that waits for no device
    "train": 1,  # the same
}


def test_devices_are_named_where_kernels_are() -> None:
    """Rules, packing, sparse and shared ask a kernel, or what devices differ in (``kernels/devices.py``)."""
    found: dict[str, int] = {}
    for path in FILES:
        room = path.relative_to(ROOT / "masked_tensor").parts[0]
        if room not in ("kernels", "compat.py", "fill.py"):
            text = path.read_text()
            assert not re.search(r"\btriton\b", text), "Triton is for kernels/ alone"
            found[room] = found.get(room, 0) + len(re.findall(r"\.is_cuda\b|\.is_cpu\b|device\.type\b", text))
    assert {room: n for room, n in found.items() if n > NAMES_DEVICES.get(room, 0)} == {}


def test_kernels_of_gpus_add_up_in_order_and_try_no_sizes_out() -> None:
    """Atomics add up in any order; what is tuned at a first call differs from machine to machine."""
    for path in (ROOT / "masked_tensor/kernels/gpu").glob("*.py"):
        code = ast.parse(path.read_text())
        names = {getattr(node, "attr", getattr(node, "id", "")) for node in ast.walk(code)}
        assert not [name for name in names if name.startswith(("atomic", "autotune", "heuristics"))], path


# ------------------------------------------------------------------------------------------------------------ limits


def test_few_lines_are_kept_from_mypy_and_each_says_why() -> None:
    lines = [line for path in FILES for line in path.read_text().splitlines() if "type: ignore" in line]
    assert len(lines) <= 30
    assert [line.strip() for line in lines if not re.search(r"# type: ignore\[[a-z, -]+\]  # \w", line)] == []


def docstring_lines(node: ast.AST) -> int:
    """The lines of a docstring, which say what a caller needs and are not read to follow the code."""
    if not isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) or not ast.get_docstring(node):
        return 0
    return node.body[0].end_lineno - node.body[0].lineno + 1


def test_files_that_comments_name_are_there() -> None:
    """A comment or docstring that sends its reader to a file names one that there is."""
    there = {
        path.name
        for part in ("masked_tensor", "tests", "tools", "docs", "benchmarks")
        for path in (ROOT / part).rglob("*.py")
    }
    named = {(path.name, name) for path in FILES for name in re.findall(r"\b\w+\.py\b", path.read_text())}
    assert {(where, name) for where, name in named if name not in there} == set()
    assert len(named) > 5


@over(FILES)
def test_files_and_functions_fit_on_a_screen_or_two(path: Path) -> None:
    """300 lines a file, 45 a function, both without docstrings: at the limit, look for the second idea."""
    text = path.read_text()
    nodes = list(ast.walk(tree_of(path)))
    assert len(text.splitlines()) - sum(docstring_lines(node) for node in nodes) <= 300
    for node in nodes:
        if isinstance(node, ast.FunctionDef):
            assert node.end_lineno - node.lineno + 1 - docstring_lines(node) <= 45, node.name


def test_a_setting_is_set_once() -> None:
    names = re.findall(r"^([A-Z_]+) = ", (ROOT / "masked_tensor/settings.py").read_text(), re.MULTILINE)
    assert len(names) > 20
    assert sorted(names) == sorted(set(names))


NUMBERS = {  # of no size that was measured
    "api/containers/arrow/rows.py": "_SHORT",  # of a view of texts
    "stats/travel.py": "VERSION",
    "api/display/html.py": "MOST EDGE",
    "api/display/explain.py": "MOST",
    "api/copies/mask_copies.py": "_MOST",
    "api/containers/tables.py": "2048",  # what float64 holds beyond 2**63
    "integrations/torchmetrics.py": "IGNORED",
    "counting.py": "_LOW_BYTES _FOUR_ONES _EIGHT_ONES 2040",  # bytes of a word; 255 words
    "masks/__init__.py": "2**31",  # what int32 holds
    "masks/bits.py": "_GATHER",  # moves the bits of a word
    "packing/dim_order.py": "GRID",
    "rules/cross_entropy.py": "IGNORED",
    "rules/distance.py": "_FEW",  # torch decides by it
}


def is_number(node: ast.AST | None) -> bool:
    """Whether the node is an integer: written down, or computed from such."""
    if isinstance(node, ast.BinOp):
        return is_number(node.left) and is_number(node.right)
    if isinstance(node, ast.UnaryOp):
        return is_number(node.operand)
    return isinstance(node, ast.Constant) and type(node.value) is int


def numbers(tree: ast.Module) -> set[str]:
    """Constants of the file that are integers, and the integers from 64 on that something is compared with."""
    named = [n for n in tree.body if isinstance(n, ast.Assign | ast.AnnAssign) and is_number(n.value)]
    targets = [getattr(n, "target", None) or n.targets[0] for n in named]
    compared = [part for n in ast.walk(tree) if isinstance(n, ast.Compare) for part in ast.walk(n) if is_number(part)]
    large = {ast.unparse(part) for part in compared if abs(eval(ast.unparse(part))) >= 64}
    return {ast.unparse(target) for target in targets} | large


@over(FILES)
def test_numbers_that_decide_how_stand_in_one_file(path: Path) -> None:
    room = str(path.relative_to(ROOT / "masked_tensor"))
    found = numbers(tree_of(path))
    if path.name == "settings.py":
        text = path.read_text()
        for name in found - {"TABLE"}:  # which stands with TABLE_OF
            assert re.search(rf"^#: .*\n{name} = ", text, re.MULTILINE), f"what was {name} measured on?"
    else:
        allowed = NUMBERS.get(room, "").replace(" << ", "<<").split()
        assert {n.replace(" ", "") for n in found} == set(allowed), "it belongs in settings.py"


# ------------------------------------------------------------------------------------------------------------ floors


def floors(container: str = "masked_tensor") -> list[set[str]]:
    """The layers of the import contract for a package, the highest first."""
    text = (ROOT / "pyproject.toml").read_text().partition(f'containers = ["{container}"]')[2]
    contract = re.search(r"layers = \[(.*?)\n\]", text, re.DOTALL)
    return [set(re.split(r" [|:] ", layer)) for layer in re.findall(r'"(.+)"', contract[1])]


def layers_on_page(head: str) -> list[set[str]]:
    """The layers of a table in docs/how.md, the highest first."""
    lines = (ROOT / "docs/how.md").read_text().partition(f"| {head} | ")[2].partition("\n\n")[0].splitlines()
    return [set(re.findall(r"`(\w+)`", line.split("|")[1])) for line in lines[2:]]


def test_the_package_has_at_most_fourteen_floors() -> None:
    assert len(floors()) <= 14


def test_only_the_rule_writers_kit_lies_flat() -> None:
    others = {"__init__", "__main__", "_pickle"}  # of _pickle the path is promised
    flat = {path.stem for path in (ROOT / "masked_tensor").glob("*.py")} - others
    kit = {name for names in floors() for name in names if (ROOT / f"masked_tensor/{name}.py").exists()} - others
    assert flat == kit
    assert len(kit) <= 10


@pytest.mark.parametrize("container", ["api", "functional", "kernels"])
def test_the_page_names_the_rooms(container: str) -> None:
    """And in its table nothing that is not there."""
    named = set().union(*layers_on_page(f"in `{container}`"))
    place = ROOT / "masked_tensor" / container
    assert named >= {path.parent.name for path in place.glob("*/__init__.py")}
    assert [name for name in named if not (place / name).is_dir() and not (place / f"{name}.py").exists()] == []


def test_the_page_names_every_room() -> None:
    """Those that lie in a room with a table by their last name, all others by their path."""
    page = (ROOT / "docs/how.md").read_text()
    rooms = {path.parent.relative_to(ROOT / "masked_tensor") for path in (ROOT / "masked_tensor").rglob("__init__.py")}
    tables = {Path(room) for room in ("api", "functional", "kernels", "engine")}
    names = [room.name if room.parent in tables else str(room) for room in rooms - {Path()}]
    assert [name for name in names if f"`{name}`" not in page] == []


ONE_FILE_A_FAMILY = {"rules", "sparse", "packing", "integrations"}  #: rooms that have as many files as there are kinds


def test_a_room_has_at_most_sixteen_files() -> None:
    """Besides the one that says what the room is."""
    sizes = {str(room.relative_to(ROOT / "masked_tensor")): room for room in {path.parent for path in FILES}}
    counted = {name: len(list(room.glob("*.py"))) - 1 for name, room in sizes.items() if name not in ONE_FILE_A_FAMILY}
    assert {name: n for name, n in counted.items() if n > 16} == {}


@pytest.mark.parametrize(("head", "container"), [("layer", "masked_tensor"), ("engine", "masked_tensor.engine")])
def test_the_table_of_layers_is_the_contract(head: str, container: str) -> None:
    assert layers_on_page(head) == floors(container)


def test_the_engine_has_at_most_sixteen_parts() -> None:
    rooms = set().union(*floors("masked_tensor.engine"))
    files = {path.stem for path in (ROOT / "masked_tensor/engine").iterdir() if path.suffix == ".py" or path.is_dir()}
    assert rooms == files - {"__init__", "__pycache__"}
    assert len(rooms) <= 16


def test_every_package_has_its_law() -> None:
    wings = {name for names in floors() for name in names if (ROOT / f"masked_tensor/{name}").is_dir()}
    for name in wings:
        law = ast.get_docstring(ast.parse((ROOT / f"masked_tensor/{name}/__init__.py").read_text())).partition("\n\n")[
            0
        ]
        assert law.endswith("."), name

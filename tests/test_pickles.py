"""What pickles name, and that the pickles of earlier versions are read.

``python -m tests.helpers.pickles NAME`` stores the pickles of a release in ``tests/pickles``; none is written again.
"""

import copy
import io
import pickle
import pickletools
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

import masked_tensor as mt
from masked_tensor.testing import assert_close

from .helpers.pickles import STORED, examples
from .helpers.trees import tree_leaves

PATH = "masked_tensor._pickle rebuild"
FILES = sorted(STORED.iterdir())
pytestmark = pytest.mark.filterwarnings("ignore:.*is deprecated")  # torch's own storages, in a plain pickle


def named(pickled: bytes) -> Iterator[str]:
    """The classes and functions that a pickle names, each as ``module name``."""
    texts: list[str] = []
    memo: list[str] = []
    for op, argument, _ in pickletools.genops(pickled):
        if op.name == "GLOBAL":
            yield argument
        elif op.name == "STACK_GLOBAL":
            yield " ".join(texts[-2:])
        elif op.name == "MEMOIZE":
            memo.append(texts[-1] if texts else "")
        elif op.name == "BINGET":
            texts.append(memo[argument] if argument < len(memo) else "")
        elif isinstance(argument, str):
            texts.append(argument)
        if op.name in ("BINBYTES", "BINUNICODE8", "BINBYTES8", "SHORT_BINBYTES") and b"masked_tensor" in argument:
            yield from named_in_file(argument)


def named_in_file(saved: bytes) -> Iterator[str]:
    """The same of a file of ``torch.save``."""
    with zipfile.ZipFile(io.BytesIO(saved)) as file:
        for entry in file.namelist():
            if entry.endswith("data.pkl"):
                yield from named(file.read(entry))


def saved(value: Any) -> bytes:
    file = io.BytesIO()
    torch.save(value, file)
    return file.getvalue()


def ours(names: Iterator[str]) -> set[str]:
    return {name for name in names if "masked_tensor" in name}


@pytest.mark.parametrize("name", sorted(examples()))
def test_pickles_name_one_function_of_the_package(name: str) -> None:
    value = examples()[name]
    expected = {PATH} if name != "mask" else set()
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        assert ours(named(pickle.dumps(value, protocol=protocol))) == expected
    assert ours(named_in_file(saved(value))) == expected


def test_a_state_dict_names_it_too() -> None:
    model = torch.nn.Linear(2, 1)
    model.weight = torch.nn.Parameter(mt.masked_tensor([[1.0, None]]))
    assert ours(named_in_file(saved(model.state_dict()))) == {PATH}


def assert_equal(actual: Any, expected: Any, name: str) -> None:
    """Equal in values, masks, storage and attributes; what shared memory shares writes."""
    assert_close(actual, expected, rtol=0, atol=0)
    for a, e in zip(tree_leaves(actual), tree_leaves(expected), strict=True):
        assert type(a) is type(e)
        assert (a.dtype, a.layout, a.requires_grad) == (e.dtype, e.layout, e.requires_grad)
        if type(e) is mt.MaskedTensor:
            assert a.is_packed == e.is_packed
            assert getattr(a, "unit", None) == getattr(e, "unit", None)
    if name == "hard mask":
        actual[0, 1] = 5.0
        assert actual[0].tolist() == [1.0, None, 3.0]


def assert_share_writes(base: mt.MaskedTensor, view: mt.MaskedTensor) -> None:
    base[0, 0] = 9.0
    assert view.flatten()[0].item() == 9.0


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_stored_pickles_are_read(path: Path) -> None:
    """Of every earlier version.  A file of ``torch.save`` also keeps which tensors share memory."""
    expected = examples()
    read: dict[str, Any] = pickle.loads(path.read_bytes()) if path.suffix == ".pickle" else torch.load(path)
    assert read
    for name, value in read.items():
        assert_equal(value, expected[name], name)
        if path.suffix == ".pt" and isinstance(value, list):
            assert_share_writes(*value)


def test_both_kinds_of_file_are_stored() -> None:
    assert {path.suffix for path in FILES} == {".pt", ".pickle"}


@pytest.mark.parametrize("name", sorted(examples()))
def test_copies_are_equal(name: str) -> None:
    value = examples()[name]
    again = io.BytesIO(saved(value))
    for copied in (copy.deepcopy(value), pickle.loads(pickle.dumps(value)), torch.load(again, weights_only=True)):
        assert_equal(copied, value, name)


#: What a damaged or forged pickle may say, by the kind of tensor.
WRONG: dict[str, tuple[str, dict[str, Any]]] = {
    "an attribute of the engine": ("float", {"attributes": {"_pair": 1}}),
    "a member of the class": ("float", {"attributes": {"sum": 1}}),
    "no attributes": ("float", {"attributes": None}),
    "numbers for a mask": ("float", {"mask": torch.ones(2, 3)}),
    "a mask of another shape": ("float", {"mask": torch.ones(4, dtype=torch.bool)}),
    "an unknown promise": ("float", {"payload": "one"}),
    "zeros that are none": ("garbage", {"payload": "zero"}),
    "no data": ("float", {"data": None}),
    "a list for data": ("float", {"data": [1.0]}),
    "a dense mask of sparse data": ("COO", {"mask": torch.ones(2, 3, dtype=torch.bool)}),
    "a mask of another pattern": ("COO", {"mask": torch.ones(2, 3, dtype=torch.bool).to_sparse()}),
    "a masked tensor for data": ("float", {"data": mt.masked_tensor([[1.0, 2.0, 3.0]] * 2)}),
    "a family with a sparse mask": ("base and view", {"family": {"mask": torch.ones(2, 3).bool().to_sparse()}}),
    "a family with numbers for a mask": ("base and view", {"family": {"mask": torch.ones(2, 3)}}),
    "a family with a tensor for a word": ("base and view", {"family": {"hard": torch.ones(2)}}),
    "a family without memory": ("base and view", {"family": {}}),
    "duplicates in an index": ("packed", {"index": [0, 0]}),
    "an index that falls": ("packed", {"index": [1, 0]}),
    "an index below 0": ("packed", {"index": [-1, 0]}),
    "an index beyond the grid": ("packed", {"index": [0, 10**6]}),
    "an index of floats": ("packed", {"index": [0.0, 1.0]}),
    "an index too short": ("packed", {"index": [0]}),
    "an order of other dimensions": ("packed", {"order": ((0,), (7,))}),
    "numbers for a mask of steps": ("packed with masked entries", {"inner": torch.ones(2, 2)}),
    "an unknown view": ("packed base and view", {"path": [("aten::add.Tensor", (), {}, None)]}),
}


@pytest.mark.parametrize("what", WRONG)
def test_a_damaged_pickle_is_one_error(what: str) -> None:
    name, changes = WRONG[what]
    found = examples()[name]
    x = found[-1] if isinstance(found, list) else found
    make, (kind, parts) = x.__reduce_ex__(2)
    make(kind, dict(parts))  # as it is, it is read
    if isinstance(changes.get("index"), list):
        rest = parts["index"][len(changes["index"]) :]
        index = torch.tensor(changes["index"])
        changes = {"index": index if len(index) == 1 else torch.cat([index, rest.to(index.dtype)])}
    if changes.get("family"):
        changes = {"family": {**parts["family"], **changes["family"]}}
    with pytest.raises(ValueError, match="this pickle of a masked tensor is damaged"):
        make(kind, {**parts, **changes})


def test_a_pickle_keeps_what_lies_under_the_mask_unless_it_is_cleared() -> None:
    secret = 12345.678
    for x in (
        mt.as_masked_tensor(torch.tensor([1.0, secret]), torch.tensor([True, False])),
        mt.as_masked_tensor(
            torch.sparse_coo_tensor([[0, 1]], [1.0, secret]), torch.sparse_coo_tensor([[0, 1]], [True, False])
        ),
        mt.as_masked_tensor(torch.tensor([secret, 1.0, secret]), torch.tensor([False, True, False]))[1:],
        mt.as_masked_tensor(torch.tensor([[[1.0, secret]]]), torch.tensor([[[True, False]]])).packed(),
    ):
        hidden = torch.tensor(secret).numpy().tobytes()
        cleared = x.clear_masked()
        assert hidden in saved(x)
        assert hidden not in saved(cleared) + pickle.dumps(cleared)
        assert_close(cleared, x)
        assert (cleared.layout, cleared.is_packed) == (x.layout, x.is_packed)
        assert cleared.get_data() is not x


def test_clear_masked_has_the_gradient_of_its_argument() -> None:
    leaf = mt.as_masked_tensor(torch.tensor([2.0, float("nan")]), torch.tensor([True, False])).requires_grad_()
    leaf.clear_masked().square().sum().backward()
    assert leaf.grad.tolist() == [4.0, None]  # type: ignore[attr-defined]

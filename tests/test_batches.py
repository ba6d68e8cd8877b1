"""Batches of sequences: one convention in, and the sequences out again."""

import copy
import pickle
from collections import UserDict, namedtuple
from collections.abc import Callable
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import pytest
import torch
from torch import tensor
from torch.nn.utils import rnn
from torch.utils.data import DataLoader

import masked_tensor as mt
from masked_tensor.engine.tensor import pair_of

LENGTHS = [3, 1, 0, 2]


def sequences(*features: int, dtype: torch.dtype = torch.float64) -> list[torch.Tensor]:
    torch.manual_seed(0)
    return [torch.randn(length, *features).to(dtype) for length in LENGTHS]


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("dim", [1, 2, 3, -1])
def test_one_convention(dim: int, side: str) -> None:
    rows = [s.movedim(0, dim % 4 - 1) for s in sequences(2, 3)]
    x = mt.from_sequences(rows, dim=dim, padding_side=side)
    assert x.get_mask().equal(mt.from_lengths(x.filled(0), LENGTHS, dim=dim, padding_side=side).get_mask())
    assert sum(s == 0 for s in pair_of(x).mask.stride()) == 2
    assert x.lengths(dim).tolist() == LENGTHS
    for row, wanted in zip(x.unpad(dim), rows, strict=True):
        torch.testing.assert_close(row, wanted)


def test_batch_first_is_the_default_and_can_be_turned_off() -> None:
    rows = sequences(2)
    assert mt.from_sequences(rows).shape == (4, 3, 2)
    turned = mt.from_sequences(rows, batch_first=False)
    assert turned.tolist() == mt.from_sequences(rows).transpose(0, 1).tolist()
    assert mt.from_lengths(turned.filled(), LENGTHS, batch_first=False).get_mask().equal(turned.get_mask())
    assert mt.from_sequences([[1, 2], np.array([3])]).tolist() == [[1, 2], [3, None]]
    assert mt.from_sequences(rows, dim=1, padding_value=7.0).get_data()[2].eq(7).all()


def test_masks_of_integers_and_hints() -> None:
    assert mt.masked_tensor(torch.ones(3), tensor([1, 0, 1])).tolist() == [1.0, None, 1.0]
    assert mt.as_masked_tensor(torch.ones(3), tensor([1, 0, 1], dtype=torch.uint8)).count() == 2
    assert mt.masked_tensor([1, 2], [1, None]).tolist() == [1, None]
    assert mt.masked_where([1, 0], [5, 6]).tolist() == [None, 6]
    sparse = torch.eye(2).to_sparse()
    assert mt.masked_tensor(sparse, sparse.long()).tolist() == [[1.0, None], [None, 1.0]]


TOOLS: dict[str, Callable[[Any], Any]] = {
    "lengths": mt.lengths,
    "unpad": mt.unpad,
    "to_nested": lambda x: mt.to_nested(x).unbind(),
    "to_packed_sequence": lambda x: mt.to_packed_sequence(x, enforce_sorted=False),
    "to_left": mt.to_left,
    "to_right": mt.to_right,
    "compressed": mt.compressed,
    "count": lambda x: [mt.count(x, d) for d in (None, 0, 1, -1)],
    "select_valid": lambda x: mt.select_valid(x, x.flip(0)),
    "collate": lambda x: mt.collate([x, x[:, :2]]),
    "from_sequences": lambda x: mt.from_sequences([x, x[:1]]),
    "packed": lambda x: mt.packed(x).unpacked(),
    "to_numpy_ma": lambda x: mt.masked_tensor(mt.to_numpy_ma(x)),
    "pickle": lambda x: pickle.loads(pickle.dumps(x)),
    "deepcopy": copy.deepcopy,
    "split": lambda x: [part for d in (0, 1) for part in x.split(1, d)],
    "where": lambda x: mt.masked_where(x.get_data() > 0, x),
    "series": lambda x: [f(x, 1) for f in (mt.ffill, mt.bfill, mt.interpolate)],
    "rolling": lambda x: mt.rolling(x, 2, 1, min_periods=1, lengths="full").mean(),
    "ranks": lambda x: [mt.rankdata(x, dim=d) for d in (None, 0, 1)],
    "covariance": lambda x: mt.cov(x.flatten(1)),
    "statistics": lambda x: mt.RunningStatistics(x.shape[-1]).update(x).var,
}


def shown(found: Any) -> str:
    """What a tool gives, to nine digits, None where it is masked."""
    if isinstance(found, list | tuple):
        return f"[{', '.join(map(shown, found))}]"
    if isinstance(found, torch.Tensor):
        return shown(found.tolist())
    return f"{found:.9g}" if isinstance(found, float) else str(found)


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors:UserWarning")
@pytest.mark.parametrize("name", TOOLS)
def test_how_a_mask_is_stored_changes_nothing(name: str) -> None:
    """A mask that is constant along a dimension, as that of a whole batch, is stored once along it."""
    generator = torch.Generator().manual_seed(0)

    def run(x: Any) -> Any:
        try:
            return TOOLS[name](x)
        except (ValueError, RuntimeError) as error:
            return error

    for shape in ((1, 3), (2, 3), (1, 3, 1), (2, 3, 2), (3, 1), (1, 1)):
        data = torch.randn(shape, generator=generator, dtype=torch.float64)
        for kept in product((True, False), repeat=len(shape)):
            small = tuple(n if keep else 1 for n, keep in zip(shape, kept, strict=True))
            steps = torch.arange(small[1]).view(1, -1, *[1] * (len(shape) - 2))
            ends = torch.randint(0, shape[1] + 1, (small[0], *[1] * (len(shape) - 1)), generator=generator)
            for mask in (torch.ones(small, dtype=torch.bool), (steps < ends).expand(small)):
                spared = mt.as_masked_tensor(data, mask)
                stored = mt.as_masked_tensor(data, mask.expand(shape).contiguous())
                assert shown(run(spared)) == shown(run(stored)), (shape, small)


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors:UserWarning")
@pytest.mark.parametrize("layout", [torch.jagged, torch.strided])
def test_nested_tensors_come_and_go(layout: torch.layout) -> None:
    rows = [r.requires_grad_() for r in sequences(2) if len(r)]
    x = mt.from_nested(torch.nested.as_nested_tensor(rows, layout=layout))
    assert x.shape == (3, 3, 2)
    assert (
        mt.masked_tensor(torch.nested.as_nested_tensor(rows, layout=layout), requires_grad=True).tolist() == x.tolist()
    )
    (x * x).sum().backward()
    for row in rows:
        torch.testing.assert_close(row.grad, 2 * row.detach())


@pytest.mark.parametrize("dim", [1, 2])
def test_to_nested(dim: int) -> None:
    rows = [r.movedim(0, dim - 1) for r in sequences(2) if len(r)]
    x = mt.from_sequences(rows, dim=dim).requires_grad_()
    nested = x.to_nested(dim)
    for part, row in zip(nested.unbind(), rows, strict=True):
        torch.testing.assert_close(part, row)
    assert mt.from_nested(nested).tolist() == x.tolist()
    nested.values().sum().backward()
    assert x.grad.filled().sum() == sum(r.numel() for r in rows)


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors:UserWarning")
def test_strided_nested_tensors_may_differ_along_every_dimension() -> None:
    images = [torch.rand(3, 2, 4), torch.rand(3, 5, 1)]
    x = mt.from_nested(torch.nested.nested_tensor(images))
    assert x.shape == (2, 3, 5, 4)
    for image, row in zip(images, x, strict=True):
        assert row.compressed().equal(image.flatten())


@pytest.mark.parametrize("enforce_sorted", [True, False])
def test_packed_sequences_come_and_go(enforce_sorted: bool) -> None:
    rows = sorted((r for r in sequences(2) if len(r)), key=len, reverse=True)
    if not enforce_sorted:
        rows = rows[::-1]
    packed = rnn.pack_sequence(rows, enforce_sorted)
    x = mt.masked_tensor(packed)
    assert x.tolist() == mt.from_sequences(rows).tolist()
    again = x.to_packed_sequence(enforce_sorted)
    assert again.data.equal(packed.data)
    assert again.batch_sizes.equal(packed.batch_sizes)


def test_sequences_with_masked_entries_inside_are_refused() -> None:
    inside = mt.masked_tensor([[1.0, None, 3.0]])
    partly = mt.masked_tensor([[[1.0, None]]])
    for x in (inside, partly):
        for leave in (mt.lengths, mt.unpad, mt.to_nested, mt.to_packed_sequence):
            with pytest.raises(ValueError, match=rf"^{leave.__name__}\(\) cannot read the lengths from the mask"):
                leave(x)
    assert mt.masked_tensor([[None, 1.0], [None, None]]).lengths().tolist() == [1, 0]


def test_attention_masks() -> None:
    ids = tensor([[5, 6, 7], [8, 0, 0]])
    mask = tensor([[1, 1, 1], [1, 0, 0]])
    x = mt.from_attention_mask(ids, mask)
    assert x.tolist() == [[5, 6, 7], [8, None, None]]
    speech = mt.from_attention_mask(torch.ones(2, 4, 3), mask, dim=2)
    assert speech.lengths(2).tolist() == [3, 1]
    batch = {
        "input_ids": ids,
        "attention_mask": mask,
        "offsets": torch.ones(2, 3, 2),
        "labels": tensor([1, 0]),
        "text": ["a"],
    }
    made = mt.from_attention_mask(batch)
    assert list(made) == ["input_ids", "offsets", "labels", "text"]
    assert made["input_ids"].tolist() == x.tolist()
    assert made["offsets"].count() == 8
    assert type(made["labels"]) is torch.Tensor
    lists = {"input_ids": [[5, 6, 7], [8]], "attention_mask": [[1, 1, 1], [1]]}  # a tokenizer that was told not to pad
    assert mt.from_attention_mask(lists)["input_ids"].tolist() == x.tolist()
    assert mt.from_attention_mask(batch, mask)["input_ids"].tolist() == x.tolist()


@pytest.mark.parametrize("dtype", [torch.bool, torch.int64])
def test_an_attention_mask_with_an_empty_row_is_warned_of(dtype: torch.dtype) -> None:
    """A padded batch has a sequence without padding; of an inverted mask that one has no valid step."""
    ids, mask = tensor([[5, 6, 7], [8, 0, 0]]), tensor([[1, 1, 1], [1, 0, 0]])
    for valid in (mask, mask.flip(1), tensor([[1, 1, 0], [0, 1, 0]]), torch.zeros(2, 0), torch.zeros(0, 3)):
        mt.from_attention_mask(torch.ones(valid.shape), valid.to(dtype))
    for padding in (1 - mask, 1 - mask.flip(1), torch.zeros(2, 3)):
        with pytest.warns(UserWarning, match="rows without a valid step; .* pass ~mask") as seen:
            mt.from_attention_mask({"ids": ids, "attention_mask": padding.to(dtype)})
        assert seen[0].filename == __file__


def test_attention_masks_of_a_real_tokenizers_batch() -> None:
    encoding = pytest.importorskip("transformers").BatchEncoding
    batch = encoding({"input_ids": tensor([[5, 6], [7, 0]]), "attention_mask": tensor([[1, 1], [1, 0]])})
    made = mt.from_attention_mask(batch).to("meta")
    assert type(made) is encoding
    assert made.input_ids.is_meta
    assert list(made) == ["input_ids"]
    assert list(batch) == ["input_ids", "attention_mask"]  # is left as it was


def test_attention_masks_of_mappings_keep_what_else_they_know() -> None:
    class Encoding(UserDict):  # type: ignore[type-arg]  # as transformers has it
        words = None

    batch = Encoding({"input_ids": tensor([[5, 6], [7, 0]]), "attention_mask": tensor([[1, 1], [1, 0]])})
    batch.words = ["a"]
    made = mt.from_attention_mask(batch)
    assert type(made) is Encoding
    assert made.words == ["a"]
    assert made["input_ids"].tolist() == [[5, 6], [7, None]]
    assert "attention_mask" in batch
    assert "attention_mask" not in made


Sample = namedtuple("Sample", "x y")


def test_collate() -> None:
    samples: list[Any] = [
        {"x": torch.ones(2, 3), "ids": [1, 2], "y": 1, "name": "a", "pair": (np.ones(2), 0.5), "deep": [torch.ones(1)]},
        {"x": torch.ones(1, 3), "ids": [3], "y": None, "name": "b", "pair": (np.ones(1), 1.5), "deep": [torch.ones(2)]},
    ]
    batch = mt.collate(samples)
    assert batch["x"].shape == (2, 2, 3)
    assert batch["x"].lengths().tolist() == [2, 1]
    assert batch["ids"].tolist() == [[1, 2], [3, None]]
    assert batch["y"].tolist() == [1, None]
    assert batch["name"] == ["a", "b"]
    assert batch["pair"][0].tolist() == [[1.0, 1.0], [1.0, None]]
    assert batch["pair"][1].tolist() == [0.5, 1.5]
    assert batch["deep"][0].tolist() == [[1.0, None], [1.0, 1.0]]
    named = mt.collate([Sample(torch.ones(2), tensor(1)), Sample(torch.ones(2), tensor(2))])
    assert type(named) is Sample
    assert type(named.x) is mt.MaskedTensor  # whatever the lengths happen to be
    assert type(named.y) is torch.Tensor
    left = mt.collate([torch.ones(2, 1), torch.ones(2, 2)], dim=1, padding_side="left")
    assert left.tolist() == [[[None, 1.0]] * 2, [[1.0, 1.0]] * 2]
    joined = mt.collate([mt.masked_tensor([None, 1.0]), torch.ones(1)])
    assert joined.tolist() == [[None, 1.0], [1.0, None]]


@pytest.mark.parametrize("workers", [0, 1])
def test_a_loader_collates(workers: int) -> None:
    rows = sequences(2)
    loader = DataLoader(rows, 2, collate_fn=partial(mt.collate, dim=0), num_workers=workers)
    batches = list(loader)
    assert [b.lengths().tolist() for b in batches] == [[3, 1], [0, 2]]
    torch.testing.assert_close(batches[0].unpad(), rows[:2])


def test_none_makes_a_masked_entry() -> None:
    x = mt.masked_tensor([[1.0, 2.0], [3.0, 4.0]])
    x[0, 1] = None
    assert x.tolist() == [[1.0, None], [3.0, 4.0]]
    x[:, 0] = None
    assert x.tolist() == [[None, None], [None, 4.0]]
    view = x[1]
    view[torch.tensor([False, True])] = None
    assert x.tolist() == [[None, None], [None, None]]
    y = torch.tensor([1.0, 2.0], requires_grad=True)
    z = mt.as_masked_tensor(y * 3, torch.tensor([True, True]))
    z[0] = None
    z.sum().backward()
    assert y.grad.tolist() == [0.0, 3.0]


def test_filled_from_a_tensor() -> None:
    value = torch.tensor([7.0, 8.0], dtype=torch.float64, requires_grad=True)
    x = mt.as_masked_tensor(
        torch.tensor([[1.0, NAN], [NAN, 4.0]], dtype=torch.float64), torch.eye(2).bool()
    ).requires_grad_()
    filled = x.filled(value)
    assert filled.tolist() == [[1.0, 8.0], [7.0, 4.0]]
    (filled**2).sum().backward()
    assert value.grad.tolist() == [14.0, 16.0]
    assert x.grad.filled(0).tolist() == [[2.0, 0.0], [0.0, 8.0]]
    assert mt.masked_tensor([1, None]).filled().tolist() == [1, 0]
    assert mt.masked_tensor([1, None]).filled(tensor(5, dtype=torch.int8)).tolist() == [1, 5]
    assert torch.autograd.gradcheck(
        lambda a, v: mt.as_masked_tensor(a, torch.eye(2).bool()).filled(v),
        (torch.rand(2, 2, dtype=torch.float64, requires_grad=True), value),
    )


NAN = float("nan")


class Odd(ValueError):
    """Made of two things, as UnicodeDecodeError of five."""

    def __init__(self, what: str, where: int) -> None:
        super().__init__(f"{what} at {where}")


def test_an_error_that_is_not_made_of_a_text_names_its_key() -> None:
    class Sequence(list[int]):
        def __iter__(self) -> Any:
            raise Odd("a hole", 3)

    with pytest.raises(ValueError, match="key 'a' of the samples: a hole at 3"):
        mt.collate([{"a": Sequence([1])}, {"a": Sequence([2])}])

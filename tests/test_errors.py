"""The wording of every error: what was wrong, and the way out.  Arguments stay as they were.

The last test reads every ``raise`` of the package and asks for an example of it here.
"""

import copy
import re
import runpy
import sys
from collections.abc import Callable
from functools import partial
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from expecttest import assert_expected_inline
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils.checkpoint import checkpoint

import masked_tensor as mt
from masked_tensor import compat, errors, shapes
from masked_tensor.api.containers import accepted_inputs
from masked_tensor.api.containers.arrow import library
from masked_tensor.api.flat.compiled.nodes import entered_labels, entered_plain
from masked_tensor.api.leave import convert
from masked_tensor.api.python.flex_attention import refuse
from masked_tensor.integrations import (
    open_clip,
    tensordict,
    torch_geometric,
    torchcrf,
    torchmetrics,
    transformers,
    wrapping,
)
from masked_tensor.packing.kinds import packed_rule
from masked_tensor.shared import ranks
from masked_tensor.stats import last_valid, options, summary, travel
from masked_tensor.train import group_mean

from .helpers.messages import literals, templates
from .helpers.wrapping import Wrapper

ones = torch.ones


def message(error: type[Exception], call: Callable[[], Any]) -> str:
    with pytest.raises(error) as raised:
        call()
    return str(raised.value.args[0])


def refused(error: type[Exception], call: Callable[[], Any], expected: str) -> None:
    """``EXPECTTEST_ACCEPT=1`` writes what was raised into this file."""
    assert_expected_inline(message(error, call), expected, skip=1)


def test_masks() -> None:
    def make(data: torch.Tensor, mask: object) -> Callable[[], Any]:
        return lambda: mt.masked_tensor(data, mask)

    refused(
        TypeError,
        make(ones(2, 3), ones(3, 2)),
        """mask must be a bool tensor broadcastable to data's shape (2, 3), got float32 (3, 2); use mask != 0 for zeros and ones, mask == 0 for an additive mask of 0 and -inf""",
    )
    refused(
        ValueError,
        make(ones(2, 3, 4, 4), ones(2, 4, 4).bool()),
        """mask must be a bool tensor broadcastable to data's shape (2, 3, 4, 4), got bool (2, 4, 4); it lacks dimension 1 of data: use mask.unsqueeze(1)""",
    )
    refused(
        ValueError,
        make(ones(2, 3), ones(3, 2).bool()),
        """mask must be a bool tensor broadcastable to data's shape (2, 3), got bool (3, 2)""",
    )
    refused(
        ValueError,
        make(ones(3), ones(2, 3).bool()),
        """mask must be a bool tensor broadcastable to data's shape (3,), got bool (2, 3)""",
    )
    refused(
        ValueError,
        make(ones(3), ones(3).bool().to_sparse()),
        """mask must have data's layout torch.strided, got torch.sparse_coo""",
    )
    refused(
        ValueError,
        make(ones(3, device="meta"), ones(3).bool()),
        """mask must be on data's device meta, got cpu; use mask.to(data.device)""",
    )
    refused(
        TypeError,
        lambda: mt.masked_where(ones(3), ones(3)),
        """condition must be a bool tensor broadcastable to data's shape (3,), got float32 (3,); use condition.bool()""",
    )
    refused(
        TypeError,
        lambda: mt.masked_where(ones(3), ones(3).bool()),
        """masked_where(condition, data): are the arguments swapped? condition has float32, data has bool""",
    )
    refused(
        ValueError,
        lambda: mt.masked_equal(ones(3), float("nan")),
        """masked_equal: NaN equals nothing; use masked_invalid(data), which masks NaN and infinity""",
    )


def test_data() -> None:
    refused(
        TypeError,
        lambda: mt.masked_tensor([1.0, None, "NA"]),
        """data must be a tensor, number, list, array or table of numbers, got list: 'NA' is a string; give numbers, None for what is missing, and codes for categories (pandas: column.astype('category').cat.codes)""",
    )
    refused(
        TypeError,
        lambda: mt.masked_tensor(np.array(["a", "b"])),
        """data must be a tensor, number, list, array or table of numbers, got ndarray: 'a' is a string; give numbers, None for what is missing, and codes for categories (pandas: column.astype('category').cat.codes)""",
    )
    refused(
        TypeError,
        lambda: mt.masked_tensor([1.0], "yes"),
        """mask must be a tensor, number, list, array or table of numbers, got str: 'yes' is a string; give numbers, None for what is missing, and codes for categories (pandas: column.astype('category').cat.codes)""",
    )
    refused(
        TypeError,
        lambda: mt.masked_tensor([1.0], valid=[True]),  # type: ignore[call-arg]  # not its name
        """masked_tensor() got an unexpected keyword argument 'valid'; use mask=""",
    )
    refused(
        TypeError,
        lambda: mt.masked_tensor(object(), True),
        """data must be a tensor, number, list, array or table of numbers, got object: Could not infer dtype of object""",
    )
    refused(
        TypeError,
        lambda: mt.as_masked_tensor([1.0], [True]),
        """as_masked_tensor expects a tensor, got list; use masked_tensor(data, mask), which copies""",
    )
    refused(
        TypeError,
        lambda: mt.as_masked_tensor(ones(2)),
        """as_masked_tensor of a strided tensor needs a mask that is True where an entry is valid""",
    )
    refused(
        TypeError,
        lambda: mt.MaskedTensor(ones(2), ones(2).bool()),
        """MaskedTensor cannot be called; use masked_tensor(data, mask) to copy the data, or as_masked_tensor(data, mask) to wrap it""",
    )


def test_masks_of_numbers_and_hints() -> None:
    refused(
        ValueError,
        lambda: mt.masked_tensor(ones(2), torch.tensor([0, 2])),
        """mask must be bool or hold only 0 and 1; pass a condition, such as mask > 0; if it holds sequence lengths, use from_lengths(data, lengths)""",
    )
    refused(
        ValueError,
        lambda: mt.masked_tensor(ones(2, 3, 4), ones(2, 3).bool()),
        """mask must be a bool tensor broadcastable to data's shape (2, 3, 4), got bool (2, 3); it matches the first dimensions of data: use mask.unsqueeze(-1)""",
    )


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors:UserWarning")
def test_containers() -> None:
    ragged = [mt.masked_tensor([1.0, None]), mt.masked_tensor([1.0])]
    refused(
        RuntimeError,
        lambda: torch.utils.data.default_collate(ragged),
        """samples have the shapes (2,) and (1,); DataLoader(collate_fn=mt.collate) pads them""",
    )
    pa, pd, units = (pytest.importorskip(name) for name in ("pyarrow", "pandas", "astropy.units"))
    make = mt.masked_tensor
    refused(
        TypeError,
        lambda: make(pa.table({"a": [1], "b": ["x"]})),
        """column 'b' of the table: an Arrow column of text, bytes or times (format 'u') cannot become a tensor; cast it to numbers first""",
    )
    refused(
        TypeError,
        lambda: make(pa.array(["a"])),
        """an Arrow column of text, bytes or times (format 'u') cannot become a tensor; cast it to numbers first""",
    )
    refused(
        TypeError,
        lambda: make([1.0] * units.m),
        """data has the unit m, which a tensor cannot keep; use data.value, or data.to_value(unit) to convert it""",
    )
    refused(
        TypeError,
        lambda: make(iter([1.0])),
        """masked_tensor expects one batch or one array, got list_iterator; write: for batch in data: masked_tensor(batch)""",
    )
    refused(
        TypeError,
        lambda: make(pd.DataFrame({"a": [1], "b": ["x"]}, dtype=object)),
        """column 'b' of the table: data must be a tensor, number, list, array or table of numbers, got list: 'x' is a string; give numbers, None for what is missing, and codes for categories (pandas: column.astype('category').cat.codes)""",
    )
    refused(
        TypeError,
        lambda: make(pd.DataFrame({"a": [1], "b": pd.to_datetime(["2026-01-01"])})),
        """column 'b' of the table: data must be a tensor, number, list, array or table of numbers, got ndarray: datetime64[us] holds times; convert them, in pandas: (times - times.min()).dt.total_seconds()""",
    )
    refused(
        ValueError,
        lambda: make(pd.DataFrame({"a": [2**53 + 1], "b": [0.5]})),
        """column 'a' of the table holds 9007199254740993, which is not a number of float64, the common dtype of its columns; take that column by itself, or give dtype=torch.float64, which rounds it""",
    )
    refused(
        TypeError,
        lambda: make({"a": ["x"], "b": ["y"]}),
        """2 columns of the table hold no numbers: ['a', 'b']; column 'a' of the table: data must be a tensor, number, list, array or table of numbers, got list: 'x' is a string; give numbers, None for what is missing, and codes for categories (pandas: column.astype('category').cat.codes)""",
    )
    refused(
        TypeError,
        lambda: make({"a": 1}),
        """a dict must hold columns of one length, but 'a' holds int; convert one entry: masked_tensor(data[name])""",
    )
    refused(
        ValueError,
        lambda: make({"a": [1], "b": [1, 2]}),
        """columns of a table must have the same length, got {'a': 1, 'b': 2}""",
    )
    refused(ValueError, lambda: make(pd.DataFrame({})), """a table without columns holds no numbers""")
    refused(
        TypeError,
        lambda: make([1, [2]]),
        """data mixes numbers and lists at one depth: 1 stands where others have a list""",
    )
    refused(
        ValueError,
        lambda: make(torch.nested.nested_tensor([], layout=torch.strided)),
        """a nested tensor without components has no shape""",
    )
    refused(
        TypeError,
        lambda: mt.from_nested(ones(2)),
        """from_nested expects a nested tensor, got Tensor; use masked_tensor(data)""",
    )
    refused(
        RuntimeError,
        lambda: make(FailingStream()),
        """the arrow column cannot be read: the file ends here""",
    )
    refused(
        ValueError,
        lambda: make(pa.DictionaryArray.from_arrays(pa.array([5]), pa.array([1.5]), safe=False)),
        """the arrow column cannot be read: a code names no word of its dictionary, which has 1""",
    )
    refused(
        TypeError,
        lambda: pa.array(make(1.0)),
        """a 0-d masked tensor is not an Arrow column; use x.reshape(1), or x.tolist() for its value""",
    )
    refused(TypeError, lambda: pa.array(make(ones(2).bfloat16())), """arrow has no type for bfloat16; use x.float()""")


def test_readers_of_containers() -> None:
    class Track:
        """A container."""

    refused(
        TypeError,
        lambda: mt.extend.register_container("Track"),
        """a container is a class, or "library.Class", got 'Track'; tensors and classes of Python itself are read already""",
    )
    mt.extend.register_container(Track)(lambda track: [1.0])  # type: ignore[arg-type, return-value]  # the mistake
    refused(
        TypeError,
        lambda: mt.masked_tensor(Track()),
        """the reader of Track must return (values, valid), got [1.0]""",
    )


def test_kernels() -> None:
    refused(
        ValueError,
        lambda: mt.extend.register_kernel("softmin", "cpu", lambda *_: (ones(2), ())),
        """no rule asks for a kernel named 'softmin': explain(op, *inputs) names those that an op asks for; the name of a kernel for a rule of your own has a namespace, 'library::name'""",
    )
    refused(
        TypeError,
        lambda: mt.explain(torch.nn.Flatten, ones(2)),
        """<class 'torch.nn.modules.flatten.Flatten'> cannot be called on inputs: give the function or the module itself""",
    )


def test_counts_of_what_new_ones_made() -> None:
    x = mt.masked_tensor([[1.0], [None]])
    with mt.strict():
        refused(
            mt.MaskedSizeError,
            lambda: x.new_ones(2).sum(),
            """sum would count masked entries: new_ones() and new_full() of a masked tensor are valid everywhere. Use torch.ones_like(x), which keeps the mask, or x.count(); a masked index skips its entry""",
        )


class FailingStream:
    """A column whose file is cut off."""

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        raise OSError("the file ends here")


def test_arrow_without_a_library(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (accepted_inputs, library):
        monkeypatch.setattr(module, "library", lambda: None)
    refused(
        ImportError,
        lambda: mt.to_arrow(ones(2)).__arrow_c_stream__(),
        """Arrow is written by nanoarrow, or by pyarrow: pip install nanoarrow""",
    )
    refused(
        ImportError,
        lambda: mt.masked_tensor(FailingStream()),
        """FailingStream is read by nanoarrow, or by pyarrow: pip install nanoarrow""",
    )


def test_batches() -> None:
    x, rows = mt.masked_tensor([[1.0, None, 3.0]]), [ones(2, 3), ones(2, 4)]
    refused(
        TypeError,
        lambda: mt.from_sequences(rows, dim=(1, 2)),
        """from_sequences pads along one dimension, got dim=(1, 2); masked_tensor(sequences) pads along all that differ""",
    )
    assert mt.masked_tensor([ones(1, 2, 2), ones(1, 1, 3)]).count((1, 2, 3)).tolist() == [4, 3]
    refused(
        ValueError,
        lambda: mt.from_sequences(rows, dim=1),
        """from_sequences: sequences may differ along dimension 0 alone, got shapes [(2, 3), (2, 4)]; if time is their dimension 1, give dim=2""",
    )
    refused(
        ValueError,
        lambda: mt.from_sequences([ones(2), ones(2, 2)]),
        """from_sequences: sequences may differ along dimension 0 alone, got shapes [(2,), (2, 2)]""",
    )
    refused(
        ValueError,
        lambda: mt.from_sequences([1, 2]),
        """from_sequences: each sequence needs a time dimension, got shapes [(), ()]; single numbers form one tensor: masked_tensor(numbers)""",
    )
    refused(
        ValueError,
        lambda: mt.masked_tensor([ones(2), ones(2, 2)]),
        """sequences must have the same number of dimensions, got shapes [(2,), (2, 2)]""",
    )
    refused(
        ValueError,
        lambda: mt.from_sequences([ones(2)], padding_side="top"),
        """padding_side is where the padding goes, 'right' or 'left', got 'top'""",
    )
    refused(
        ValueError,
        lambda: mt.from_sequences(rows, batch_first=False, dim=2),
        """dim says where the time lies in a batch that is batch first; leave out batch_first=False""",
    )
    refused(
        ValueError,
        lambda: mt.from_lengths(ones(2, 3), [1, 2], dim=0),
        """dim=0 is the batch; the time lies in a later dimension""",
    )
    refused(
        ValueError,
        x.unpad,
        """unpad() cannot read the lengths from the mask: a step before the end of a sequence is masked, or only part of a step. Pass the lengths: x.packed(lengths=[...]), from_sequences(packed=True); or fill the gaps first (ffill, x.filled(value)). [row.compressed() for row in x] keeps the valid entries alone""",
    )
    refused(
        ValueError,
        mt.masked_tensor([1.0]).lengths,
        """lengths() needs a strided batch of sequences (B, T, ...), got shape (1,)""",
    )
    refused(
        ValueError,
        lambda: mt.collate([{"a": {"b": ones(2, 3)}}, {"a": {"b": ones(3, 4)}}], dim=0),
        """key 'a' of the samples: key 'b' of the samples: collate: sequences may differ along dimension 0 alone, got shapes [(2, 3), (3, 4)]""",
    )
    refused(
        TypeError,
        lambda: mt.collate([{"a": ones(2)}, {"a": object()}]),
        """key 'a' of the samples: data must be a tensor, number, list, array or table of numbers, got object: Could not infer dtype of object""",
    )
    refused(ValueError, lambda: mt.collate([]), """collate needs at least one sample""")
    refused(
        ValueError,
        lambda: mt.collate([{"a": 1}, {"b": 1}]),
        """collate: every sample must have the keys ['a'] of the first""",
    )
    refused(
        ValueError,
        lambda: mt.from_attention_mask({"input_ids": ones(2, 3)}),
        """inputs have no attention_mask; call the tokenizer with return_attention_mask=True""",
    )
    refused(
        TypeError,
        lambda: mt.from_attention_mask(ones(2, 3)),
        """from_attention_mask needs inputs and attention_mask, or one dict that holds both""",
    )
    refused(
        ValueError,
        lambda: mt.from_attention_mask(ones(2, 3), ones(2, 4).int()),
        """attention_mask must have the batch and time of inputs (2, 3) (time at dim=1), got (2, 4)""",
    )
    refused(
        TypeError,
        lambda: mt.from_attention_mask(ones(2, 3), ones(2, 4)),
        """attention_mask must be a bool tensor, got float32; use attention_mask != 0 for zeros and ones, attention_mask == 0 for an additive mask of 0 and -inf""",
    )


def test_inverted_masks() -> None:
    refused(
        ValueError,
        lambda: mt.masked_tensor([1.0, None], [False, True]),
        """mask is inverted: it is True exactly where data (a list) is missing; use ~mask""",
    )
    with pytest.warns(UserWarning, match="attention_mask") as seen:
        mt.from_attention_mask(ones(2, 3), ones(2, 3) < 1)
    assert_expected_inline(
        str(seen[0].message),
        """attention_mask has rows without a valid step; 1 and True mean valid. If yours is True at padding, as src_key_padding_mask is, pass ~mask""",
    )


def test_arguments_of_another_kind() -> None:
    x: Any = mt.masked_tensor([[1.0, None], [3.0, 4.0]])
    wrong: Any = 1.5
    named: Any = mt.std
    refused(TypeError, lambda: named(x, ddof=1), """std() got an unexpected keyword argument 'ddof'; use correction=""")
    refused(TypeError, lambda: mt.cat([x], dim=wrong), """dim must be an int, got float""")
    refused(
        IndexError,
        lambda: mt.cat([x], dim=5),
        """Dimension out of range (expected to be in range of [-2, 1], but got 5)""",
    )
    refused(IndexError, lambda: shapes.canonical_dim(0, 0), """dim 0 of a tensor without dimensions""")
    refused(
        ValueError, lambda: mt.LastValid(1, limit=2**70), """limit must fit into 64 bits, got 1180591620717411303424"""
    )
    refused(
        TypeError,
        lambda: mt.RunningStatistics.merge_all([wrong]),
        """merge_all() expects a list of RunningStatistics, got one with float""",
    )
    refused(
        TypeError,
        lambda: mt.save_file({"x": wrong}, "no"),
        """save_file() expects a dict of tensors, got float for 'x'""",
    )
    refused(
        TypeError,
        lambda: mt.testing.check_padding_invariance(wrong, ones(1, 2), [1]),
        """check_padding_invariance() expects a module or a function, got float""",
    )
    stats = mt.RunningStatistics(2, sketch=True).update(x)
    refused(
        ValueError,
        lambda: stats.quantile(ones(2, 3)),
        """q must be a number or a list of them, got a tensor of shape (2, 3)""",
    )
    pytest.importorskip("matplotlib")
    refused(
        TypeError, lambda: mt.plot.missing(x, ax=wrong), """ax must be the axes of a picture of matplotlib, got float"""
    )
    refused(
        TypeError,
        lambda: mt.plot.distributions(x, axes=wrong),
        """axes must be a list of axes of matplotlib, got float""",
    )
    refused(
        TypeError,
        lambda: mt.total(ones(()), weights=wrong),
        """total(): argument 'weights' must be a list of float or a tensor or None, got float 1.5""",
    )


def test_series() -> None:
    x = mt.masked_tensor([1.0, None])
    refused(ValueError, lambda: mt.ffill(x, limit=0), """ffill: limit must be 1 or more, got 0""")
    refused(
        ValueError, lambda: mt.bfill(mt.masked_tensor(1.0)), """bfill needs a dimension to go along, got a 0-d tensor"""
    )
    refused(
        ValueError,
        lambda: mt.ffill(ones(2, 3)),
        """ffill: say which dimension of shape (2, 3) is time: dim=1 for (batch, time, ...), dim=0 for (time, ...)""",
    )
    batch = mt.masked_tensor([[1.0, None], [2.0, 3.0]])
    refused(
        ValueError,
        lambda: mt.ffill(batch, 1),
        """ffill cannot tell a missing step from padding, which must not be filled: shape (2, 2), time at dim=1. Pass lengths=[...], the number of steps of each sequence, or lengths='full' if there is no padding; a batch packed with its lengths knows them: from_sequences(..., packed=True), x.packed(lengths=[...])""",
    )
    refused(
        ValueError,
        lambda: mt.ffill(batch, 1, lengths="all"),
        """ffill: lengths must be integers or 'full', got 'all'""",
    )
    refused(
        TypeError,
        lambda: mt.ffill(batch, 1, lengths=[1.0, 2.0]),
        """ffill: lengths must be integers or 'full', got float32""",
    )
    refused(
        ValueError,
        lambda: mt.ffill(batch, 1, lengths=[1]),
        """ffill: lengths needs one length per sequence of a batch (batch, time, ...): the shape is (2, 2) with time at dim=1, and lengths has shape (1,)""",
    )
    refused(
        ValueError,
        lambda: mt.ffill(batch, 1, lengths=[1, 3]),
        """ffill: lengths must lie between 0 and 2, got 1 to 3""",
    )
    refused(
        ValueError,
        lambda: mt.ffill(batch, 1, lengths=[1, 1]),
        """ffill: there are valid entries past the end of a sequence, as lengths say it; is padding_side='right' right?""",
    )
    refused(
        ValueError,
        lambda: mt.rolling(batch, 2, 1, step=2, lengths=[2, 2], padding_side="left"),
        """rolling: step counts from the begin of a sequence: give a batch that is padded on the right""",
    )
    refused(
        ValueError,
        lambda: mt.interpolate(x, method="cubic"),
        """method must be one of ('linear', 'nearest'), got 'cubic'""",
    )
    refused(
        ValueError,
        lambda: mt.interpolate(x, index=ones(3)),
        """interpolate: index must have one place per entry along dim, (2,), got (3,)""",
    )
    refused(
        ValueError,
        lambda: mt.interpolate(x, index=torch.tensor([3, 1])),
        """interpolate: index must be finite and rise from each entry to the next, got [3, 1] at 0; sort it with the series along dim (index.argsort()), one entry for each time""",
    )
    refused(
        ValueError,
        lambda: mt.rolling(batch, 2, 1, index=torch.tensor([[0, 1], [3, 1]]), lengths=[2, 2]),
        """rolling: index must be finite and not fall from each entry to the next, got [3, 1] at 0 of sequence 1; sort it with the series along dim (index.argsort())""",
    )
    refused(
        TypeError,
        lambda: mt.rolling(x, 2) + 1,
        """the windows of rolling() are not a tensor: call .mean(), .sum(), .min(), .max(), .var(), .std(), .median(), .quantile(q) or .count()""",
    )
    refused(
        AttributeError,
        lambda: mt.rolling(x, 2).apply,
        """the windows of rolling() have no attribute 'apply': call .mean(), .sum(), .min(), .max(), .var(), .std(), .median(), .quantile(q) or .count(); for another function take the entries of each window, which lie along the last dimension of .windows, as .windows.prod(-1)""",
    )
    refused(
        TypeError,
        lambda: mt.rolling(x, 2, index=["a", "b"]),
        """rolling: index must be a tensor or an array of numbers, got list; of dates give (dates - dates.min()).total_seconds(), of a column .dt.total_seconds()""",
    )
    refused(
        TypeError,
        lambda: mt.rolling(x, 2, index=ones(2).cfloat()),
        """rolling: index must hold real numbers, got torch.complex64""",
    )
    refused(
        ValueError,
        lambda: mt.rolling(x, 2, index=mt.masked_tensor([0, None])),
        """rolling: index is masked at step 1, which exists; say how many steps each sequence has (lengths=), leave out steps whose time is missing, or give it one by index.filled(value)""",
    )
    refused(
        ValueError,
        lambda: mt.interpolate(batch, 1, index=mt.masked_tensor([[0, 1], [0, None]]), lengths=[2, 2]),
        """interpolate: index is masked at step 1 of sequence 1, which exists; say how many steps each sequence has (lengths=), leave out steps whose time is missing, or give it one by index.filled(value)""",
    )
    refused(
        ValueError,
        lambda: mt.rolling(x, 0, index=torch.arange(2)),
        """rolling: with index, window is a length of time above 0, step at least 1, and min_periods at least 0; got window=0""",
    )
    refused(
        RuntimeError,
        lambda: mt.interpolate(mt.masked_tensor([1, None])),
        """interpolate(): input dtype must be floating point or complex, got torch.int64""",
    )
    refused(
        ValueError,
        lambda: mt.rolling(x, 0),
        """rolling needs a window of at least 1, a step of at least 1, and min_periods from 0 to the window; got window=0""",
    )
    refused(
        ValueError,
        lambda: mt.rolling(x, 2, min_periods=3),
        """rolling needs a window of at least 1, a step of at least 1, and min_periods from 0 to the window; got window=2, min_periods=3""",
    )
    refused(
        ValueError,
        lambda: mt.rolling(x, 2, closed="up"),
        """rolling: closed must be one of ('right', 'left', 'both', 'neither'), got 'up'""",
    )
    refused(
        ValueError,
        lambda: mt.average(x, weights=ones(3)),
        """weights must broadcast to input's shape (2,), or have one entry per position along dim, got (3,)""",
    )
    refused(
        TypeError,
        lambda: mt.interpolate(mt.masked_tensor([1.0, None]), max_gap=1.5),
        """interpolate: max_gap must be an int, got float""",
    )  # type: ignore[arg-type]


def test_pictures(monkeypatch: pytest.MonkeyPatch) -> None:
    x = mt.masked_tensor([[1.0]])
    refused(
        ValueError,
        lambda: mt.plot.missing(x[0]),
        """missing() draws tables and batches, got a tensor of shape (1,); use x[None]""",
    )
    refused(
        ValueError,
        lambda: mt.plot.missing(x, sort="up"),
        """sort must be 'ascending', 'descending' or None, got 'up'""",
    )
    refused(
        ValueError,
        lambda: mt.plot.distributions(x[0]),
        """distributions() draws columns, got a tensor of shape (1,); use x[:, None]""",
    )
    refused(
        ValueError,
        lambda: mt.plot.distributions(x, ["age", "weight"]),
        """distributions() needs one of names for each column: 1, got 2""",
    )
    refused(
        TypeError,
        lambda: mt.plot.distributions(x.to(torch.complex64)),
        """distributions() draws real numbers, got complex ones; use x.real or x.abs()""",
    )
    refused(
        TypeError,
        lambda: mt.plot.distributions(x.filled(0)),
        """distributions() expects a masked tensor, got Tensor""",
    )
    refused(AttributeError, lambda: mt.plots, """module 'masked_tensor' has no attribute 'plots'""")
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    refused(
        ImportError,
        lambda: mt.plot.missing(x),
        """plot.missing() needs matplotlib: pip install matplotlib""",
    )
    refused(
        ImportError,
        lambda: mt.plot.distributions(x),
        """plot.distributions() needs matplotlib: pip install matplotlib""",
    )


def test_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("safetensors")
    x, path = mt.masked_tensor([1.0, None]), tmp_path / "file"
    refused(
        ValueError,
        lambda: mt.save_file({"x": mt.as_masked_tensor(ones(2).to_sparse())}, path),
        """safetensors has no sparse tensors: save 'x' as x.to_dense()""",
    )
    refused(
        ValueError,
        lambda: mt.save_file({"x": x, "x.mask": ones(1)}, path),
        """the mask of 'x' would be 'x.mask', which is another tensor's name""",
    )
    from safetensors.torch import save_file

    for text in ("{bad", "[]", '{"x": "y"}', '{"x": 1}'):
        save_file({"x": ones(1)}, path, {"masked_tensor": text})
        assert f"of {path} do not name its masks, got {text!r}: the file is damaged" in message(
            ValueError, lambda: mt.load_file(path)
        )
    save_file({"x": ones(1)}, path, {"masked_tensor.crc32": "{}"})
    monkeypatch.chdir(tmp_path)
    refused(
        ValueError,
        lambda: mt.load_file("file"),
        """file is damaged: its tensors are not those of its checksums; save it again""",
    )
    save_file({"x": ones(1)}, path, {"masked_tensor": "{"})
    refused(
        ValueError,
        lambda: mt.load_file("file"),
        """the metadata 'masked_tensor' of file do not name its masks, got '{': the file is damaged""",
    )
    monkeypatch.setitem(sys.modules, "safetensors", None)
    refused(
        ImportError,
        lambda: mt.load_file(path),
        """save_file() and load_file() need safetensors: pip install safetensors""",
    )


def test_lengths() -> None:
    refused(
        ValueError,
        lambda: mt.from_lengths([3, 1], ones(2, 3)),
        """from_lengths(padded, lengths): the padded batch comes first, then the length of each sequence""",
    )
    refused(
        ValueError,
        lambda: mt.from_lengths(ones(2, 3), [1, 2, 3]),
        """from_lengths needs one length per sequence: padded has shape (2, 3) (batch, time, ...), lengths has shape (3,)""",
    )
    refused(
        ValueError,
        lambda: mt.from_lengths(ones(2, 3), [1, 4]),
        """from_lengths: lengths must lie between 0 and 3, got 1 to 4""",
    )
    refused(
        ValueError,
        lambda: mt.from_lengths(ones(2, 3, 8, 9), [7, 9]),
        """from_lengths: lengths must lie between 0 and 3, got 7 to 9; if time is dimension 3 of the shape (2, 3, 8, 9), give dim=3""",
    )
    refused(ValueError, lambda: mt.lengths_to_mask([4], 3), """lengths must lie between 0 and 3, got 4 to 4""")
    refused(TypeError, lambda: mt.lengths_to_mask(ones(2)), """lengths must be integers, got float32""")
    refused(ValueError, lambda: mt.cat([]), """cat needs at least one tensor""")
    refused(ValueError, lambda: mt.join(), """join needs at least one batch""")


def test_joins_and_documents() -> None:
    x, y = mt.masked_tensor([[1.0, None, 2.0]]), mt.masked_tensor([[1.0, 2.0]])
    refused(
        ValueError,
        lambda: mt.cat([ones(2), ones(2, 2)]),
        """cat: tensors must have the same number of dimensions, 1 or more, got shapes [(2,), (2, 2)]""",
    )
    refused(
        TypeError,
        lambda: mt.join([1.0]),
        """join() expects masked tensors, got list; use from_sequences(sequences)""",
    )
    refused(
        ValueError,
        lambda: mt.join(y, dim=0),
        """join: dim=0 is the batch; the time lies in a later dimension""",
    )
    refused(
        ValueError,
        lambda: mt.join(y, ones(2, 2)),
        """join: batches may differ along dimension 1 alone, got shapes [(1, 2), (2, 2)]""",
    )
    refused(
        ValueError,
        lambda: mt.join(x),
        """join() cannot read the lengths from the mask: a step before the end of a sequence is masked, or only part of a step. Pass the lengths: x.packed(lengths=[...]), from_sequences(packed=True); or fill the gaps first (ffill, x.filled(value)). [row.compressed() for row in x] keeps the valid entries alone""",
    )
    refused(
        ValueError,
        lambda: mt.from_documents(y),
        """from_documents needs either segment_ids or position_ids""",
    )
    refused(
        ValueError,
        lambda: mt.from_documents(y, [[1]]),
        """from_documents needs one id for each step: rows have shape (1, 2), the ids (1, 1)""",
    )
    refused(
        TypeError,
        lambda: mt.document_mask([0.5]),
        """document_mask: ids must be integers, got float32""",
    )
    refused(
        ValueError,
        lambda: mt.document_mask(ones(1, 1, 1).long()),
        """document_mask: ids must have shape (B, L), or (L,) of one row, got (1, 1, 1)""",
    )
    refused(
        ValueError,
        lambda: mt.from_sequences([ones(3)], length=2),
        """from_sequences: a sequence of 3 steps does not fit length=2; cut it first (sequence[:2])""",
    )
    refused(
        ValueError,
        lambda: mt.collate([ones(3)], length=4, pad_to_multiple_of=4),
        """collate: give length= or pad_to_multiple_of=, not both""",
    )
    refused(
        TypeError,
        lambda: mt.from_sequences([ones(3)], length=2.5),
        """from_sequences: length must be an int, got float""",
    )
    refused(
        ValueError,
        lambda: mt.from_sequences([ones(3)], pad_to_multiple_of=0),
        """from_sequences: pad_to_multiple_of must be 1 or more, got 0""",
    )
    refused(
        RuntimeError,
        lambda: mt.masked_tensor([[1.0], [None]]).to_packed_sequence(),
        """a PackedSequence holds no sequence of length 0, which is that of [1] here; leave them out: x[x.lengths() > 0]""",
    )
    refused(
        TypeError,
        lambda: mt.shift(y, 1.5, 0),
        """shift: periods must be an int, got float""",
    )
    refused(
        RuntimeError,
        lambda: torch.cat([y, x]),
        """Sizes of tensors must match except in dimension 0. Expected size 2 but got size 3 for tensor number 1 in the list.; masked_tensor.cat(tensors, dim=0) pads to the longest, and masks the padding""",
    )
    refused(
        mt.UnsupportedOpError,
        lambda: refuse(),
        """flex_attention does not support masked tensors; use torch.nn.functional.scaled_dot_product_attention(query, key, value), which hides masked keys. For documents in one row, make a batch with from_documents(rows, position_ids=...). For plain tensors, pass a block mask: create_block_mask(lambda b, h, i, j: valid[b, j], ...)""",
    )


def test_values_of_masked_entries() -> None:
    unknown = mt.masked_tensor(1.0, False)
    refused(
        mt.MaskedValueError,
        unknown.item,
        """item(): the value is masked; use x.filled(value) to choose one, as in loss.filled(0).item() for a batch without labels""",
    )
    refused(
        mt.MaskedValueError,
        lambda: bool(unknown),
        """bool(): the value is masked; use x.filled(value) to choose one""",
    )
    refused(
        mt.MaskedValueError,
        lambda: float(unknown),
        """float(): the value is masked; use x.filled(value) to choose one""",
    )


class Zeroed(torch.autograd.Function):
    """Writes its argument."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        ctx.mark_dirty(x)
        return x.zero_()


def test_functions_that_write_views() -> None:
    x = mt.masked_tensor([1.0, None], requires_grad=True) * 1
    refused(
        RuntimeError,
        lambda: Zeroed.apply(x[:1]),
        """the gradient of Zeroed, a torch.autograd.Function, would be wrong, because it writes in place into a view of a masked tensor, or into what was wrapped. Pass it the base, take the view again, or work on a clone""",
    )
    assert x.tolist() == [1.0, None]


@pytest.mark.filterwarnings("ignore:.*quantize")  # torch gives them up
def test_data_of_other_kinds() -> None:
    quantized = torch.quantize_per_tensor(ones(2), 0.1, 0, torch.quint8)
    for use in (mt.masked_tensor, mt.as_masked_tensor, lambda x, mask: mt.sum(x, mask=mask)):
        refused(
            TypeError,
            lambda use=use: use(ones(2).to_mkldnn(), torch.tensor([True, False])),
            """masked tensors have no layout torch._mkldnn; give x.to_dense()""",
        )
    for make in (mt.masked_tensor, mt.as_masked_tensor):
        refused(
            TypeError,
            lambda make=make: make(quantized, [True, False]),
            """quantized data (torch.quint8) cannot be masked; use data.dequantize()""",
        )
    refused(
        RuntimeError,
        lambda: mt.masked_tensor([1.0, None]) + ones(2, device="meta"),
        """aten::add.Tensor needs all tensors on one device, got cpu and meta; use x.to(device)""",
    )
    jagged = torch.nested.nested_tensor([ones(2), ones(3)], layout=torch.jagged)
    refused(
        mt.UnsupportedOpError,
        lambda: mt.masked_tensor(ones(2, 3), True) * jagged,
        """a masked tensor lies inside another tensor subclass (such as a DTensor or a nested tensor), whose gradient would ignore the mask (aten::mul.Tensor). Put the masked tensor outside: as_masked_tensor(outer_data, outer_mask), masked_tensor(nested); or work under torch.no_grad()""",
    )
    assert (mt.masked_tensor(ones(2, 3), True) * mt.masked_tensor(jagged)).tolist() == [[1, 1, None], [1, 1, 1]]
    assert mt.masked_tensor([[], None]).shape == (2, 0)
    assert mt.masked_tensor([None, [1.0]]).tolist() == [[None], [1.0]]


def test_assigning_a_mask() -> None:
    x = masked(2)
    refused(
        AttributeError,
        lambda: setattr(x, "mask", ones(2).bool()),
        """x.mask cannot be assigned; as_masked_tensor(x, mask) masks more entries, x[key] = None masks some in place, and x[key] = value makes entries valid""",
    )
    assert x.mask.tolist() == [False, True]


class Named(torch.Tensor):
    """A subclass as users write them, which takes every result for its own."""


def test_means_by_an_index_out_of_bounds() -> None:
    x, src = mt.masked_tensor([1.0, None]), mt.masked_tensor([1.0, 2.0])
    refused(
        RuntimeError,
        lambda: x.scatter_reduce(0, torch.tensor([0, 7]), src, "mean", include_self=False),
        """an index is out of bounds for dimension 0 with size 2""",
    )


def test_a_second_derivative_by_an_intermediate() -> None:
    x = mt.masked_tensor([1.0, None, 2.0]).requires_grad_()
    h = (x * 1).exp()
    (first,) = torch.autograd.grad((h * h).sum(), x, create_graph=True)
    refused(
        RuntimeError,
        lambda: torch.autograd.grad((first * first).sum(), h),
        """the second derivative with respect to an intermediate masked tensor would be incomplete: ExpBackward0 keeps that tensor (create_graph=True). Ask for the gradient of a leaf, or use torch.func.grad twice""",
    )


def test_arguments_that_do_not_fit() -> None:
    refused(
        RuntimeError,
        lambda: torch.bincount(masked(2, 2, dtype=torch.int64)),
        """bincount only supports 1-d non-negative integral inputs.""",
    )
    refused(
        RuntimeError,
        lambda: torch.searchsorted(masked(3), ones(1), sorter=torch.arange(2)),
        """sorter must have shape (3,), got (2,)""",
    )
    ids = torch.zeros(1, 2, dtype=torch.int64)
    refused(
        RuntimeError,
        lambda: F.embedding_bag(ids, masked(4, 2), padding_idx=-6),
        """padding_idx must be from -4 to 3, got -6""",
    )


def test_loops_over_lists() -> None:
    ones_ = [ones(2)]
    refused(
        errors.UnsupportedOpError,
        lambda: torch._foreach_addcmul([masked(2)], ones_, ones_, mt.masked_tensor([None])),
        """scalars of aten::_foreach_addcmul.ScalarList must not be masked; use scalars.filled(value)""",
    )
    refused(
        RuntimeError,
        lambda: torch._foreach_minimum_([masked(2, dtype=torch.int64)], 1.5),
        """result type torch.float32 can't be cast to the desired output type torch.int64""",
    )
    refused(
        RuntimeError,
        lambda: torch.sum(masked(2, 2), 0, dtype=torch.float64, out=masked(2)),
        """Expected out tensor to have dtype torch.float64, but got torch.float32 instead""",
    )


def test_words_where_a_number_belongs() -> None:
    x = mt.masked_tensor([1.0, None])
    refused(
        TypeError,
        lambda: mt.rolling(x, "6h"),
        """rolling(x, '6h'): a window counts entries; for windows of time give index=, the time of each entry, and the window in its unit""",
    )
    refused(
        TypeError,
        lambda: x.filled("mean"),
        """filled('mean'): the value must be a number or a plain tensor, as in x.filled(0); for the mean of each column write torch.where(x.mask, x, x.mean(0))""",
    )
    refused(
        TypeError,
        lambda: x.filled(None),
        """filled(None): the value must be a number or a plain tensor, as in x.filled(0); for the mean of each column write torch.where(x.mask, x, x.mean(0))""",
    )


def test_names_of_columns() -> None:
    x = mt.masked_tensor([[1.0, None]])
    refused(
        TypeError,
        lambda: x.__setitem__("a", 1.0),
        """a masked tensor has no column names, got x['a']; write x[:, names.index('a')] = value""",
    )


def test_functions_of_numpy() -> None:
    refused(
        TypeError,
        lambda: np.mean(mt.masked_tensor([1.0, None])),
        """numpy.mean() does not take a masked tensor; use x.mean() or x.to_numpy_ma()""",
    )


def test_the_scaler_of_scikit_learn() -> None:
    pytest.importorskip("sklearn")
    frame = pytest.importorskip("pandas").DataFrame({"a": [1.0], "b": [2.0]})
    scaler = import_module("masked_tensor.sklearn").MaskedStandardScaler().fit(frame)
    refused(
        ValueError,
        lambda: scaler.transform(frame.rename(columns={"a": "z"})),
        """the columns are ['z', 'b'], and were ['a', 'b'] when the scaler was fitted""",
    )
    refused(
        ValueError,
        lambda: scaler.inverse_transform(1.0),
        """inverse_transform() expects what transform() returned, (N, 2), got float""",
    )
    refused(ValueError, lambda: scaler.fit([1.0]), """a table has rows and columns, got the shape (1,)""")
    scaler.fit([[1.0, 2.0]])
    refused(
        ValueError,
        lambda: scaler.transform([[1.0]]),
        """the table has 1 columns, and had 2 when it was fitted""",
    )
    refused(
        ValueError,
        lambda: scaler.fit(frame, sample_weight=[1.0, 2.0]),
        """sample_weight has one number for each of 1 rows, got the shape (2,)""",
    )


def test_frames_of_masked_tensors() -> None:
    pandas = pytest.importorskip("pandas")
    refused(
        mt.MaskedValueError,
        lambda: pandas.DataFrame(mt.masked_tensor([1.0, None])),
        """conversion to a numpy array would drop the mask; use x.filled(value), such as float('nan'), masked_tensor.select_valid(x, y) for a metric, masked_tensor.sklearn for a scaler, pyarrow.array(x), or x.tolist(), which a DataFrame of pandas or polars takes""",
    )


@pytest.mark.filterwarnings("ignore:The PyTorch API of MaskedTensors")
def test_leaving_with_masked_entries() -> None:
    x = mt.masked_tensor([1.0, 2.0], [True, False])
    refused(
        mt.MaskedValueError,
        x.numpy,
        """numpy() would drop the mask; use x.filled(value).numpy(), x.to_numpy_ma(), pyarrow.array(x), or x.tolist(), which a DataFrame of pandas or polars takes""",
    )
    refused(
        mt.MaskedValueError,
        lambda: np.asarray(x),
        """conversion to a numpy array would drop the mask; use x.filled(value), such as float('nan'), masked_tensor.select_valid(x, y) for a metric, masked_tensor.sklearn for a scaler, pyarrow.array(x), or x.tolist(), which a DataFrame of pandas or polars takes""",
    )
    refused(
        mt.MaskedValueError,
        lambda: torch.from_dlpack(x),
        """DLPack export would drop the mask; use x.filled(value) or x.compressed()""",
    )
    refused(
        mt.UnsupportedOpError,
        lambda: x.apply_(abs),
        """apply_() would ignore the mask, so it is not available on a masked tensor; write the function with torch ops, or apply it to x.compressed()""",
    )
    refused(
        mt.UnsupportedOpError,
        lambda: torch.zeros(2).set_(x),
        """set_() would ignore the mask, so it is not available on a masked tensor; copy what x.filled(value) or x.get_data() gives""",
    )
    refused(
        AttributeError,
        lambda: x.__cuda_array_interface__,
        """__cuda_array_interface__ ignores the mask: use that of x.filled(value) or x.get_data()""",
    )
    refused(
        mt.UnsupportedOpError,
        lambda: torch.masked.MaskedTensor(ones(2), ones(2) > 0) * x,
        """a tensor of torch.masked cannot be used with a masked tensor of this package; use masked_tensor(theirs)""",
    )
    refused(
        mt.UnsupportedOpError,
        lambda: ones(2).as_subclass(Named) * x,
        """as_subclass(Named) would drop the mask: use x.filled(value).as_subclass or x.get_data(); give an op of a masked tensor and a Named y the plain tensor y.as_subclass(torch.Tensor)""",
    )
    refused(
        RuntimeError,
        lambda: ones(2).as_subclass(mt.MaskedTensor) + 1,
        """this MaskedTensor has no data and no mask, since plain.as_subclass(MaskedTensor) only changes the class; use as_masked_tensor(plain, mask)""",
    )
    refused(TypeError, lambda: mt.filled([1.0], 0), """filled() expects a masked tensor, got list""")
    refused(
        TypeError,
        lambda: x.filled(x),
        """filled() needs a plain value, got a masked tensor; use torch.where(x.mask, x, value), which is masked where both are, or x.filled(value.filled(0))""",
    )
    refused(
        TypeError,
        lambda: x.filled(ones(3).cfloat()),
        """filled() needs a value that fits float32 (2,), got complex64 (3,)""",
    )


def test_ops_without_a_masked_meaning() -> None:
    image = mt.masked_tensor(ones(1, 1, 2, 2), [True, False])
    refused(
        mt.UnsupportedOpError,
        lambda: F.interpolate(image, scale_factor=2, mode="bilinear", align_corners=True, antialias=True),
        """interpolate(scale_factor=, align_corners=True, antialias=True) of a padded batch takes values from places that depend on the padded size; give align_corners=False, or resample each row alone (x.unpad())""",
    )
    x = mt.masked_tensor(ones(2, 2), [True, False])
    refused(
        mt.UnsupportedOpError,
        lambda: torch.hash_tensor(x),
        """aten::hash_tensor is not supported for masked tensors (masked: self). Call it on x.filled(value) or x.compressed(), or define what it does with @masked_tensor.extend.register_rule('aten::hash_tensor')""",
    )
    refused(
        ValueError,
        lambda: mt.to_left(x[0]),
        """to_left turns the rows of a batch along a dimension of its own: x has shape (2,), dim is 1; give a batch (B, T, ...), x.unsqueeze(0) for a single row""",
    )


def test_masked_into_plain() -> None:
    target, x = torch.zeros(2), mt.masked_tensor([1.0, 2.0], [True, False])
    refused(
        mt.MaskedWriteError,
        lambda: target.add_(x),
        """cannot write a masked tensor into a plain tensor, which has no mask (aten::add_.Tensor). Write x.filled(value), or make the target masked first: as_masked_tensor(target, True). If a library makes the target, call it inside masked_factories()""",
    )
    for write in (lambda: target.add_(x), lambda: target.copy_(x), lambda: torch.add(x, 1, out=target)):
        assert "cannot write a masked tensor into a plain tensor" in message(mt.MaskedWriteError, write)
    assert target.tolist() == [0.0, 0.0]


def test_transforms_of_another_torch() -> None:
    text = """torch 2.16.0 lacks torch._functorch.vmap._add_batch_dim, which torch.func over masked tensors builds on: do not use its transforms with them; this version of masked_tensor is made for torch 2.11 to 2.15"""
    assert errors.transforms_lack(["torch._functorch.vmap._add_batch_dim"]) == text.replace("2.16.0", torch.__version__)


def test_transforms(monkeypatch: pytest.MonkeyPatch) -> None:
    mask = torch.tensor([True, False])
    x = mt.masked_tensor([1.0, 2.0], mask)
    refused(
        RuntimeError,
        lambda: torch.func.linearize(lambda v: v * 2, x),
        """forward-mode AD of a masked tensor cannot be traced (linearize, make_fx, torch.compile). Use torch.func.jvp, or let the function accept and return plain tensors: x.filled(0)""",
    )
    refused(
        RuntimeError,
        lambda: torch.func.grad(lambda w: (x.mul_(w)).filled(0).sum())(torch.ones(())),
        """aten::mul_.Tensor writes in place into a masked tensor from outside the torch.func transform; use the op that returns a new tensor""",
    )
    refused(
        RuntimeError,
        lambda: torch.func.grad(lambda v: Double.apply(v).filled(0).sum())(x),
        """Double, a torch.autograd.Function, does not support masked tensors inside a torch.func transform. Write it with torch's own ops, or pass it plain tensors: x.filled(0)""",
    )
    torch.func.grad(lambda v: v.sum())(x)  # what is defined after is not known above torch.func
    library = torch.library.Library("errors_late", "FRAGMENT")
    library.define("twice(Tensor x) -> Tensor")
    library.impl("twice", lambda v: v * 2, "CompositeImplicitAutograd")
    refused(
        RuntimeError,
        lambda: torch.func.grad(lambda v: torch.ops.errors_late.twice(v).filled(0).sum())(x),
        """a torch.func transform would ignore the mask in the derivative of another library's operator. Give the operator a rule (register_rule), or pass it plain tensors: x.filled(0)""",
    )
    index = torch.tensor([0, 1, 1])
    for product in (
        lambda v: v.scatter_reduce(0, index, ones(3), "prod"),
        lambda v: v.index_reduce(0, index, ones(3), "prod"),
        lambda v: mt.masked_tensor([1.0, 2.0, None]).scatter_reduce(0, index, v, "prod"),
    ):
        refused(
            RuntimeError,
            lambda product=product: torch.func.jvp(product, (mt.masked_tensor([2.0, 3.0, None]),), (ones(3),)),
            """a product by scatter_reduce or index_reduce has no derivative in forward mode: torch's own is 0 whatever the input; use reverse mode (grad, vjp, jacrev)""",
        )
    with monkeypatch.context() as context:
        context.setattr(torch.compiler, "is_exporting", lambda: True)
        refused(
            RuntimeError,
            lambda: mt.as_masked_tensor(ones(2), mask),
            """torch.export cannot trace a masked tensor. Export a program of plain tensors and the functional forms, such as masked_tensor.sum(input, mask=mask), or use torch.compile""",
        )
    compiled = torch.compile(lambda v: torch.func.vmap(lambda row: mt.filled(row, 0))(v), backend="eager")
    text = """filled() cannot see through a torch.func transform; pass it plain tensors and use the functional forms, such as masked_tensor.sum(input, mask=mask)"""
    if torch.__version__ < "2.14":  # which stops earlier
        assert text in message(Exception, lambda: compiled(x))
    compiled = torch.compile(lambda v: torch.func.grad(lambda v: v.mean())(v), backend="eager")
    text = """inside torch.compile, a torch.func transform cannot differentiate a masked tensor; call the transform outside the compiled function, or pass it plain tensors and use the functional forms, such as masked_tensor.sum(input, mask=mask)"""
    assert text in message(Exception, lambda: compiled(x))


class Double(torch.autograd.Function):
    """A user's own, which knows nothing of masks."""

    @staticmethod
    def forward(x: Any) -> Any:
        return x * 2

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        pass

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        return grad * 2


def masked(*shape: int, dtype: torch.dtype = torch.float32, **options: Any) -> Any:
    """Ones, one of them masked."""
    data = ones(shape, dtype=dtype)
    return mt.masked_tensor(data, torch.arange(data.numel()).view(shape) > 0, **options)


def sparse(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.eye(max(shape), dtype=dtype)[: shape[0], : shape[1]].to_sparse()


def test_copies_and_conversions(monkeypatch: pytest.MonkeyPatch) -> None:
    x = masked(2, requires_grad=True)

    def assign() -> None:
        x.data = ones(3)

    refused(
        RuntimeError,
        lambda: copy.copy(x * 1),
        """cannot copy a masked tensor that is part of a graph; use x.detach() first""",
    )
    refused(RuntimeError, assign, """x.data = y needs a y of the same shape, dtype and device as the masked tensor x""")
    refused(
        RuntimeError,
        lambda: [] in x,
        """Tensor.__contains__ only supports Tensor or scalar, but you passed in a <class 'list'>.""",
    )
    refused(
        TypeError,
        lambda: [1, 2][masked(2)[1]],
        """only integer tensors of a single element can be converted to an index""",
    )
    monkeypatch.setattr(convert, "numpy", None)
    refused(ImportError, x.to_numpy_ma, """to_numpy_ma() needs numpy""")


def test_writing() -> None:
    leaf = masked(2, 2, requires_grad=True)
    refused(
        RuntimeError,
        lambda: leaf.add_(1),
        """a leaf Variable that requires grad is being used in an in-place operation.""",
    )
    refused(
        RuntimeError,
        lambda: leaf[0].add_(1),
        """a view of a leaf Variable that requires grad is being used in an in-place operation.""",
    )
    refused(RuntimeError, lambda: leaf.mul(2).t_(), """t_ on a masked tensor that requires grad: use x = x.t(...)""")
    refused(
        RuntimeError,
        lambda: masked(2).add_(ones(2, 2)),
        """output with shape [2] doesn't match the broadcast shape [2, 2]""",
    )
    refused(
        RuntimeError,
        lambda: masked(2, dtype=torch.int64).add_(1.5),
        """result type torch.float32 can't be cast to the desired output type torch.int64""",
    )
    refused(
        RuntimeError,
        lambda: torch.add(leaf, 1, out=masked(2, 2)),
        """add(): functions with out=... arguments don't support automatic differentiation, but one of the arguments requires grad.""",
    )
    refused(
        RuntimeError,
        lambda: torch.add(masked(2), 1, out=masked(3)),
        """out has shape [3] but the result has shape [2]; a masked out= cannot be resized, pass one of the result's shape""",
    )
    parts = torch.view_as_real(masked(2, 2, requires_grad=True, dtype=torch.complex64) * 1)
    refused(
        RuntimeError,
        lambda: parts[0].mul_(2),
        """a gradient through this view of a masked tensor would be lost: it reads its base as another dtype; assign through the base (base[index] = value), take the view again, work on a clone, or write under torch.no_grad()""",
    )


def test_sparse_masked_tensors() -> None:
    x = mt.as_masked_tensor(sparse(3, 3))
    tracked = mt.as_masked_tensor(sparse(3, 3)).requires_grad_()
    refused(
        mt.UnsupportedOpError,
        lambda: torch.cov(x),
        """aten::cov does not support masked tensors of layout torch.sparse_coo; use x.to_dense(), which keeps the mask""",
    )
    refused(
        mt.UnsupportedOpError,
        lambda: torch.addmm(x, x, ones(3, 3)),
        """aten::addmm does not support masked tensors of layout torch.sparse_coo (argument self must be strided); use x.to_dense(), which keeps the mask""",
    )
    where = ones(3, dtype=torch.int64)
    refused(
        mt.UnsupportedOpError,
        lambda: F.layer_norm(ones(3, 3), (3,), x[0]),
        """aten::layer_norm does not support masked tensors of layout torch.sparse_coo (argument input must be sparse); use x.to_dense(), which keeps the mask""",
    )
    refused(
        mt.UnsupportedOpError,
        lambda: F.layer_norm(x, (3,), mt.masked_tensor([1.0, 2.0, None])),
        """aten::layer_norm does not support masked tensors of layout torch.sparse_coo (argument weight must be plain and strided); use x.to_dense(), which keeps the mask""",
    )
    refused(
        mt.UnsupportedOpError,
        lambda: torch.dist(x, ones(3)),
        """aten::dist does not support masked tensors of layout torch.sparse_coo (both operands must have one shape); use x.to_dense(), which keeps the mask""",
    )
    refused(
        mt.UnsupportedOpError,
        lambda: F.cross_entropy(ones(3, 3), where, x[0]),
        """aten::cross_entropy_loss does not support masked tensors of layout torch.sparse_coo (argument self must be sparse); use x.to_dense(), which keeps the mask""",
    )
    refused(
        mt.UnsupportedOpError,
        lambda: F.cross_entropy(x, ones(3, 3)),
        """aten::cross_entropy_loss does not support masked tensors of layout torch.sparse_coo (the target must be class indices, and nothing smoothed); use x.to_dense(), which keeps the mask""",
    )
    refused(
        mt.UnsupportedOpError,
        lambda: torch.unique_consecutive(x, dim=0),
        """aten::unique_consecutive does not support masked tensors of layout torch.sparse_coo (runs of whole slices); use x.to_dense(), which keeps the mask""",
    )
    refused(
        mt.UnsupportedOpError,
        lambda: mt.masked_tensor(torch.eye(99) > 0, torch.eye(99) > 0).to_sparse().expand(2, 99, 99),
        """aten::expand does not support masked tensors of layout torch.sparse_coo (the result would be dense); use x.to_dense(), which keeps the mask""",
    )
    refused(RuntimeError, lambda: F.layer_norm(x, (3,), ones(2)), """weight must have shape (3,), got (2,)""")
    refused(
        mt.UnsupportedOpError,
        lambda: x @ x,
        """aten::matmul does not support masked tensors of layout torch.sparse_coo (sparse @ dense needs a sparse matrix and a strided vector or matrix, got (3, 3) (torch.sparse_coo) @ (3, 3) (torch.sparse_coo)); use x.to_dense(), which keeps the mask""",
    )
    refused(
        mt.UnsupportedOpError,
        lambda: torch.matmul(ones(3, 3), torch.stack([x.to_dense()] * 2).to_sparse()),
        """aten::matmul does not support masked tensors of layout torch.sparse_coo (one factor must be a sparse masked matrix); use x.to_dense(), which keeps the mask""",
    )
    refused(
        mt.UnsupportedOpError,
        lambda: x * ones(2, 3, 3),
        """aten::mul.Tensor does not support masked tensors of layout torch.sparse_coo (the result of shape (2, 3, 3) would store entries more than once); use x.to_dense(), which keeps the mask""",
    )
    refused(
        mt.UnsupportedOpError,
        lambda: torch.where(ones(3, 3) > 0, x, ones(3, 3)),
        """aten::where.self does not support masked tensors of layout torch.sparse_coo (a strided branch is valid wherever it is chosen); use x.to_dense(), which keeps the mask""",
    )
    refused(
        mt.UnsupportedOpError,
        lambda: x.quantile(mt.masked_tensor([0.5, None])),
        """aten::quantile does not support masked tensors of layout torch.sparse_coo (argument q must be plain and strided); use x.to_dense(), which keeps the mask""",
    )
    refused(
        mt.UnsupportedOpError,
        lambda: torch.add(x, 1, out=x),
        """aten::add.out does not support masked tensors of layout torch.sparse_coo (out= would have to be stored anew); use x.to_dense(), which keeps the mask""",
    )
    refused(RuntimeError, lambda: x.topk(5), """topk: k must lie between 0 and 3, the size of dim -1, got 5""")
    refused(IndexError, lambda: x.select(0, 5), """select(): index 5 out of range for tensor of size [3, 3] at dim 0""")
    refused(
        RuntimeError,
        lambda: mt.as_masked_tensor(sparse(2, 2, dtype=torch.complex64)).amax(),
        """complex numbers have no order, got torch.complex64""",
    )
    refused(
        RuntimeError,
        lambda: (tracked * 1).mul_(2),
        """aten::mul_.Tensor on a sparse masked tensor that autograd tracks: use x = op(x, ...)""",
    )
    refused(
        RuntimeError,
        lambda: x.add_(mt.as_masked_tensor(sparse(3, 3).to_dense().flip(0).to_sparse())),
        """an in-place op would change which entries a sparse masked tensor stores; use x = op(x, ...)""",
    )
    refused(RuntimeError, lambda: x @ ones(2, 2), """shapes (3, 3) and (2, 2) cannot be multiplied""")


def test_functional_forms() -> None:
    refused(
        TypeError,
        lambda: mt.mean(ones(2), ones(2) > 0),
        """mean(): argument 'dim' must be int or tuple of ints, not a tensor; a mask is given as mask=""",
    )
    refused(
        TypeError,
        lambda: mt.average(ones(2), ones(2)),
        """average(): argument 'dim' must be int or tuple of ints, not a tensor; weights are given as weights=, and a mask is given as mask=""",
    )
    refused(TypeError, lambda: mt.sum([1.0]), """input must be a tensor, got list; use masked_tensor(input)""")
    frame = pytest.importorskip("pandas").DataFrame({"a": [1.0]})
    refused(
        TypeError, lambda: mt.ffill(frame, 0), """input must be a tensor, got DataFrame; use masked_invalid(input)"""
    )
    refused(
        TypeError,
        lambda: mt.sum(ones(2), mask=[True, False]),
        """mask must be a plain tensor or None, got list; use torch.as_tensor(mask)""",
    )
    refused(
        ValueError,
        lambda: mt.sum(ones(2), mask=ones(2, device="meta").bool()),
        """mask and input must be on one device, got mask on meta, input on cpu""",
    )
    refused(
        ValueError,
        lambda: mt.sum(ones(2), mask=ones(3).bool()),
        """mask must broadcast to input's shape (2,), got a mask of shape (3,)""",
    )
    refused(
        ValueError,
        lambda: mt.sum(ones(2, 3, 4), mask=ones(2, dtype=torch.bool)),
        """mask must broadcast to input's shape (2, 3, 4), got a mask of shape (2,); use mask[..., None, None]""",
    )
    refused(
        RuntimeError,
        lambda: F.cross_entropy(ones(2, 3), mt.masked_invalid(torch.tensor([1.0, float("nan")]))),
        """class labels must be integers, got float32: use target.long(); probabilities of classes have the shape (2, 3)""",
    )
    refused(
        ValueError,
        lambda: mt.cross_entropy(ones(2, 3, 4), ones(2, 4).long(), mask=ones(2, 4) > 0),
        """mask= masks input, of shape (2, 3, 4); give a mask of target's shape (2, 4) as target_mask=""",
    )
    refused(  # as many samples as classes: it would be read as one of classes
        ValueError,
        lambda: mt.cross_entropy(ones(3, 3), ones(3).long(), mask=ones(3) > 0),
        """mask= masks input, of shape (3, 3); give a mask of target's shape (3,) as target_mask=, one of classes as mask[None]""",
    )
    refused(
        TypeError,
        lambda: mt.mean(ones(2, 3), 1, mask=ones(2, 3)),
        """mask must be a bool tensor, got float32; use mask != 0 for zeros and ones, mask == 0 for an additive mask of 0 and -inf""",
    )
    refused(
        ValueError,
        lambda: mt.mse_loss(ones(2, 3), ones(2, 3), target_mask=ones(2) > 0),
        """target_mask must broadcast to target's shape (2, 3), got a mask of shape (2,); use mask[..., None]""",
    )
    refused(
        TypeError,
        lambda: mt.mse_loss(ones(2), ones(2), target_mask=[True, False]),
        """target_mask must be a plain tensor or None, got list; use torch.as_tensor(mask)""",
    )
    labels = torch.tensor([1, 255])
    refused(
        IndexError,
        lambda: mt.cross_entropy(ones(2, 3), labels, target_mask=labels == 255),
        """Target 255 is out of bounds: there are 3 classes; if it stands for a missing label, mask it: masked_equal(target, 255); or the mask is inverted (True means valid): use ~mask""",
    )
    refused(
        IndexError,
        lambda: mt.nll_loss(ones(2, 3), mt.masked_equal(labels, 1)),
        """Target 255 is out of bounds: there are 3 classes; if it stands for a missing label, mask it: masked_equal(target, 255); or the mask is inverted (True means valid): use ~mask""",
    )
    refused(
        IndexError,
        lambda: F.cross_entropy(ones(2, 3), mt.masked_tensor(labels)),
        """Target 255 is out of bounds: there are 3 classes; if it stands for a missing label, mask it: masked_equal(target, 255)""",
    )
    refused(
        RuntimeError,
        lambda: mt.argmax(ones(2, dtype=torch.complex64)),
        """argmax(): complex numbers have no order, got torch.complex64""",
    )
    refused(
        RuntimeError,
        lambda: mt.amax(sparse(2, 2, dtype=torch.complex64)),
        """amax(): complex numbers have no order, got torch.complex64""",
    )
    refused(
        ValueError,
        lambda: mt.sum(ones(2, dtype=torch.int64), mask=ones(2).bool(), fill_value=0.5),
        """fill_value 0.5 does not fit a result of torch.int64""",
    )
    refused(TypeError, lambda: mt.argmax(ones(2), (0, 1)), """argmax(): dim must be an int or None, got (0, 1)""")
    refused(TypeError, lambda: mt.max(ones(2), keepdim=True), """max(): keepdim needs a dim""")
    refused(TypeError, lambda: mt.cumsum(ones(2), None), """cumsum(): argument 'dim' must be int, not NoneType""")
    normal = torch.distributions.MultivariateNormal(ones(2), torch.eye(2))
    refused(
        TypeError,
        lambda: mt.log_prob("normal", ones(2)),  # type: ignore[arg-type]
        """distribution must be a torch.distributions.Distribution, got str""",
    )
    refused(
        ValueError,
        lambda: mt.log_prob(normal, ones(4, 3)),
        """value must end in the event shape (2,) of the distribution, got (4, 3)""",
    )
    refused(
        ValueError,
        lambda: mt.rankdata(ones(2), "first"),
        """method must be one of ('average', 'min', 'max', 'dense', 'ordinal'), got 'first'""",
    )
    refused(
        ValueError,
        lambda: mt.scaled_dot_product_attention(
            ones(2, 3, 4), ones(2, 5, 4), ones(2, 5, 4), key_mask=ones(2, 3).bool()
        ),
        """key_mask must be (S,), (N, S), or broadcast to (2, 5), key's shape without the last dimension; got (2, 3)""",
    )
    refused(
        ValueError,
        lambda: mt.ffill(ones(2, dtype=torch.int64), mask=ones(2).bool()),
        """ffill: what stays masked is NaN in a plain result, which torch.int64 does not have; say what it is by fill_value=, or give a masked tensor""",
    )
    refused(
        ValueError,
        lambda: mt.var(ones(2), unbiased=True, correction=0),
        """var(): give unbiased or correction, not both""",
    )
    refused(
        ValueError,
        lambda: mt.softmax(ones(2), 0, mode="fast"),
        """mode must be 'safe', 'inf_as_zero' or 'none', got 'fast'""",
    )
    refused(
        ValueError,
        lambda: mt.mse_loss(ones(2), ones(2), reduction="average"),
        """reduction must be one of ['mean', 'none', 'sum'], got 'average'""",
    )
    refused(RuntimeError, lambda: mt.quantile(sparse(0, 2), 0.5), """quantile() input tensor must be non-empty""")


@pytest.mark.filterwarnings("ignore:Sparse CSR tensor support")
def test_functional_forms_of_sparse_input() -> None:
    x = sparse(2, 2)
    falling = torch.sparse_csr_tensor([0, 5, 2], [0, 1], ones(2), (2, 2), check_invariants=False)
    refused(
        ValueError,
        lambda: mt.sum(falling, 1),
        """compressed indices must rise from 0 to the 2 stored values; these lead from 0 to 2, or fall""",
    )
    refused(
        mt.UnsupportedOpError,
        lambda: mt.logaddexp(x, x),
        """masked_tensor.logaddexp does not support torch.sparse_coo inputs; use input.to_dense() and the same mask""",
    )
    refused(
        mt.UnsupportedOpError,
        lambda: mt.unique(x, return_inverse=True),
        """masked_tensor.unique of a torch.sparse_coo input has no inverse; give it input.to_dense()""",
    )
    refused(
        mt.UnsupportedOpError,
        lambda: mt.binary_cross_entropy_with_logits(x, x, reduction="none"),
        """reduction='none' of a loss that is not 0 where the torch.sparse_coo operands store nothing would be dense; give it input.to_dense() (and the same mask), or another reduction""",
    )
    refused(
        ValueError,
        lambda: mt.mse_loss(x, ones(3, 3)),
        """sparse operands must have one shape, to which strided ones broadcast, got (2, 2) and (3, 3) (torch.strided)""",
    )
    classes = torch.tensor([0, 1])
    refused(
        NotImplementedError,
        lambda: mt.cross_entropy(x, classes, label_smoothing=0.1),
        """cross_entropy of torch.sparse_coo scores needs strided class indices, a plain weight and no label_smoothing; for more give it input.to_dense() (and the same mask)""",
    )
    refused(
        ValueError,
        lambda: mt.nll_loss(x, classes[:1]),
        """target must have the shape of the scores without the classes, got (1,) for scores of shape (2, 2)""",
    )
    refused(IndexError, lambda: mt.nll_loss(x, classes + 1), """Target 2 is out of bounds: there are 2 classes.""")
    refused(
        ValueError,
        lambda: mt.dist(x, sparse(3, 2)),
        """dist with a sparse input does not broadcast: both must have one shape, got (2, 2) and (3, 2)""",
    )
    refused(
        RuntimeError,
        lambda: mt.nansum(sparse(2, 2, dtype=torch.complex64)),
        """nansum(): complex input is not supported, got torch.complex64""",
    )
    refused(
        RuntimeError,
        lambda: mt.mean(sparse(2, 2, dtype=torch.int64)),
        """mean(): input dtype must be floating point or complex, got torch.int64""",
    )
    refused(IndexError, lambda: mt.amax(sparse(0, 2), 0), """amax(): Expected reduction dim 0 to have non-zero size.""")
    refused(
        TypeError,
        lambda: mt.layer_norm(x, [2], weight=masked(2)),
        """the parameters of a norm layer with a torch.sparse_coo input must be plain strided tensors, got MaskedTensor of layout torch.strided""",
    )
    refused(
        RuntimeError,
        lambda: mt.layer_norm(x, [3]),
        """the last dimensions of the input must be normalized_shape=[3], got an input of shape [2, 2]""",
    )
    refused(
        RuntimeError,
        lambda: mt.group_norm(x, 3),
        """num_groups=3 must divide the number of channels, got shape [2, 2]""",
    )
    refused(RuntimeError, lambda: mt.batch_norm(x, None, None), """evaluation needs running_mean and running_var""")
    refused(
        TypeError,
        lambda: mt.sum(ones(2), min_count="a"),
        """sum(): argument 'min_count' must be int or None, got str 'a'""",
    )  # type: ignore[arg-type]
    refused(TypeError, lambda: mt.sum(ones(2), {"a"}), """dim must be an int or a list of them, got set""")  # type: ignore[arg-type]


def test_masked_assignment() -> None:
    x, mask = ones(2), torch.tensor([True, True])
    refused(TypeError, lambda: mt.masked_fill(1.0, mask, 0), """input must be a tensor, got float""")
    refused(TypeError, lambda: mt.masked_fill(x, True, 0), """mask must be a bool tensor, got bool""")
    refused(TypeError, lambda: mt.masked_fill(x, x, 0), """mask must be a bool tensor, got float32; use mask.bool()""")
    refused(TypeError, lambda: mt.masked_fill(x, mask, "1"), """value must be a number or a 0-d tensor, got str""")
    refused(TypeError, lambda: mt.masked_scatter(x, mask, 1.0), """source must be a tensor, got float""")
    refused(
        RuntimeError,
        lambda: mt.masked_scatter(x, mask, ones(1)),
        """masked_scatter: the mask has 2 True positions, but source has only 1 elements""",
    )
    refused(
        RuntimeError,
        lambda: mt.masked_scatter_(x, ones(2, 2).bool(), ones(4)),
        """masked_scatter_: mask of shape (2, 2) does not broadcast to input's shape (2,)""",
    )


def test_arguments_of_ops() -> None:
    x = masked(4, 4)
    whole = masked(2, dtype=torch.int64)
    refused(IndexError, lambda: x.sum(2), """Dimension out of range (expected to be in range of [-2, 1], but got 2)""")
    for call in (x.softmax, x.log_softmax, x.mode, x.median, x.cumsum, x.argmax, x.sort, x.logsumexp, x.amax):
        with pytest.raises(IndexError, match="Dimension out of range"):
            call(2)
    refused(RuntimeError, lambda: x.sum((0, 0)), """dim [0, 0] appears multiple times in the list of dims""")
    refused(RuntimeError, lambda: F.glu(masked(3)), """Halving dimension must be even, but dimension -1 is size 3""")
    refused(
        RuntimeError,
        lambda: x.masked_scatter(ones(4, 4).bool(), ones(3)),
        """masked_scatter: the mask has 16 True positions, but source has only 3 elements""",
    )
    refused(
        RuntimeError,
        lambda: torch.cov(masked(2, 2, 2)),
        """cov(): expected input to have two or fewer dimensions but got an input with 3 dimensions""",
    )
    refused(
        RuntimeError,
        lambda: F.cross_entropy(x, ones(4, 4, dtype=torch.int64)),
        """Expected floating point type for target with class probabilities, got torch.int64""",
    )
    refused(
        RuntimeError,
        lambda: F.cross_entropy(x, x, ignore_index=1),
        """ignore_index is not supported for floating point target""",
    )
    refused(
        RuntimeError,
        lambda: torch.ops.aten.multi_margin_loss(x, torch.zeros(4, dtype=torch.int64), 3),
        """only p == 1 and p == 2 supported""",
    )
    refused(
        IndexError,
        lambda: F.cross_entropy(x, mt.masked_tensor([9, 0, 0, 0], True)),
        """Target 9 is out of bounds: there are 4 classes; if it stands for a missing label, mask it: masked_equal(target, 9)""",
    )
    refused(
        RuntimeError,
        lambda: F.cross_entropy(x, torch.zeros(3, dtype=torch.int64)),
        """target must have shape (4,), got (3,)""",
    )
    words = mt.masked_equal(torch.zeros(2, 5, dtype=torch.int64), -100)
    for shape in ((2, 5, 3), (2, 5, 4, 3)):
        labels = words if len(shape) == 3 else words[..., None].expand(2, 5, 4)
        with pytest.raises(RuntimeError, match="classes belong in dimension 1"):
            F.cross_entropy(ones(*shape), labels)
    refused(
        RuntimeError,
        lambda: F.cross_entropy(ones(2, 5, 3), words),
        """target must have shape (2, 3), got (2, 5); classes belong in dimension 1: use logits.transpose(1, 2)""",
    )
    refused(
        RuntimeError,
        lambda: F.cross_entropy(x, x, label_smoothing=1.5),
        """label_smoothing must be between 0.0 and 1.0. Got: 1.5""",
    )
    lengths = torch.tensor([4, 4, 4, 4])
    labels = torch.zeros(4, 2, dtype=torch.int64)
    refused(
        RuntimeError,
        lambda: F.ctc_loss(masked(3, 4, 5), labels, lengths, lengths - 2),
        """input_lengths must be from 0 to 3""",
    )
    refused(
        RuntimeError,
        lambda: F.ctc_loss(masked(4, 4, 5), labels, lengths.double(), lengths),
        """input_lengths must be integral, got torch.float64""",
    )
    refused(
        RuntimeError,
        lambda: F.ctc_loss(masked(4, 4, 5), labels, lengths, lengths),
        """target_lengths must be from 0 to 2""",
    )
    refused(
        RuntimeError,
        lambda: x[0].detach_(),
        """a view of a masked tensor cannot be detached in place; use x = x.detach()""",
    )
    refused(RuntimeError, whole.var, """std and var only support floating point and complex dtypes""")
    refused(
        RuntimeError,
        whole.mean,
        """mean(): input dtype should be either floating point or complex dtypes. Got torch.int64 instead.""",
    )
    refused(
        RuntimeError,
        lambda: torch.ops.aten.group_norm(masked(1, 4, 2), 3),
        """Expected number of channels in input to be divisible by num_groups, but got input of shape [1, 4, 2] and num_groups=3""",
    )
    refused(
        RuntimeError,
        lambda: F.layer_norm(x, [3]),
        """Given normalized_shape=[3], expected input with shape [*, 3], but got input of size [4, 4]""",
    )
    refused(
        RuntimeError,
        lambda: F.layer_norm(x, [4], ones(3)),
        """Expected weight and bias to be of the shape of normalized_shape [4], but got [3]""",
    )
    refused(RuntimeError, lambda: x.kthvalue(5), """selected number k out of range for dimension -1""")
    refused(RuntimeError, lambda: x.topk(5), """selected index k out of range""")
    refused(RuntimeError, lambda: masked(0).quantile(0.5), """quantile() input tensor must be non-empty""")
    refused(
        RuntimeError,
        lambda: torch.ops.aten.gru.input(x, ones(1, 4), [], False, 1, 0.0, False, False, False),
        """aten::gru.input: expected a 3-D input (steps, batch, features), got 2-D""",
    )
    refused(
        RuntimeError,
        lambda: x[1:].as_strided((2,), (1,), 0),
        """as_strided: storage_offset 0 is before the tensor's own memory""",
    )
    refused(
        NotImplementedError,
        lambda: torch.batch_norm_stats(x.double(), 1e-5),
        """nn.SyncBatchNorm of a float64 masked tensor: its statistics travel in float32""",
    )


def test_modes_and_rows() -> None:
    def mismatch() -> None:
        with mt.meaning(mismatch="raise"):
            masked(2) + mt.masked_tensor(ones(2))

    refused(
        mt.MaskMismatchError,
        mismatch,
        """two operands have different masks, and meaning(mismatch='raise') is in force; give both the same mask (as_masked_tensor(x, mask)), fill one with x.filled(value), or leave the context to get their AND""",
    )
    batch = mt.from_lengths(ones(2, 3, 2), [3, 1])
    with mt.strict():
        refused(
            mt.MaskMismatchError,
            lambda: torch.cat([batch, ones(2, 3, 1)], -1),
            """cat along dimension 2 joins valid features to masked steps of another part. If those steps are padding, linear layers, means and attention will count them. Mask the padding of the plain part as well: masked_tensor.from_lengths(plain, lengths); or compute inside masked_tensor.meaning(product='all')""",
        )
    refused(
        ValueError,
        lambda: mt.meaning(mismatch="warn"),
        """meaning: mismatch must be one of ('and', 'raise'), got 'warn'""",
    )
    refused(
        ValueError,
        lambda: mt.meaning(convolution="some"),
        """meaning: convolution must be one of ('core', 'any', 'all'), got 'some'""",
    )
    refused(
        KeyError,
        lambda: mt.explain("no_such_op"),
        """no operator is known as 'no_such_op'; python -m masked_tensor prints all""",
    )
    refused(
        KeyError,
        lambda: mt.explain(mt.rolling),
        """'rolling' of this package is not an operator: help(masked_tensor.rolling) describes it""",
    )
    refused(
        ValueError,
        lambda: mt.extend.register_rule("aten::no_such_op")(lambda x: x),
        """no operator 'aten::no_such_op' is registered with the dispatcher""",
    )
    lib = torch.library.Library("bad_forms", "DEF")
    lib.define("scale(Tensor x, Tensor w) -> Tensor")
    lib.impl("scale", lambda x, w: x * w, "CompositeExplicitAutograd")
    refused(
        ValueError,
        lambda: mt.extend.register_rule("bad_forms::scale", packed=packed_rule(lambda x, w: x, whole=("y",)))(
            lambda x, w: x
        ),
        """bad_forms::scale has no tensor argument 'y', which its rule declares to be whole""",
    )
    refused(
        ValueError,
        lambda: mt.extend.register_rule("aten::relu")(lambda x: x),
        """aten::relu has two rules: 'relu' and 'aten::relu'""",
    )
    refused(
        TypeError,
        lambda: type("Mine", (mt.MaskedTensor,), {}),
        """MaskedTensor is final: give it new behaviour with register_rule, not by subclassing""",
    )


def test_a_torch_without_a_name_that_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "__version__", "3.0")
    monkeypatch.setitem(sys.modules, "torch._tensor_str", None)
    refused(
        ImportError,
        lambda: runpy.run_path(compat.__file__),
        """torch 3.0 lacks a private name that masked_tensor builds on (import of torch._tensor_str halted; None in sys.modules); this version of masked_tensor is made for torch 2.11 to 2.15""",
    )


def test_packing() -> None:
    x = mt.from_lengths(ones(2, 3, 4), [3, 1])
    refused(
        ValueError,
        lambda: x.packed((0, 3)),
        """packed(dims=...) needs two dimensions of the tensor, got (0, 3) of shape (2, 3, 4)""",
    )
    refused(
        ValueError,
        lambda: mt.masked_tensor([[1.0, None]]).to_sparse().packed(),
        """packed() stores the rows of a strided tensor, got layout torch.sparse_coo; x.to_dense() first""",
    )
    refused(
        ValueError,
        lambda: x.packed(like=x, lengths=[1, 1]),
        """packed() got both lengths= and like=; pass one of them""",
    )
    refused(
        ValueError,
        lambda: x.packed(capacity=3),
        """packed(capacity=3): 4 steps are valid; give a capacity that holds them, or batches of fewer steps""",
    )
    refused(ValueError, lambda: x.packed(capacity=0), """packed(capacity=...) must be 1 or more, got 0""")
    refused(TypeError, lambda: x.packed(capacity=True), """packed(capacity=...) must be an int, got bool""")
    refused(
        ValueError,
        lambda: x.packed(like=x.packed(), capacity=9),
        """packed() got capacity= beside like= or lengths=, which already say which steps are stored; leave out capacity=""",
    )
    refused(
        ValueError,
        lambda: mt.from_lengths(ones(2, 3), [3, 1], packed=True).unpad(lengths=[3, 2]),
        """unpad: this packed tensor stores sequences of the lengths [3, 1], which lengths= or padding_side= contradicts: leave them out""",
    )
    known = mt.from_lengths(ones(2, 3), [3, 1], packed=True)
    refused(
        ValueError,
        (known + mt.from_lengths(ones(2, 3), [2, 2], packed=True)).lengths,
        """lengths() needs the lengths: this batch was packed with lengths, but an op dropped them (it mixed steps, changed their number, met a batch of other lengths, or made padding valid). Say how many steps each sequence has: x = x.packed(lengths=[...])""",
    )
    refused(
        ValueError,
        lambda: mt.to_left(known.flip(1)),
        """to_left() needs the lengths: this batch was packed with lengths, but an op dropped them (it mixed steps, changed their number, met a batch of other lengths, or made padding valid). Say how many steps each sequence has: mt.to_left(x, lengths=[...])""",
    )
    refused(
        ValueError,
        lambda: mt.masked_tensor([[1.0, None], [2.0, 3.0]]).to_nested(lengths=[2, 2]),
        """to_nested(): a nested tensor has no mask, and a step that exists is masked; take x.unpad(lengths=...), whose sequences are masked tensors, or fill the gaps first: ffill, interpolate""",
    )
    refused(
        ValueError,
        lambda: mt.ffill(mt.from_lengths(ones(2, 3), [3, 1], packed=True), 1, lengths=[3, 2]),
        """ffill: this packed tensor stores sequences of the lengths [3, 1], which lengths= or padding_side= contradicts: leave them out""",
    )
    refused(
        ValueError,
        lambda: mt.ffill(mt.from_lengths(ones(2, 3), [3, 1], packed=True), 0),
        """ffill: dim=0 is the batch of this packed tensor, whose sequences lie along dim=1""",
    )
    refused(
        ValueError,
        lambda: x.packed(like=x),
        """packed(like=other) needs a packed masked tensor; pack other first""",
    )
    refused(
        ValueError,
        lambda: x.packed(like=mt.from_lengths(ones(2, 3), [1, 1]).packed()),
        """packed(like=other) needs an other that stores every place where the tensor is valid; pack it by itself""",
    )
    scores = mt.from_lengths(ones(2, 3, 1), [1, 1]).packed()
    refused(
        ValueError,
        lambda: x.packed(like=scores @ scores.mT),
        """packed(like=other) needs an other that is a batch of sequences, not their products over time; pack the tensor by itself""",
    )
    refused(TypeError, lambda: mt.packed(ones(2)), """packed() expects a masked tensor, got Tensor""")
    refused(TypeError, lambda: mt.unpacked(ones(2)), """unpacked() expects a masked tensor, got Tensor""")


ELSEWHERE = {
    "all_reduce() needs groups on all ranks": "needs ranks: test_statistics_tables",
    "its groups do not rise": "the error of a row quotes it: test_statistics_tables",
    "its names are not those": "the same",
    "its sketch counts what": "the same",
    "the mask is a DTensor and the data is not": "needs a mesh: test_mesh",
    "DTensor.from_local of a masked tensor": "needs a mesh: test_mesh",
    "a pipeline stage cannot send": "needs a process group: test_mesh",
    "a compiled function cannot change": "wrapped in the compiler's own error: test_aliasing",
    "a compiled function cannot write into": "the same: test_packed_compiled, test_compiled_writes",
    "a compiled function cannot harden": "the same: test_compiled_writes",
    "this packed tensor shares its values": "of compiled functions: test_packed_compiled",
    "masked_tensor was imported before": "needs a process: test_importing",
    "a masked tensor was computed by ": "its interpreter hands on the error without the text: test_foreign",
    "nn.SyncBatchNorm has no second": "needs ranks: test_sync_batch_norm",
}


def test_libraries_that_count() -> None:
    """In test_counting_libraries.py each is raised by the library itself; here by what stands in its place."""
    given = wrapping.with_masked

    def multiclass_exact_match(preds: torch.Tensor, target: torch.Tensor) -> None: ...

    multiclass_exact_match.__qualname__ = "multiclass_exact_match"
    partly = mt.masked_tensor([[1.0, None]])
    refused(
        mt.MaskedSizeError,
        lambda: wrapping.valid_rows("MeanSquaredError.update", partly, ones(1, 2)),
        """MeanSquaredError.update counts rows, but some rows of a tensor of shape (1, 2) are only partly valid; pass the fully valid rows: masked_tensor.select_valid(a, b, dim=1)""",
    )

    def r2_score(preds: torch.Tensor, target: torch.Tensor) -> None: ...

    r2_score.__qualname__ = "r2_score"
    by_row = torchmetrics._on_picked(torchmetrics._rows)(r2_score)
    refused(
        mt.MaskedSizeError,
        lambda: by_row(partly, ones(1, 2)),
        """r2_score counts rows, but some rows of a tensor of shape (1, 2) are only partly valid; compute it for each column: masked_tensor.select_valid(a[:, j], b[:, j])""",
    )
    crf, gap = SimpleNamespace(batch_first=True), mt.masked_tensor([[[1.0], [None], [1.0]]])
    refused(
        mt.MaskedSizeError,
        lambda: given(torchcrf._sequences)(lambda self, emissions, mask: None)(crf, gap, None),
        """\
CRF would score a valid step as if it followed the last valid one before a gap; give it sequences without gaps, padded \
behind: masked_tensor.to_left(x)""",
    )
    refused(
        mt.MaskedSizeError,
        lambda: wrapping.valid_rows("PSNR", partly[:, None], ones(1, 1, 2)),
        """PSNR counts rows, but some rows of a tensor of shape (1, 1, 2) are only partly valid; pass the fully valid rows: a[keep] and b[keep] with keep = a.get_mask().flatten(1).all(1)""",
    )
    refused(
        mt.MaskedSizeError,
        lambda: given(torchmetrics._classes)(multiclass_exact_match)(partly, ones(1, 2)),
        """multiclass_exact_match counts rows, but some rows of a tensor of shape (1, 2) are only partly valid; that of the entries that are valid in both is (labels == target).flatten(1).all(1).float().mean()""",
    )
    refused(
        mt.MaskedSizeError,
        lambda: given(open_clip._loss)(lambda x, negative_only: x)(partly, True),
        """SigLipLoss would also divide by the masked pairs of other ranks; with world_size > 1 pass it the valid rows of both, image_features[valid] and text_features[valid]""",
    )

    def distance(preds: torch.Tensor) -> None: ...

    distance.__qualname__ = "hausdorff_distance"
    refused(
        mt.MaskedSizeError,
        lambda: given(torchmetrics._shapes)(distance)(partly),
        """\
hausdorff_distance measures distances between shapes, which masked places would belong to or not; fill them with a \
class: x.filled(0)""",
    )

    def quantile(self: object, x: torch.Tensor, index: object, dim_size: int, dim: int) -> None: ...

    refused(
        mt.MaskedSizeError,
        lambda: given(torch_geometric._quantile)(quantile)(0, partly[0], 0, 1, 0),
        """\
int would count masked members of a tensor of shape (2,); give it two dimensions, the members first: x.flatten(1)""",
    )
    refused(
        mt.MaskedSizeError,
        lambda: transformers._balancing(lambda gate_logits, attention_mask: 0)((partly,), ones(2)),
        """\
load_balancing_loss_func was given an attention_mask of 2 tokens beside router logits of 1; leave the attention_mask \
out, the masked tensor carries the mask""",
    )

    def summary(self: object, hidden_states: torch.Tensor) -> None: ...

    refused(
        mt.MaskedSizeError,
        lambda: given(transformers._summary)(summary)(
            SimpleNamespace(summary_type="last"), mt.from_lengths(ones(2, 2, 1), [2, 1])
        ),
        """SimpleNamespace reads the last position of each row, which is masked in a row that is padded past its end; put the padding in front: masked_tensor.to_right(input_ids)""",
    )


def test_libraries_that_store() -> None:
    class Record(dict):  # type: ignore[type-arg]  # a TensorDict gives its leaves so
        def items(self, include_nested: bool, leaves_only: bool) -> Any:
            return super().items()

    def memmap(self: Any, prefix: str) -> None: ...

    stored = tensordict._refuse(memmap)
    assert stored(Record(a=ones(2)), "folder") is None
    refused(
        mt.MaskedWriteError,
        lambda: stored(Record({("a", "b"): masked(2)}), "folder"),
        """memmap() keeps tensors as plain memory, which has no place for the mask of 'a.b': store td['a', 'b', 'data'] = x.filled(0) and td['a', 'b', 'mask'] = x.mask in its place, and read masked_tensor.as_masked_tensor(td['a', 'b', 'data'], td['a', 'b', 'mask']); torch.save(td, file) keeps masked tensors""",
    )


def test_tables_and_states_of_statistics() -> None:
    refused(
        TypeError,
        lambda: mt.to_arrow([1.0]),
        """to_arrow() expects a tensor, got list; use masked_tensor(data)""",
    )
    refused(
        ValueError,
        lambda: mt.to_arrow(ones(2, 2, 2)),
        """to_arrow() makes columns of (N,) or (N, F), got (2, 2, 2); use x.flatten(1), or pyarrow.array(x) for lists""",
    )
    refused(
        ValueError,
        lambda: mt.to_arrow(ones(2, 2), ["a"]),
        """to_arrow() needs 2 different names, one for each column, got ['a']""",
    )
    refused(
        TypeError,
        lambda: mt.RunningStatistics(1, cov=True).update(ones(1, 1), group=[1]),
        """groups have moments alone: leave out cov, edges and sketch, or keep statistics for each group""",
    )
    refused(
        TypeError,
        lambda: mt.RunningStatistics(1, sketch=True).update(ones(1, 1), ones(1, 1)),
        """sketch=True does not support weights; use edges= for quantiles of weighted data""",
    )
    refused(
        ValueError,
        lambda: mt.RunningStatistics(1).update(ones(1, 1)).merge(mt.RunningStatistics(1).update(ones(1, 1), group=[1])),
        """merge() needs groups in both or in neither; call update(x, group=keys) in both""",
    )
    refused(
        ValueError,
        lambda: options.choose(["b"], ["a"], "update()"),
        """update(): the table lacks columns ['b']; it has ['a']""",
    )
    refused(
        ValueError,
        lambda: options.choose(["a"], ["a", "a"], "update()"),
        """update() finds columns by name, but the table has ['a'] more than once; rename them""",
    )
    refused(
        ValueError,
        lambda: mt.RunningStatistics(1).update(ones(1, 1), group=[1])(ones(1, 1), group=[2]),
        """group holds keys that update() has not seen: [2]""",
    )
    refused(
        ValueError,
        lambda: mt.RunningStatistics(),
        """RunningStatistics needs the number of columns, or columns= with their names""",
    )
    refused(
        TypeError,
        lambda: mt.RunningStatistics(["a", "b"]),  # type: ignore[arg-type]
        """RunningStatistics expects the number of columns, got ['a', 'b']; pass names as columns=""",
    )
    refused(
        ValueError,
        lambda: mt.RunningStatistics(2, columns=["a"]),
        """columns must be a list of 2 names, got ['a']""",
    )
    refused(
        ValueError,
        lambda: mt.RunningStatistics(1, sketch=1),
        """sketch must be True, False or a number from 2 on, got 1""",
    )
    refused(
        ValueError,
        lambda: mt.RunningStatistics.merge_all([]),
        """merge_all() needs at least one state, got none""",
    )
    refused(
        RuntimeError,
        lambda: mt.RunningStatistics(1).rank_error(),
        """these statistics keep no sketch: make them with sketch=True""",
    )
    refused(
        ValueError,
        lambda: mt.RunningStatistics(1).update(ones(1, 1), group=[1.0]),
        """update() needs one integer for each row as its group, (1,), got torch.float32 (1,)""",
    )
    refused(
        ValueError,
        lambda: mt.RunningStatistics(1).update(ones(1, 1), group=[-1]),
        """update() needs keys that are valid and not negative; leave out the other rows""",
    )
    refused(
        ImportError,
        lambda: summary.library("no_such_library"),
        """this table is made by no_such_library: pip install no_such_library""",
    )
    refused(
        ValueError,
        lambda: mt.RunningStatistics.from_arrow(mt.to_arrow(ones(1))),
        """from_arrow() expects what to_arrow() of this version returned (version 1), got a table without bins, columns, correction, counts, dim, edges, features, halvings, items, keys, missed, moments, names, pairs, sketch, version, waiting""",
    )
    refused(
        TypeError,
        lambda: mt.RunningStatistics.from_arrow([{}]),
        """from_arrow() expects an Arrow table, such as one of pyarrow, polars or pandas, got list; put tables together with pyarrow.concat_tables""",
    )
    refused(
        ValueError,
        lambda: travel.from_row(
            {**travel.to_row(mt.RunningStatistics(1)._state), "missed": ones(2)}, mt.RunningStatistics
        ),
        """the row is not whole, or was changed: shape '[1]' is invalid for input of size 2""",
    )


def test_last_valid_values(monkeypatch: pytest.MonkeyPatch) -> None:
    last = mt.LastValid(["a", "b"])
    row = {"names": ["a"], "features": 1, "limit": 0, "keys": ones(1), "rows": ones(1), "values": ones(1)}
    refused(
        ValueError,
        lambda: mt.LastValid("ab"),
        """columns must be a list of different names, or their number, got 'ab'""",
    )
    refused(ValueError, lambda: mt.LastValid(1, limit=0), """limit must be 1 or more, got 0""")
    refused(ValueError, lambda: last.update(ones(2)), """update() expects rows of 2 columns, got (2,)""")
    refused(
        TypeError,
        lambda: last.update(ones(1, 2, dtype=torch.complex64)),
        """update() expects strided real numbers, got torch.strided torch.complex64; use x.to_dense() or torch.view_as_real(x)""",
    )
    refused(
        ValueError,
        lambda: last.update(ones(2, 2), group=[1.0]),
        """update() needs one integer for each row as its group, (2,), got torch.float32 (1,)""",
    )
    refused(
        ValueError,
        lambda: last.update(ones(2, 2), group=[1, -1]),
        """update() needs keys that are valid and not negative; leave out the other rows""",
    )
    refused(
        ValueError,
        lambda: last.merge(mt.LastValid(["b", "a"], limit=3)),
        """merge() needs the same columns and limit, got ('b', 'a'), limit=3 beside ('a', 'b'), limit=None""",
    )
    refused(
        ValueError,
        lambda: mt.LastValid.before(mt.to_arrow(ones(1))),
        """LastValid reads what its to_arrow() of this version gave (version 1), got a table without features, keys, limit, names, part, rows, since, values, version""",
    )
    refused(
        ValueError,
        lambda: last_valid._from_row({**row, "since": ones(2)}),
        """the row is not whole, or was changed: shape '[1, 1]' is invalid for input of size 2""",
    )
    refused(
        ValueError,
        lambda: last_valid._from_row({**row, "since": -5 * ones(1)}),
        """the row is not whole, or was changed: its keys do not rise""",
    )
    refused(
        ValueError,
        lambda: mt.LastValid.from_arrow(mt.to_arrow(ones(0))),
        """from_arrow() needs at least one row, got none""",
    )
    (known,) = travel.rows_of(last.to_arrow())
    monkeypatch.setattr(travel, "rows_of", lambda rows: [known, known])
    refused(
        ValueError,
        lambda: mt.LastValid.before(()),
        """two parts have the number 0.0: to_arrow(part=index), rising in their order""",
    )
    refused(TypeError, lambda: mt.LastValid(1.5), """columns must be a list of names, or their number, got float""")  # type: ignore[arg-type]
    refused(TypeError, lambda: mt.LastValid(2, limit=1.5), """limit must be an int, got float""")  # type: ignore[arg-type]


def test_shapes_that_a_rule_of_several_ops_would_take() -> None:
    x, at = masked(2, 3), torch.zeros(2, 3, dtype=torch.int64)
    refused(
        RuntimeError,
        lambda: x.scatter(0, at[0], 1.0),
        """the index of a scatter must have as many dimensions as the input and the source, got shape (3,), the input (2, 3) and the source (3,)""",
    )
    refused(
        RuntimeError,
        lambda: x.scatter_add(0, at, ones(2, 2)),
        """the index of a scatter must be no larger than the source, nor than the input apart from dimension 0, got shape (2, 3), the source (2, 2) and the input (2, 3)""",
    )
    refused(
        IndexError,
        lambda: x.scatter_add(0, at > 0, ones(2, 3)),
        """the index of a scatter must be int64, got bool; call .long() on it for positions 0 and 1, or select with x[condition]""",
    )
    refused(
        IndexError,
        lambda: x.index_add(0, at, ones(2, 3)),
        """index_add: the index must have one dimension, got shape (2, 3)""",
    )
    refused(
        RuntimeError,
        lambda: x.index_reduce(0, at[0, :2], ones(2, 2), "prod"),
        """index_reduce: the source must have the input's shape apart from dimension 0, got (2, 2) and (2, 3)""",
    )
    refused(
        RuntimeError,
        lambda: x.index_add(0, at[0], ones(2, 3)),
        """index_add: the index must name each of the 2 slices of the source, got 3""",
    )
    refused(
        RuntimeError,
        lambda: torch.nn.BatchNorm1d(4)(mt.from_lengths(ones(2, 3, 4), [3, 1])),
        """batch norm of 4 channels got an input of shape (2, 3, 4), whose channels must be in dimension 1; use x.transpose(1, 2)""",
    )
    refused(
        RuntimeError,
        lambda: torch.native_group_norm(x, None, None, 2, 3, 2, 1, 1e-5),
        """native_group_norm: the input must have 2 samples of 3 channels of 2 entries, got shape (2, 3)""",
    )
    refused(
        RuntimeError,
        lambda: F.triplet_margin_loss(x, x, x[0]),
        """triplet_margin_loss: the operands must have as many dimensions, got shapes [(2, 3), (2, 3), (3,)]""",
    )
    refused(
        RuntimeError,
        lambda: F.cosine_embedding_loss(x, x[0], ones(2)),
        """cosine_embedding_loss: x2 must have one dimension more than the target, got shapes (3,) and (2,)""",
    )
    refused(RuntimeError, lambda: x.unsqueeze(0).trace(), """trace: the input must be a matrix, got shape (1, 2, 3)""")
    refused(
        NotImplementedError,
        lambda: x.softmax(1, dtype=torch.int32),
        """softmax gives fractions, got dtype=int32""",
    )
    refused(
        RuntimeError,
        lambda: torch.histogramdd(x[0], 2),
        """histogramdd: the input must have at least two dimensions, got shape (3,)""",
    )
    refused(
        RuntimeError,
        lambda: F.ctc_loss(masked(4, 2, 3).log_softmax(-1), torch.ones(3).long(), (4, 4), (1, 1)),
        """target_lengths must be known and add up to the 3 targets""",
    )


def test_every_message_of_the_package_stands_here() -> None:
    examples = [text for text in literals(Path(__file__)) if text not in ELSEWHERE]
    for place, pattern in templates().items():
        elsewhere = any(pattern.startswith(re.escape(text)) for text in ELSEWHERE)
        if not elsewhere and not place.startswith("testing"):  # which test_testing.py tests
            assert any(re.fullmatch(pattern, text, re.DOTALL) for text in examples), (
                f"{place}: no example of {pattern!r}"
            )


def test_what_a_compiled_graph_does_not_know() -> None:
    """The compiler hands on the message: test_handed_out."""
    assert str(errors.read_while_compiling("lengths")) == (
        """lengths() reads the mask's values, which a compiled graph does not know. Call it outside the compiled function, or use x.get_mask() inside it"""
    )


def test_many_machines() -> None:
    from torch.distributed.checkpoint.metadata import MetadataIndex

    x = mt.masked_tensor([1.0, None])
    refused(
        AttributeError,
        lambda: x.placements,
        """only a masked tensor of DTensors has placements; make one with distribute_tensor""",
    )
    refused(
        ValueError,
        lambda: x.__get_tensor_shard__(MetadataIndex("x", torch.Size([1]))),
        """FQN: 'x' is not distributed, it has no part at torch.Size([1])""",
    )
    m = torch.nn.Module()
    m.weight = torch.nn.Parameter(x)
    refused(
        TypeError,
        lambda: torch.nn.parallel.DistributedDataParallel(m),
        """DistributedDataParallel cannot hold a masked parameter: its optimizer, buckets and shards are plain memory; keep the parameter plain and the mask as a buffer, and mask where it is used: as_masked_tensor(self.weight, self.mask)""",
    )
    del m.weight
    m.register_buffer("mean", x)
    refused(
        TypeError,
        lambda: torch.nn.parallel.DistributedDataParallel(m),
        """DistributedDataParallel sends buffers in one piece with plain tensors, which cannot hold a mask: give it broadcast_buffers=False and init_sync=False, and send what ranks do not share: torch.distributed.broadcast(tensor, 0)""",
    )


def test_settings() -> None:
    refused(
        TypeError,
        lambda: mt.strict()(torch.nn.Linear),
        """a setting decorates functions and methods, not the class Linear: decorate its forward, or use `with` where it is called""",
    )
    refused(
        TypeError,
        lambda: mt.strict()(torch.nn.Linear(1, 1)),
        """a setting decorates functions and methods, not a module: decorate its forward, or use `with` where it is called""",
    )
    left = mt.strict()
    with left:
        pass
    refused(
        RuntimeError,
        lambda: left.__exit__(None, None, None),
        """a setting was left more often than entered; write `with` or a decorator""",
    )


def test_sums_of_losses() -> None:
    refused(ValueError, lambda: mt.total(), """total needs a loss""")
    refused(
        TypeError, lambda: mt.total([ones(())]), """every loss must be a 0-d tensor, got list; write total(*losses)"""
    )  # type: ignore[arg-type]  # a list
    refused(TypeError, lambda: mt.total(3.0), """every loss must be a 0-d tensor, got float""")  # type: ignore[arg-type]  # a number
    refused(
        TypeError,
        lambda: mt.mean_over(torch.nn.Linear(1, 1)),
        """mean_over(): argument 'parameters' must be a list of tensors or None, got Linear; use model.parameters()""",
    )  # type: ignore[arg-type]  # a module
    refused(
        TypeError,
        lambda: mt.total({"a": ones(())}),
        """every loss must be a 0-d tensor, got dict; write total(*losses.values())""",
    )
    refused(
        ValueError,
        lambda: mt.total(ones(()), ones(2)),
        """every loss must be a 0-d tensor, got shape (2,); reduce it first: loss.mean()""",
    )
    refused(
        ValueError,
        lambda: mt.total(ones(()), weights=[1, 2]),
        """total needs one weight for each loss, got 2 weights for 1 losses""",
    )
    refused(
        ValueError,
        lambda: mt.total(ones(()), weights=[ones(2)]),
        """weights of total must be numbers or plain 0-d tensors, got one of shape (2,)""",
    )
    refused(
        ValueError,
        lambda: mt.total(ones(()), weights=[mt.masked_tensor(1.0)]),
        """weights of total must be numbers or plain 0-d tensors, got a masked one""",
    )
    with mt.strict():
        refused(
            mt.MaskedValueError,
            mt.masked_tensor([1.0, None]).requires_grad_()[1:].sum().backward,
            """backward() was called on a masked loss, so it adds 0 to every gradient. A sum a + b is masked if either loss is; masked_tensor.total(a, b) adds up the losses that exist""",
        )


def test_means_over_parts() -> None:
    x, y = mt.masked_tensor([1.0, None]), ones(2)
    refused(
        ValueError,
        lambda: mt.mean_over(parameters=[y], count=1),
        """mean_over got both parameters= and count=; pass count= if it is known before the losses, else parameters=""",
    )
    refused(
        ValueError,
        lambda: mt.mean_over(count=-1),
        """mean_over(count=...) needs a count for each loss, 0 or more, got -1""",
    )
    refused(
        RuntimeError,
        lambda: mt.mean_over(parameters=[y]).finish(),
        """mean_over: finish() has nothing to finish; take a mean inside `with mean:` first""",
    )

    refused(
        TypeError,
        lambda: mt.mean_over(count={"a": 1}),
        """mean_over(count=...) expects a list, in the order of the losses, got a dict""",
    )

    def within(mean: mt.mean_over, *losses: Callable[..., Any], times: int = 1) -> Callable[[], None]:
        def run() -> None:
            for _ in range(times):
                with mean:
                    for loss in losses:
                        loss(x, y)

        return run

    refused(
        RuntimeError,
        within(mt.mean_over()),
        """mean_over saw no mean of a masked loss. If the loss is plain, mask the targets: masked_tensor(target, mask), or masked_equal(labels, -100), also for labels= of a model. If it is written by hand, or torch divides it in Python (kl_div with batchmean), write over.mean(entries) inside `with mean_over() as over:`""",
    )
    refused(
        RuntimeError,
        within(mt.mean_over(), F.mse_loss, times=2),
        """mean_over() was entered twice without parameters= or count=. For one mean over several micro-batches pass parameters=model.parameters() and call finish(), or pass count=""",
    )
    refused(
        RuntimeError,
        within(mt.mean_over(parameters=[]), F.mse_loss, F.l1_loss),
        """mean_over(parameters=...) saw a second mean in one part: each has a count of its own, and one factor cannot serve both; give the counts: mean_over(count=[n_first, n_second])""",
    )
    first = mt.mean_over(parameters=[y])
    within(first, F.mse_loss)()
    refused(
        RuntimeError,
        within(mt.mean_over(parameters=[y]), F.mse_loss),
        """another mean_over(parameters=...) of the same parameters is not finished, and each finish() would scale the gradients of both; finish() or reset() it first, or give the counts of all losses to one: mean_over(count=[n_first, n_second])""",
    )
    first.reset()
    refused(
        RuntimeError,
        within(mt.mean_over(count=[1, 2]), F.mse_loss),
        """mean_over(count=...) was given 2 counts, and saw 1 means""",
    )
    refused(
        RuntimeError,
        within(mt.mean_over(count=1), F.mse_loss, F.l1_loss),
        """mean_over(count=...) got 1 counts, but there are more means""",
    )
    used = mt.mean_over()
    refused(
        RuntimeError,
        within(used, lambda x, y: used.__enter__()),
        """this mean_over is in use already; make another for a loss inside of it""",
    )
    refused(
        RuntimeError,
        within(mt.mean_over(), lambda x, y: checkpoint(F.mse_loss, y.requires_grad_(), x, use_reentrant=False)),
        """mean_over saw a loss inside a checkpoint, whose second run would add it up again; take it outside""",
    )
    refused(
        RuntimeError,
        within(mt.mean_over(), lambda x, y: make_fx(lambda x, y: F.mse_loss(x, y), tracing_mode="fake")(x, y)),
        """mean_over cannot add up over ranks inside compiled code, or a loss of DTensors (whose mean is that of the whole mesh already); compute the loss from the compiled model's outputs, outside of it""",
    )
    weight = ones(2).requires_grad_()
    mean = mt.mean_over(parameters=[weight])
    within(mean, lambda x, y: F.mse_loss(weight, x).backward())()
    refused(
        RuntimeError,
        torch.optim.SGD([weight]).step,
        """an optimizer steps on gradients of an unfinished mean_over: call finish() first""",
    )
    refused(
        RuntimeError,
        mean.skip,
        """mean_over: skip() came after backward(), which added the gradients of this part; decide before it, or zero the gradients and call reset() to begin the step again""",
    )
    mean.finish()
    refused(
        RuntimeError,
        mean.skip,
        """mean_over: skip() has nothing to skip: it takes back the last `with mean:`, once""",
    )
    refused(
        ValueError,
        lambda: mt.mean_over(gradients="average"),
        """mean_over: gradients must be "mean" or "sum", got 'average'""",
    )

    def fails(x: Any, y: Any) -> None:
        F.mse_loss(weight, x).backward()
        raise MemoryError("none left")

    message(MemoryError, within(mean, fails))
    refused(
        RuntimeError,
        mean.finish,
        """mean_over: an exception came after backward() began, so that the gradients hold a part that failed; zero them and call reset() on all ranks to begin the step again""",
    )
    refused(
        RuntimeError,
        lambda: mt.mean_over().weigh(y),
        """mean_over: weigh() is for a term of the last `with mean:`: call it after that block, before backward()""",
    )
    refused(
        RuntimeError,
        lambda: mt.mean_over(count=1).weigh(y),
        """mean_over(count=...) scales no gradient, so that weigh() is not needed: add the term itself, divided by the number of micro-batches""",
    )
    refused(
        TypeError,
        lambda: mean.weigh(torch.tensor(1)),
        """mean_over: weigh() expects a floating-point tensor, such as a weight penalty, got torch.int64""",
    )
    refused(
        RuntimeError,
        within(mt.mean_over(), lambda x, y: torch.vmap(F.mse_loss)(y[None], x[None])),
        """mean_over saw a loss inside vmap, where each sample would have a mean of its own; take the loss of the whole batch, or give the counts: mean_over(count=n)""",
    )


def test_means_over_ranks(monkeypatch: pytest.MonkeyPatch) -> None:
    module = import_module("masked_tensor.train.mean_over")
    x, y = mt.masked_tensor([1.0, None]), ones(2)

    def loss() -> None:
        with mt.mean_over():
            F.mse_loss(x, y)

    class Group:  # in which another rank sends other numbers, or none
        fails = False

        def allreduce(self, tensors: list[torch.Tensor]) -> Any:
            tensors[0].add_(1)
            return self

        def wait(self) -> None:
            if self.fails:
                raise RuntimeError("Timed out")

    for reader in (group_mean, module):
        monkeypatch.setattr(reader, "group_size", lambda group: 2)
    monkeypatch.setattr(group_mean, "group_timeout", lambda group: "0:00:10")
    monkeypatch.setattr(module, "own_group", lambda group: Group())
    refused(
        RuntimeError,
        loss,
        """mean_over: the ranks do not take the same losses: one skipped a micro-batch, failed, called finish(), takes another loss or has another number of micro-batches; skip on all ranks or on none (decide with an all_reduce), and give a rank without data x[:0]; to begin the step again, zero the gradients and call reset() on all ranks""",
    )
    monkeypatch.setattr(Group, "fails", True)
    refused(
        RuntimeError,
        loss,
        """mean_over could not add up over the ranks (timeout 0:00:10): another rank ended, or waits somewhere else, as it does after a micro-batch that it alone skipped; all ranks take the same losses in the same order""",
    )
    monkeypatch.setattr(module, "gradient_divisors", lambda: {2.0, 1.0})
    refused(
        RuntimeError,
        loss,
        """mean_over cannot tell what the gradients of 2 ranks become: an FSDP2 module divides them by 1 (set_gradient_divide_factor); write mean_over(gradients="sum") if that is your model, gradients="mean" if it is another""",
    )
    guards: Any = sys.modules["masked_tensor.api.distributed.guards"]
    sharded = type("Sharded", (), {"sharded_param": ones(1).requires_grad_()})()
    monkeypatch.setattr(guards, "_RANKS", {sharded: frozenset((0, 1))})
    monkeypatch.setattr(guards.dist, "get_process_group_ranks", lambda group: [0])
    refused(
        RuntimeError,
        loss,
        """mean_over(group=...) has the ranks [0], but FSDP2 adds up gradients over its mesh, also [1]: the gradient would not be that of the mean; give it the mesh that fully_shard was given, or group=None for all ranks""",
    )
    mesh = type("Mesh", (), {"ndim": 2, "size": lambda self: 2})()
    for name, given in (("is_initialized", True), ("get_world_size", 4)):
        monkeypatch.setattr(ranks.dist, name, lambda given=given: given)
    refused(
        ValueError,
        lambda: ranks.resolve_group(mesh),
        """mean_over expects a DeviceMesh of one dimension, or one of all ranks, got one of 2 with 2 of 4 ranks; flatten it to one dimension, or leave group=None for all ranks""",
    )


def test_statistics() -> None:
    stats = mt.RunningStatistics(2)
    refused(
        ValueError,
        lambda: stats.update(ones(2, 3)),
        """update() expects 2 columns along dim -1, got (2, 3)""",
    )
    refused(
        TypeError,
        lambda: stats.update(ones(2, 2) * 1j),
        """statistics are of real numbers, got complex ones; update with torch.view_as_real(x)""",
    )
    refused(
        TypeError,
        lambda: stats.update(ones(2, 2).to_sparse(), ones(2, 1)),
        """update() of a sparse tensor needs a matrix, and computes no covariances, histograms, sketches, groups or weighted statistics; use x.to_dense()""",
    )
    refused(
        ValueError,
        lambda: stats.merge(mt.RunningStatistics(3)),
        """merge() needs statistics made with the same arguments; these differ in features""",
    )
    refused(
        ValueError,
        lambda: stats.update(ones(2, 2), ones(3, 1)),
        """weight must broadcast to the shape (2, 2) of x, got (3, 1)""",
    )
    refused(
        TypeError, lambda: stats.update(ones(2, 2), ones(2, 1) * 1j), """a weight is a real number, got a complex one"""
    )
    refused(
        ValueError,
        lambda: mt.RunningStatistics(2, cov=True).update(ones(2, 2), ones(2, 2)),
        """covariances need one weight for each row, of size 1 along dim -1, got (2, 2); leave out cov=True""",
    )
    refused(
        ValueError,
        lambda: stats.update(ones(2, 2), torch.tensor([[1.0], [-0.5]])),
        """weights must not be negative or NaN, got -0.5""",
    )
    refused(ValueError, lambda: stats(ones(5, 1)), """stats(x) expects 2 columns along dim -1, got (5, 1)""")
    refused(
        RuntimeError,
        lambda: stats(ones(2, 2)),
        """stats(x) was called before a valid entry was seen: call update(x) or merge() first""",
    )
    refused(
        ValueError,
        lambda: mt.RunningStatistics(2, correction=-1),
        """correction must be a number, at least 0, got -1""",
    )
    refused(
        RuntimeError,
        lambda: stats.load_state_dict({"squares": ones(2)}, strict=False),
        """\
Error(s) in loading state_dict for RunningStatistics:
	the state is of an earlier version, which took other sums and bins: update with the data again""",
    )
    refused(
        RuntimeError,
        lambda: stats.load_state_dict({"moments": ones(6, 2)}),
        """\
Error(s) in loading state_dict for RunningStatistics:
	the state is not whole""",
    )
    refused(
        RuntimeError,
        lambda: stats.load_state_dict(mt.RunningStatistics(2, cov=True).state_dict()),
        """\
Error(s) in loading state_dict for RunningStatistics:
	load_state_dict() needs statistics made with the same arguments; these differ in cov; make them as those that were saved, edges=state['edges']""",
    )
    binned = mt.RunningStatistics(2, edges=ones(2, 3) * torch.tensor([[1.0], [2.0]])).update(ones(1, 2) * torch.nan)
    refused(
        ValueError,
        lambda: binned.refined(0.5),
        """refined() of columns [0, 1], which hold a valid NaN: it has no quantile; mask it before update(), with masked_invalid(x)""",
    )
    refused(ValueError, lambda: binned.quantile(1.5), """q must be from 0 to 1, got 1.5""")
    pa = pytest.importorskip("pyarrow")
    stats.update(pa.table({"a": [1.0], "b": [2.0]}))
    refused(
        ValueError,
        lambda: stats.update(pa.table({"a": [1.0], "c": [2.0]})),
        """update() needs columns of the same names as before, in any order; got ['c'] as well""",
    )
    refused(
        ValueError,
        lambda: stats.update(pa.table([[1.0], [2.0]], names=["a", "a"])),
        """columns go by name, and two have one name: ['a', 'a']; give masked_tensor(table)""",
    )
    refused(
        ValueError,
        lambda: stats.merge(mt.RunningStatistics(2).update(pa.table({"a": [1.0], "c": [2.0]}))),
        """merge() needs columns of the same names as before, in any order; got others""",
    )
    turned = copy.deepcopy(binned).update(pa.table({"b": [2.0], "a": [1.0]}))
    refused(
        ValueError,
        lambda: binned.update(pa.table({"a": [1.0], "b": [2.0]})).merge(turned),
        """merge() needs the columns in the same order, since they have edges of their own; got another order""",
    )
    refused(
        RuntimeError,
        stats.cov,
        """these statistics keep no covariances: make them with cov=True""",
    )
    refused(
        RuntimeError,
        lambda: stats.quantile(0.5),
        """these statistics keep no histograms: make them with edges=torch.linspace(low, high, n), or with sketch=True for quantiles alone""",
    )
    refused(
        ValueError,
        lambda: mt.RunningStatistics(2, edges=torch.tensor([2.0, 1.0])),
        """edges must rise, and be (n,) or (2, n), got (1, 2)""",
    )


def test_samplers() -> None:
    refused(
        ValueError,
        lambda: mt.balanced_batches([1, 2], tokens=2, ranks=2, rank=2),
        """rank must be from 0 to 1, got 2""",
    )
    refused(
        ValueError,
        lambda: mt.balanced_batches([1, 2], tokens=2, ranks=3),
        """3 ranks need as many samples at least, got 2""",
    )
    refused(
        ValueError,
        lambda: mt.balanced_batches([0, 3], tokens=2),
        """lengths must be from 1 to tokens=2, got 0 to 3""",
    )
    state = mt.balanced_batches([1, 2], tokens=2, ranks=2).state_dict()
    refused(
        ValueError,
        lambda: mt.balanced_batches([1, 2], tokens=3).load_state_dict(state),
        """\
the state has tokens=2, ranks=2, this sampler tokens=3, ranks=1; load it into a sampler like its own, and make a new \
one of the lengths of what that has left()""",
    )
    refused(
        TypeError,
        lambda: mt.balanced_batches([1], tokens=None),
        """balanced_batches: tokens must be an int, got NoneType""",
    )  # type: ignore[arg-type]


def test_meanings() -> None:
    for choice in ({"convolution": "some"}, {"product": "none"}, {"padding": "batch"}, {"mismatch": "warn"}):
        message(ValueError, lambda choice=choice: mt.meaning(**choice))
    refused(
        ValueError,
        lambda: mt.meaning(padding="batch"),
        """meaning: padding must be one of ('row', 'tensor'), got 'batch'""",
    )
    x, lengths = mt.masked_tensor([1.0, None]), mt.from_lengths(ones(2, 1), [1, 0])
    with mt.strict():
        refused(
            mt.MaskedSizeError,
            x.numel,
            """numel() counts masked entries as well; use x.count() for the valid ones, x.shape.numel() for all""",
        )
        refused(
            mt.MaskMismatchError,
            lambda: torch.rnn_tanh_cell(lengths, ones(2, 1), ones(1, 1), ones(1, 1)),
            """inside strict() a recurrent cell cannot skip a masked step: its state would stay valid (aten::rnn_tanh_cell). Run the whole layer (nn.LSTM, nn.GRU, nn.RNN) over the batch, or leave strict()""",
        )


def test_joint_exit() -> None:
    x = mt.masked_tensor([1.0, None])
    refused(TypeError, lambda: mt.select_valid(x, [1, 2]), """select_valid() expects tensors, got list""")
    refused(TypeError, lambda: mt.select_valid(), """select_valid() needs at least one tensor""")
    refused(
        ValueError,
        lambda: mt.select_valid(x, ones(2, 3)),
        """select_valid() needs tensors of one shape, except that some may have a dimension dim=; got (2,), (2, 3); if scores have a dimension of classes, pass it as dim=1""",
    )


def test_fills() -> None:
    x = mt.masked_tensor([1, None], dtype=torch.uint8)
    for value in (-1, 256, 0.5, float("nan"), 1j):
        message(TypeError, lambda value=value: x.filled(value))
    refused(TypeError, lambda: x.filled(-1), """filled(-1): uint8 cannot hold the value; convert first, x.float()""")
    refused(TypeError, lambda: (x > 0).filled(2), """filled(2): bool cannot hold the value; convert first, x.float()""")
    for values in ([0, -1], [256, 0], [0.5, 0], [float("nan"), 0], [1j, 0], [0, 1, 2]):
        message(TypeError, lambda values=values: x.filled(values))
    refused(TypeError, lambda: x.filled([0, 256]), """filled([0, 256]): uint8 cannot hold the values; use x.float()""")
    refused(
        TypeError,
        lambda: x.filled([0, None]),
        """filled() needs values without gaps, got a list with a missing one; fill it first, as masked_tensor(values).filled(0)""",
    )


def test_code_that_is_not_ours() -> None:
    refused(
        mt.UnsupportedOpError,
        lambda: Wrapper(mt.masked_tensor([1.0, None])).exp(),
        """a masked tensor lies inside another tensor subclass (such as a DTensor or a nested tensor), whose gradient would ignore the mask (aten::exp). Put the masked tensor outside: as_masked_tensor(outer_data, outer_mask), masked_tensor(nested); or work under torch.no_grad()""",
    )


def test_rules_of_users() -> None:
    lib = torch.library.Library("bad_rules", "DEF")
    rules = {
        "tensor": lambda x: x.data,
        "shape": lambda x: mt.extend.Pair(x.data, x.mask[0]),
        "dtype": lambda x: mt.extend.Pair(x.data, x.data),
    }
    for name, rule in rules.items():
        lib.define(f"{name}(Tensor x) -> Tensor")
        lib.impl(name, lambda x: x.clone(), "CompositeExplicitAutograd")
        mt.extend.register_rule(f"bad_rules::{name}")(rule)
    x = mt.masked_tensor([[1.0, None]])
    refused(
        TypeError,
        lambda: torch.ops.bad_rules.tensor(x),
        """the rule of bad_rules::tensor must return a Pair (or a tuple of them) whose mask is bool and has the data's shape, it returned a plain tensor""",
    )
    refused(
        TypeError,
        lambda: torch.ops.bad_rules.shape(x),
        """the rule of bad_rules::shape must return a Pair (or a tuple of them) whose mask is bool and has the data's shape, it returned data (1, 2) with the mask bool (2,)""",
    )
    refused(
        TypeError,
        lambda: torch.ops.bad_rules.dtype(x),
        """the rule of bad_rules::dtype must return a Pair (or a tuple of them) whose mask is bool and has the data's shape, it returned data (1, 2) with the mask float32 (1, 2)""",
    )


def test_what_a_rule_takes() -> None:
    lib = torch.library.Library("taking_rules", "DEF")
    lib.define("scale(Tensor x, Tensor w) -> Tensor")
    lib.impl("scale", lambda x, w: x * w, "CompositeExplicitAutograd")
    refused(
        ValueError,
        lambda: mt.extend.register_rule("taking_rules::scale", masked=["y"])(lambda x, w: x),
        """the rule of taking_rules::scale has no parameter 'y', which masked= names; it has ['x', 'w']""",
    )
    mt.extend.register_rule("taking_rules::scale", masked=["x"])(lambda x, w: x)
    refused(
        mt.UnsupportedOpError,
        lambda: torch.ops.taking_rules.scale(ones(2), masked(2)),
        """w of taking_rules::scale must not be masked; use w.filled(value)""",
    )


def test_a_rule_with_a_wrong_gradient() -> None:
    class Twice(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
            return x * 1

        @staticmethod
        def backward(ctx: Any, grad: torch.Tensor) -> torch.Tensor:
            return 2 * grad

    text = message(AssertionError, lambda: mt.testing.check_rule(Twice.apply, masked(2)))
    assert text.startswith("a gradient is not that of finite differences: Jacobian mismatch")


def test_pickles_of_later_versions() -> None:
    make, (kind, parts) = masked(2).__reduce_ex__(2)
    for later in (("ragged", parts), (kind, {**parts, "ragged": None})):
        refused(
            ValueError,
            lambda later=later: make(*later),
            """this pickle was written by a later version of masked_tensor, it has 'ragged': update masked_tensor""",
        )


def test_damaged_pickles() -> None:
    x = mt.as_masked_tensor(ones(2), torch.tensor([True, False]))
    packed, sparse = mt.from_lengths(ones(2, 3), [3, 1]).packed(), mt.masked_tensor([1.0, None]).to_sparse()
    base = mt.masked_tensor([1.0, None])
    base[0] = 2.0
    family = base.__reduce_ex__(2)[1][1]["family"]
    damaged = """this pickle of a masked tensor is damaged, or was not written by this package ({}): write it again with pickle or torch.save"""
    for tensor, part, reason in (
        (x, {"attributes": {"_pair": 1}}, """'_pair' is no attribute of a user"""),
        (x, {"mask": ones(2)}, """a mask of torch.float32 (2,) for data of (2,)"""),
        (x, {"payload": "zero"}, """masked-out data that is said to be 0 is not"""),
        (packed, {"index": ones(1)}, """an index of torch.float32 (1,) for (4,) values"""),
        (packed, {"index": torch.tensor([0, 1, 1, 3])}, """an index that does not rise, or leaves the grid"""),
        (packed, {"order": ((0,), (5,))}, """an order ((0,), (5,)) of 2 sizes"""),
        (x, {"data": mt.masked_tensor([1.0, 1.0])}, """a masked tensor inside of a masked tensor"""),
        (sparse, {"mask": ones(2).bool().to_sparse()}, """a mask of another pattern than the data"""),
        (base, {"family": {**family, "mask": ones(2)}}, """a family with a mask that is a Tensor of torch.float32"""),
        (base, {"family": {**family, "hard": 1}}, """a family with hard=1"""),
    ):
        make, (kind, parts) = tensor.__reduce_ex__(2)
        refused(ValueError, lambda: make(kind, {**parts, **part}), damaged.format(reason))  # noqa: B023


def test_lengths_with_masked_entries() -> None:
    x, pack = mt.from_lengths(ones(2, 3, 1), [3, 2]), torch.nn.utils.rnn.pack_padded_sequence
    refused(
        mt.MaskedValueError,
        lambda: pack(x, mt.masked_tensor([3, None]), batch_first=True),
        """pack_padded_sequence(): the value is masked; use x.filled(value) to choose one""",
    )
    assert pack(x, mt.masked_tensor([3, 2]), batch_first=True).data.count() == 5
    packed, sizes = pack(x, [3, 2], batch_first=True).data, mt.masked_tensor([2, 2, None])
    zeros = (torch.zeros(1, 2, 1), torch.zeros(1, 2, 1))
    for name, call in (
        ("pad_packed_sequence", lambda: torch._pad_packed_sequence(packed, sizes, True, 0.0, 3)),
        ("lstm", lambda: torch.lstm(packed, sizes, zeros, [ones(4, 1)] * 2, False, 1, 0.0, False, False)),
    ):
        refused(
            mt.MaskedValueError,
            call,
            f"""{name}() at the batch sizes: the value is masked; use x.filled(value) to choose one""",
        )


def test_sparse_tensors_of_masked_parts() -> None:
    indices = masked(1, 2).long()
    for checks in (False, True):
        refused(
            mt.UnsupportedOpError,
            lambda checks=checks: torch.sparse_coo_tensor(indices, ones(2), (2,), check_invariants=checks),
            """indices must not be masked (aten::sparse_coo_tensor.indices_size). Make the sparse tensor of the valid entries alone (x.get_data()[:, valid]) and pass it to as_masked_tensor, which masks the entries it does not store""",
        )


def test_min_count_of_what_has_no_nan() -> None:
    refused(
        ValueError,
        lambda: mt.sum(torch.ones(2).long(), 0, min_count=1),
        """\
sum(): with min_count, a result of too few valid elements is NaN, which torch.int64 does not have; say what it is by \
fill_value=, or give a masked tensor, whose result is masked there""",
    )


def test_flat_modules() -> None:
    x = mt.from_lengths(ones(2, 3, 4), [3, 1])
    module = mt.flat(torch.nn.Linear(4, 4))
    refused(
        TypeError,
        lambda: mt.flat(module, ones(2, 3)),  # type: ignore[arg-type]  # the mistake
        """mt.flat(module, on): the second argument turns flat off or on, got Tensor; to run the model call mt.flat(model)(x)""",
    )
    refused(TypeError, lambda: mt.flat(3), """mt.flat expects a torch.nn.Module, got int""")
    refused(
        ValueError,
        lambda: masked(3).to_flat(),
        """to_flat() needs a strided batch (B, T, ...), got layout torch.strided and shape (3,)""",
    )
    refused(
        ValueError,
        lambda: x.packed(dims=(1, 0)).to_flat(),
        """to_flat() needs a batch (B, T, ...), with the batch first and time second, which this packed tensor has elsewhere: move them to the front, x.movedim(...)""",
    )
    refused(
        TypeError,
        lambda: mt.from_flat(x.to_flat().values, 3),
        """from_flat: flat must be what x.to_flat() gave, got int""",
    )
    refused(
        TypeError,
        lambda: mt.from_flat(x, x.to_flat()),
        """from_flat: values must be a plain tensor, got MaskedTensor""",
    )
    refused(
        ValueError,
        lambda: mt.from_flat(ones(1, 2), x.to_flat()),
        """from_flat: values must be one row of 4 tokens, (1, 4, ...), got (1, 2)""",
    )
    gap = mt.masked_tensor(ones(1, 2, 4), torch.tensor([True, False])[:, None].expand(1, 2, 4)).packed(lengths=[2])
    refused(
        ValueError,
        lambda: module(gap),
        """flat tokens have no mask, and step 1 of sequence 0 is missing: call the module on the masked batch, without mt.flat, or fill the gap first (mt.ffill, mt.interpolate, x.filled)""",
    )
    spare = mt.from_lengths(ones(2, 3, 4), torch.tensor([3, 1])).packed(capacity=5)
    for labels in (ones(2, 3), mt.masked_tensor(ones(2, 3), True)):
        node = entered_labels if mt.is_masked_tensor(labels) else partial(entered_plain, label=True)
        refused(
            ValueError,
            lambda node=node, labels=labels: node(labels, spare),
            """mt.flat: of a batch at a capacity a loss inside of the module would count what fills it up, since labels that are numbers have no value to be ignored; compute the loss outside: F.mse_loss(model(batch), target)""",
        )
    there = mt.from_lengths(ones(2, 3, 4, device="meta"), torch.ones(2, dtype=torch.int64, device="meta"))
    refused(
        ValueError,
        lambda: there.packed(capacity=5).to_flat(),
        """mt.flat: which steps of this batch are masked would be read from the device, for which eager code would wait; call the flat module in compiled code, or pack the batch without a capacity""",
    )
    refused(
        ValueError,
        lambda: module(x, attention_mask=ones(2, 3)),
        """mt.flat: attention_mask says something else than the mask of the batch; leave attention_mask out""",
    )
    refused(
        ValueError,
        lambda: module(x, labels=masked(2, 4).long()),
        """mt.flat: labels of shape (2, 4) beside a batch of shape (2, 3); give labels of steps in the shape of the batch, and several classes for each sequence under another name than labels=""",
    )
    refused(
        ValueError,
        lambda: module(x, labels=ones(2, 2).long()),
        """mt.flat: labels of shape (2, 2) beside a batch of shape (2, 3); give labels of steps in the shape of the batch, and several classes for each sequence under another name than labels=""",
    )
    refused(
        ValueError,
        lambda: module(x, labels=mt.masked_tensor(ones(2, 3).long(), True)),
        """mt.flat: a label is valid where the batch has no step; leave it out of the labels""",
    )
    refused(
        ValueError,
        lambda: module(x, weights=mt.from_lengths(ones(2, 3), [3, 2])),
        """mt.flat: input and weights have different lengths, [3, 1] and [3, 2] of batches (2, 3) and (2, 3); all masked inputs must have the same steps; of an encoder-decoder make the encoder flat, mt.flat(model.encoder)""",
    )
    refused(
        ValueError,
        lambda: module(x, weights=x.packed(dims=(1, 0))),
        """mt.flat needs batches (B, T, ...), with the batch first and time second""",
    )
    refused(
        mt.UnsupportedOpError,
        lambda: mt.flat(torch.nn.BatchNorm1d(3))(x),
        """mt.flat: BatchNorm1d does not keep sequences apart on flat tokens: it has a BatchNorm1d, whose statistics join all sequences. Only attention may mix steps; convolutions and recurrent layers over time, batch norms and batch_first=False cannot be flat. Undo mt.flat with mt.flat(module, False), and call the module on the masked batch""",
    )

    refused(
        mt.UnsupportedOpError,
        lambda: mt.flat(torch.nn.Sequential(torch.nn.BatchNorm1d(3)))(x),
        """mt.flat: Sequential does not keep sequences apart on flat tokens: it has a BatchNorm1d, whose statistics join all sequences. Only attention may mix steps; convolutions and recurrent layers over time, batch norms and batch_first=False cannot be flat. Make only the part that mixes steps by attention flat, such as mt.flat(model.encoder), or undo mt.flat with mt.flat(module, False), and call the module on the masked batch""",
    )
    layer = torch.nn.TransformerEncoderLayer(2, 1, 4, batch_first=True)
    batch = mt.from_lengths(ones(2, 3, 2), [3, 1])
    refused(
        mt.UnsupportedOpError,
        lambda: mt.flat(layer)(batch, src_key_padding_mask=~mt.lengths_to_mask([3, 1])),
        """mt.flat: leave out src_key_padding_mask: flat tokens have no padding, and attention knows each sequence""",
    )

    class Words(torch.nn.Module):
        def forward(self, words: torch.Tensor) -> torch.Tensor:
            return words.cos()

    refused(
        mt.UnsupportedOpError,
        lambda: mt.flat(Words())({"words": x}),
        """mt.flat was given one mapping; if it holds the arguments, write model(**batch). mt.flat: Words raises on plain sequences like those of this batch, without mt.flat as well, on a sequence of 3 or 5 steps: AttributeError: 'dict' object has no attribute 'cos'. First call it on a plain batch; only if it fails because sequences are short, mt.flat(module, check=False) skips this check""",
    )


def test_attention_of_flat_modules() -> None:
    from masked_tensor.api.flat.attention import Within
    from masked_tensor.api.flat.transformers import attention, first_tokens

    tokens = mt.from_lengths(ones(2, 3, 4), [3, 0]).to_flat()
    q, mask = ones(1, 1, 3, 4), ones(3, 3).bool()
    with Within(tokens):
        refused(
            ValueError,
            lambda: F.scaled_dot_product_attention(q, q, q, mask),
            """mt.flat: the module calls attention over its tokens with a mask of its own, which does not know where a sequence ends; pass is_causal=True in place of a causal mask, or call the module on the masked batch without mt.flat""",
        )
        layer = torch.nn.Identity()
        refused(
            ValueError,
            lambda: attention(layer, q, q, q, mask),
            """mt.flat: the module calls attention over its tokens with a mask of its own, which does not know where a sequence ends; pass is_causal=True in place of a causal mask, or call the module on the masked batch without mt.flat""",
        )
        refused(
            ValueError,
            lambda: attention(layer, q, q, q, position_bias=mask),
            """mt.flat: the module calls attention over its tokens with a mask of its own, which does not know where a sequence ends; pass is_causal=True in place of a causal mask, or call the module on the masked batch without mt.flat""",
        )
        refused(
            ValueError,
            lambda: attention(layer, q[:, :, :2], q, q),
            """mt.flat: Identity attends from 2 to 3 steps, which are not the tokens of the batch; call the model on the masked batch without mt.flat""",
        )
    refused(
        ValueError,
        lambda: Within(tokens).mode.be_clear(True),
        """mt.flat: the batch has 3 tokens, as many as what the module attends to beside them has entries, and its calls of attention are not those of the check, which tell them apart (a layer that is left out, a checkpoint); call the module on the masked batch without mt.flat""",
    )
    refused(
        ValueError,
        lambda: first_tokens((ones(1, 3, 4),), Within(tokens).mode),
        """mt.flat: sequence 1 has no step that the model's pooler could read; leave it out of the batch""",
    )


def test_flat_models_with_choices() -> None:
    transformers = pytest.importorskip("transformers")
    small = {"hidden_size": 4, "num_hidden_layers": 1, "num_attention_heads": 1, "intermediate_size": 4}
    model = mt.flat(transformers.BertForMultipleChoice(transformers.BertConfig(vocab_size=8, **small)))
    refused(
        mt.UnsupportedOpError,
        lambda: model(input_ids=masked(1, 2, 3)),
        """mt.flat: BertForMultipleChoice has several sequences for each row; make the model inside it flat: mt.flat(model.base_model)""",
    )


def test_quantiles_with_weights() -> None:
    x, w = ones(2), torch.tensor([1.0, -1.0])
    refused(ValueError, lambda: mt.quantile(x, 0.5, weights=w), """quantile(): weights must not be negative""")
    refused(
        ValueError,
        lambda: mt.quantile(x, 0.5, weights=x, interpolation="nearest"),
        """quantile(): with weights= no value lies between two entries; leave interpolation= out""",
    )
    refused(RuntimeError, lambda: mt.quantile(x, 2.0, weights=x), """quantile() q must be in the range [0, 1]""")

"""No op path reads a value on the host, and none mixes devices: every entry, on the CPU, on ``meta`` and on a GPU.

``python -m pytest -m cuda`` runs what is marked ``cuda``; without a GPU it is skipped.
"""

import contextlib
from collections.abc import Iterator
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

import masked_tensor as mt
from masked_tensor.api.losses import masked_losses
from masked_tensor.errors import MaskedValueError, UnsupportedOpError

from .helpers import database, harness
from .helpers.harness import Masked, is_record
from .helpers.reads import no_sync
from .helpers.trees import tree_leaves, tree_map
from .laws import plain_runs
from .oracles import FAMILY, ORACLES

aten = torch.ops.aten
READS = {
    *(aten._local_scalar_dense.default, aten.is_nonzero.default, aten.equal.default, aten.nonzero.default),
    *(aten.masked_select.default, aten._unique2.default, aten.unique_consecutive.default, aten.allclose.default),
}
BY_NATURE = {
    "the result is a number of Python": {"allclose", "equal", "item"},
    "the length of the result, or its parts, depends on the values": {
        *("_segment_reduce.lengths", "_segment_reduce.offsets", "argwhere", "bincount", "combinations", "histc"),
        *("histogram", "histogramdd", "isin", "masked_select", "narrow", "nn.functional.one_hot", "nonzero"),
        *(("quantile", "nanquantile") if torch.__version__ < "2.13" else ()),
        *("tensor_split", "unique", "unique_consecutive", "index_put", "repeat_interleave", "__getitem__"),
    },
    "torch itself looks": {
        *(
            "nn.functional.ctc_loss",
            "nn.functional.gaussian_nll_loss",
            "nn.functional.embedding",
            "nn.functional.rrelu",
        ),
        *("cov", "corrcoef", "multinomial", "nn.functional.fractional_max_pool2d", "istft"),
    },
}
NO_META = ("geqrf", "linalg.lstsq")  # torch has no meta kernel for them
LOOKS = {name for names in BY_NATURE.values() for name in names}
ENTRIES = sorted(name for name in ORACLES if name in database.ENTRIES)


def _refused(x: Tensor, *args: Any, **kwargs: Any) -> Any:
    raise AssertionError("a tensor is brought to the host")


class NoReads(TorchDispatchMode):
    """Raises as soon as a value is asked for: on a GPU, the program would wait for it.

    ``item`` and ``bool`` are ops; ``tolist``, ``cpu`` and ``numpy`` of a tensor of the CPU are none.
    """

    METHODS = ("tolist", "cpu", "numpy")

    def __enter__(self) -> Any:
        for name in self.METHODS:
            setattr(Tensor, name, _refused)
        return super().__enter__()

    def __exit__(self, *error: Any) -> None:
        for name in self.METHODS:
            delattr(Tensor, name)
        super().__exit__(*error)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        assert func not in READS, f"{func} reads a value"
        return func(*args, **(kwargs or {}))


def cases(name: str) -> Iterator[database.Sample]:
    for sample in database.samples(name, limit=2):
        if plain_runs(sample):
            yield harness.masked_case(sample, "random")


def on(tree: Any, device: str) -> Any:
    """The arguments on another device."""

    def move(value: Any) -> Any:
        if isinstance(value, Masked):
            return Masked(value.data.to(device), value.mask.to(device))
        if isinstance(value, torch.device):
            return torch.device(device)
        if isinstance(value, Tensor):
            return value.to(device)
        return device if value == "cpu" else value

    return tree_map(move, tree, is_leaf=is_record)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", [name for name in ENTRIES if name not in LOOKS])
def test_no_value_is_read(name: str) -> None:
    for case in cases(name):
        backward = harness.plain_has_gradient(case)
        harness.run(case)  # makes the constants that are made once
        args, kwargs = harness.build((case.args, case.kwargs), float("nan"), backward)
        with NoReads():
            outputs = tree_leaves(case.op(*args, **kwargs))
            tracked = [o for o in outputs if isinstance(o, Tensor) and o.requires_grad]
            if tracked:
                torch.autograd.backward(tracked, [torch.ones_like(o) for o in tracked])


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", [name for name in ENTRIES if name not in LOOKS and name not in NO_META])
def test_nothing_is_made_on_another_device(name: str) -> None:
    for case in cases(name):
        args, kwargs = tree_map(
            lambda v: mt.as_masked_tensor(v.data, v.mask) if isinstance(v, Masked) else v,
            on((case.args, case.kwargs), "meta"),
            is_leaf=is_record,
        )
        for output in tree_leaves(case.op(*args, **kwargs)):
            if isinstance(output, Tensor):
                assert output.is_meta
                assert not mt.is_masked_tensor(output) or output.get_mask().is_meta


# ---------------------------------------------------------------------------------------------------------- on a GPU


WAITS = "called a synchronizing CUDA operation"  #: what torch says of a wait that is an error


def results(case: database.Sample, device: str, payload: float, allowed: bool) -> tuple[list[Any], list[Any]]:
    """Outputs and gradients, computed on ``device`` and brought back."""
    backward = harness.plain_has_gradient(case)
    args, kwargs = on((case.args, case.kwargs), "cpu")
    args, kwargs = tree_map(
        lambda v: v.detach().to(device).requires_grad_(v.requires_grad) if isinstance(v, Tensor) else v,
        harness.build((args, kwargs), payload, backward),
    )
    inputs = [v for v in tree_leaves((args, kwargs)) if isinstance(v, Tensor) and v.requires_grad]
    with no_sync(device, allowed):
        outputs = tree_leaves(case.op(*args, **kwargs))
        tracked = [o for o in outputs if isinstance(o, Tensor) and o.requires_grad]
        gradients = []
        if tracked and inputs:
            seeds = [torch.ones_like(o) for o in tracked]
            gradients = list(torch.autograd.grad(tracked, inputs, seeds, allow_unused=True))
    return tree_map(lambda v: v.cpu() if isinstance(v, Tensor) else v, (outputs, gradients))


def plain_on(case: database.Sample, device: str) -> tuple[bool, bool] | None:
    """Of torch's own op on plain data: whether it waits, and whether it gives what it gives on the CPU.

    It need not: among equal elements another index is found, a vector may have another sign, random numbers are others.
    None: torch cannot run it on ``device``.
    """
    args, kwargs = tree_map(
        lambda v: v.data if isinstance(v, Masked) else v, (case.args, case.kwargs), is_leaf=is_record
    )
    plain, waits = database.Sample(case.op, args, kwargs), False
    try:
        actual = results(plain, device, 0.0, False)
    except RuntimeError as error:
        waits = WAITS in str(error)
        if not waits:
            return None
        actual = results(plain, device, 0.0, True)
    try:
        for a, e in zip(tree_leaves(actual), tree_leaves(results(plain, "cpu", 0.0, True)), strict=True):
            harness.assert_same(a, e, "plain")
    except AssertionError:
        return waits, False
    return waits, True


NOT_RUN: list[str] = []  #: what torch itself could not run on a device, one name for each call
MOST_NOT_RUN = 20  #: operators; torch lacks a few on a GPU, and a broken installation lacks many


def check_device(name: str, device: str) -> None:
    """What ``device`` gives is what the CPU gives, whatever lies under the mask; and only waits where plain torch does.

    Where the values of plain torch differ between the two, only the validity is compared.
    """
    for case in cases(name):
        found = plain_on(case, device)
        if found is None:
            NOT_RUN.append(name)
            continue
        waits, equal = found
        try:
            expected = results(case, "cpu", 0.0, True)
        except (MaskedValueError, UnsupportedOpError):
            continue
        for payload in (float("nan"), 1e30):
            actual = results(case, device, payload, waits or name in LOOKS)
            for a, e in zip(tree_leaves(actual), tree_leaves(expected), strict=True):
                a, e = (x if equal else validity(x) for x in (a, e))
                harness.assert_same(a, e, f"{name} on {device} with payload {payload}")
    masked_losses.tell_sent(wait=True)  # or a later test is warned


def validity(x: Any) -> Any:
    return harness.seen(x).mask if isinstance(x, Tensor) else None


@pytest.mark.parametrize("name", ["sum", "softmax", "nn.functional.linear", "sort", "index_add", "unique"])
def test_the_comparison_of_devices_itself(name: str) -> None:
    check_device(name, "cpu")


@pytest.mark.cuda
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", [name for name in ENTRIES if FAMILY[name] != "random"])
def test_on_a_gpu(name: str) -> None:
    check_device(name, "cuda")


@pytest.mark.cuda
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
def test_a_gpu_ran_nearly_everything() -> None:
    """After the tests above, in one process: what torch itself could not run was compared with nothing."""
    assert len(set(NOT_RUN)) <= MOST_NOT_RUN, sorted(set(NOT_RUN))


def test_what_a_device_cannot_run_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.test_devices.NOT_RUN", not_run := [])
    check_device("sum", "nowhere")
    assert set(not_run) == {"sum"}


class Reads(TorchDispatchMode):
    """Counts how often a value is asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.count += func in READS
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize("name", ["SGD", "Adam", "AdamW", "Adagrad", "RMSprop"])
def test_an_optimizer_reads_what_it_reads_of_plain_gradients(name: str) -> None:
    """torch's Adam keeps its number of steps on the CPU, and reads it; a masked loss adds nothing."""
    counts = []
    for x in (torch.ones(2, 3), mt.masked_tensor([[1.0, None, 2.0], [3.0, 4.0, None]])):
        layer = torch.nn.Linear(3, 2)
        optimizer = getattr(torch.optim, name)(layer.parameters(), lr=0.1, foreach=True)
        for _ in range(2):
            optimizer.zero_grad()
            with Reads() as reads:
                layer(x).square().mean().backward(torch.ones(()))
                optimizer.step()
        counts.append(reads.count)
    assert counts[0] == counts[1]


def test_a_mean_over_parts_reads_nothing() -> None:
    layer = torch.nn.Linear(3, 1)
    parts = [mt.masked_tensor([[1.0, None, 2.0]]), mt.masked_tensor([[3.0, 4.0, None]])]
    mean = mt.mean_over(parameters=layer.parameters())
    for step in range(3):
        layer.zero_grad()
        with contextlib.nullcontext() if not step else NoReads():
            for part in parts:
                with mean:
                    loss = F.mse_loss(layer(part), torch.zeros(1, 1))
                loss.backward(torch.ones(()))
        mean.finish()  # on the CPU it reads whether to warn; what a GPU says of that is sent: test_total


@pytest.mark.cuda
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
@pytest.mark.parametrize("width", [64, 96, 128, 192, 224, 256])
@pytest.mark.parametrize("dropout", [0.0, 0.1])
def test_heads_of_every_width_are_trained_packed(width: int, dropout: float) -> None:
    q = torch.randn(2, 5, 2, width, device="cuda", dtype=torch.float16)
    x = mt.from_lengths(q, [5, 3]).packed().requires_grad_()
    heads = x.transpose(1, 2)
    F.scaled_dot_product_attention(heads, heads, heads, dropout_p=dropout).float().square().mean().backward()
    assert x.grad.filled(0).isfinite().all()


@pytest.mark.cuda
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
@pytest.mark.parametrize("packed", [False, True])
def test_a_step_is_captured_in_a_graph(packed: bool) -> None:
    """Warm-up and capture on a stream of their own, as torch's page on CUDA graphs has it; replayed on other data."""
    model = torch.nn.TransformerEncoderLayer(16, 2, 32, 0.0, batch_first=True, device="cuda")
    x = mt.from_lengths(torch.randn(4, 5, 16, device="cuda"), [5, 3, 1, 2])
    x = x.packed() if packed else x
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            model(x).square().mean().backward()
            model.zero_grad()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        model(x).square().mean().backward()
    graph.replay()
    captured = [p.grad.clone() for p in model.parameters()]
    model.zero_grad()
    model(x).square().mean().backward()
    torch.testing.assert_close(captured, [p.grad for p in model.parameters()])


@pytest.mark.cuda
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
def test_pinned_batches_arrive_without_waiting_and_train_in_half_precision() -> None:
    x = mt.from_lengths(torch.randn(4, 5, 16), [5, 3, 1, 2]).pin_memory()
    layer, scaler = torch.nn.Linear(16, 4, device="cuda"), torch.amp.GradScaler("cuda")
    optimizer, stream = torch.optim.SGD(layer.parameters(), lr=0.1), torch.cuda.Stream()
    with torch.cuda.stream(stream):
        y = x.to("cuda", non_blocking=True)
    torch.cuda.current_stream().wait_stream(stream)
    y.record_stream(torch.cuda.current_stream())
    with torch.autocast("cuda", torch.float16):
        loss = layer(y).float().square().mean()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    expected = torch.nn.functional.linear(x.to("cuda").packed().unpacked(), layer.weight, layer.bias)
    assert loss.isfinite()
    assert expected.count() == y.count() // 16 * 4


@pytest.mark.cuda
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
def test_a_training_step_on_a_gpu_never_waits() -> None:
    layer = torch.nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0, batch_first=True, device="cuda")
    model = torch.nn.Sequential(torch.nn.Linear(6, 16, device="cuda"), layer, torch.nn.LayerNorm(16, device="cuda"))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    x = mt.from_lengths(torch.randn(4, 5, 6), [5, 3, 1, 0]).to("cuda")
    with no_sync("cuda", allowed=False):
        for _ in range(2):
            optimizer.zero_grad()
            model(x).square().mean().backward()
            optimizer.step()
    assert all(p.isfinite().all() for p in model.parameters())

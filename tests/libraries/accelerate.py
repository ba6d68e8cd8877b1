"""accelerate: a model, its batch and its loss in one process; tests/test_trainers.py has training."""

from torch import nn

from ._case import Case, beside, load, ragged

LIBRARY = "accelerate"


def prepared(*layers):
    return lambda: load("accelerate").Accelerator(cpu=True).prepare_model(nn.Sequential(*layers).double())


def sent(x):
    """A batch on its way to a device."""
    return load("accelerate.utils").send_to_device({"x": [x]}, "cpu")["x"][0]


def padded(x):
    return load("accelerate.utils").pad_across_processes(x, dim=1)


def joined(x):
    return load("accelerate.utils").concatenate([{"x": x[:1]}, {"x": x[1:]}])["x"]


def sliced(x):
    return load("accelerate.utils").slice_tensors({"x": x}, slice(0, len(x)))["x"]


def gathered(x):
    return load("accelerate").Accelerator(cpu=True).gather_for_metrics(x)


def found(name, **options):
    return lambda: lambda x: getattr(load("accelerate.utils"), name)(x, **options)


CASES = [
    Case("Accelerator.prepare_model", prepared(nn.Linear(8, 4), nn.LayerNorm(4)), ragged((None, 8))),
    Case("Accelerator.gather_for_metrics", lambda: gathered, ragged((None, 8))),
    Case("send_to_device", lambda: sent, ragged((None, 8))),
    Case("pad_across_processes", lambda: padded, ragged((None, 8))),
    Case("concatenate", lambda: joined, beside((5,))),
    Case("convert_to_fp32", found("convert_to_fp32"), ragged((None, 8))),
    Case("slice_tensors", lambda: sliced, ragged((None, 8))),
    Case("reduce", found("reduce", reduction="mean"), ragged((None, 8))),
]

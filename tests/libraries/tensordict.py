"""tensordict: modules that read and write the entries of a TensorDict."""

from torch import nn

from ._case import Case, load, ragged

STEPS, PAIRS = ragged((None, 4)), ragged((None, 4), (None, 4))
LIBRARY = "tensordict"


def module(*args, keys=("x",)):
    return lambda: load("tensordict.nn").TensorDictModule(*args, in_keys=list(keys), out_keys=["y"])


def sequential():
    made, nn_ = load("tensordict.nn").TensorDictModule, load("tensordict.nn")
    return nn_.TensorDictSequential(
        made(nn.Linear(4, 8), ["x"], ["h"]), made(nn.Tanh(), ["h"], ["h"]), made(nn.Linear(8, 2), ["h"], ["y"])
    )


def written(model, x):
    return model(load("tensordict").TensorDict({"x": x}, batch_size=[len(x)]))["y"]


def operation(change):
    return lambda: lambda x: change(load("tensordict").TensorDict({"x": x, "in": {"z": 2 * x}}, batch_size=[len(x)]))


CASES = [
    Case("TensorDictModule", module(nn.Linear(4, 2)), STEPS, call=written),
    Case("TensorDictModule (LayerNorm)", module(nn.LayerNorm(4)), STEPS, call=written),
    Case("TensorDictSequential", sequential, STEPS, call=written),
    Case("TensorDict.apply", operation(lambda d: d.apply(lambda x: x.exp())["in", "z"]), STEPS),
    Case("TensorDict.clone", operation(lambda d: d.clone()["in", "z"]), STEPS),
    Case("TensorDict.__add__", operation(lambda d: (d + d)["in", "z"]), STEPS),
    Case("TensorDict.flatten_keys", operation(lambda d: d.flatten_keys(".")["in.z"]), STEPS),
    Case("stack, unbind", operation(lambda d: load("torch").stack(list(d.unbind(0)))["in", "z"]), STEPS),
    Case("cat, split", operation(lambda d: load("torch").cat(list(d.split(1)))["x"]), STEPS),
    Case("TensorDict.reshape", operation(lambda d: d.unsqueeze(0).reshape(-1)["x"]), STEPS),
    Case("TensorDict.where", operation(lambda d: d.where(d["x"][:, 0, 0] > -99, d * 2)["x"]), STEPS),
]

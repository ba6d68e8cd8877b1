"""einops: rearranging, reducing, and its layers."""

from ._case import Case, load, ragged


def layer(name, *args, **options):
    return lambda: getattr(load("einops.layers.torch"), name)(*args, **options)


def function(name, *args, **options):
    return lambda: lambda x: getattr(load("einops"), name)(x, *args, **options)


STEPS = ragged((None, 6))
LIBRARY = "einops"
CASES = [
    Case("rearrange", function("rearrange", "b t (h d) -> b t h d", h=2), STEPS),
    Case("reduce", function("reduce", "b t d -> b d", "mean"), STEPS),
    Case("reduce (max)", function("reduce", "b t (h d) -> b t h", "max", h=2), STEPS),
    Case("repeat", function("repeat", "b t d -> b t d r", r=3), STEPS),
    Case("einsum", lambda: lambda x: load("einops").einsum(x, x, "b t d, b s d -> b t s"), STEPS),
    Case("Rearrange", layer("Rearrange", "b t (h d) -> b t h d", h=2), STEPS),
    Case("Reduce", layer("Reduce", "b t d -> b d", "sum"), STEPS),
    Case("EinMix", layer("EinMix", "b t d -> b t e", weight_shape="d e", bias_shape="e", d=6, e=4), STEPS),
]

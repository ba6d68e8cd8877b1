"""zuko: normalizing flows, beside rows that are masked."""

from ._case import Case, beside, load


def flow(name, *args, **options):
    return lambda: getattr(load("zuko.flows"), name)(*args, **options)


def density(model, x, *context):
    return model(*context).log_prob(x)


ROWS, CONTEXT = beside((3,)), beside((3,), (2,))
SMALL = {"hidden_features": (8, 8)}
LIBRARY = "zuko"
CASES = [
    Case("NICE", flow("NICE", 3, transforms=2, **SMALL), ROWS, call=density),
    Case("MAF", flow("MAF", 3, 2, transforms=2, **SMALL), CONTEXT, call=lambda f, x, c: f(c).log_prob(x)),
    Case("NSF", flow("NSF", 3, 2, transforms=2, **SMALL), CONTEXT, call=lambda f, x, c: f(c).log_prob(x)),
    Case("SOSPF", flow("SOSPF", 3, transforms=2, **SMALL), ROWS, call=density),
    Case("NAF", flow("NAF", 3, transforms=1, **SMALL), ROWS, call=density),
    Case("UNAF", flow("UNAF", 3, transforms=1, **SMALL), ROWS, call=density),
    Case("BPF", flow("BPF", 3, transforms=2, **SMALL), ROWS, call=density),
    Case("GF", flow("GF", 3, transforms=2), ROWS, call=density),
    Case("CNF", flow("CNF", 3, **SMALL), ROWS, call=density),
    Case("GMM", flow("GMM", 3, components=4), ROWS, call=density),
    Case("MLP", lambda: load("zuko.nn").MLP(3, 2, (8, 8)), ROWS),
    Case("MaskedMLP", lambda: load("zuko.nn").MaskedMLP(load("torch").ones(3, 3).tril() > 0, (8, 8)), ROWS),
]

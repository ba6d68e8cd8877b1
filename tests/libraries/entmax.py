"""entmax: sparse softmaxes and their losses."""

from ._case import Case, beside, integers, load, ragged


def function(name, **options):
    return lambda: lambda *x: getattr(load("entmax"), name)(*x, **options)


ALONG, SCORES, TARGETS = ragged((None,), lengths=(5, 2, 4)), ragged((3, None)), beside((5,), integers(5))
LIBRARY = "entmax"
CASES = [
    Case("sparsemax", function("sparsemax", dim=-1), SCORES),
    Case("entmax15", function("entmax15", dim=-1), SCORES),
    Case("entmax_bisect", function("entmax_bisect", alpha=1.3, dim=-1), SCORES),
    Case("sparsemax_bisect", function("sparsemax_bisect", dim=-1), SCORES),
    Case("normmax_bisect", function("normmax_bisect", alpha=2, dim=-1), SCORES),
    Case("budget_bisect", function("budget_bisect", budget=2, dim=-1), ALONG, "declared",
         "divides the rest of the budget by the size of `dim`; run rows one by one"),
    Case("budget_bisect (padded beside dim)", function("budget_bisect", budget=2, dim=1), SCORES),
    Case("SparsemaxLoss", lambda: load("entmax").SparsemaxLoss(reduction="sum"), TARGETS),
    Case("Entmax15Loss", lambda: load("entmax").Entmax15Loss(reduction="sum"), TARGETS),
    Case(
        "Entmax15Loss (mean)",
        lambda: load("entmax").Entmax15Loss(),
        TARGETS,
        "declared",
        'divides by the number of rows; use `reduction="sum"`, and divide by `target.count()`',
    ),
]  # fmt: skip

"""ncps: liquid networks; recurrences that are written by hand."""

from ._case import Case, load, ragged


def put_back(model, x):
    mt, y = load("masked_tensor"), model(x)[0]
    return mt.as_masked_tensor(y.get_data(), x.get_mask()[..., :1]) if mt.is_masked_tensor(x) else y


STEPS = ragged((None, 6))
LIBRARY = "ncps"
CASES = [
    Case(
        "CfC",
        lambda: load("ncps.torch").CfC(6, 8),
        STEPS,
        "declared",
        "carries the states of a cell over masked steps, so that padding is valid; write "
        "`as_masked_tensor(y.get_data(), x.get_mask()[..., :1])`",
    ),
    Case("CfC (mask put back)", lambda: load("ncps.torch").CfC(6, 8), STEPS, call=put_back),
    Case("LTC", lambda: load("ncps.torch").LTC(6, 8), STEPS),
    Case("CfCCell", lambda: load("ncps.torch").CfCCell(6, 8), ragged((6,), (8,)), call=lambda m, x, h: m(x, h, 1.0)),
]

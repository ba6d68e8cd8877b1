"""pytorch-crf: conditional random fields over padded sequences."""

from ._case import Case, integers, load, ragged

GIVEN = ragged((None, 3), integers(3, None))
LIBRARY = "pytorch-crf"


def scores(crf, x, tags):
    """One number for each sequence, which all have one."""
    found = crf(x, tags, reduction="none")
    mt = load("masked_tensor")
    return mt.as_masked_tensor(found, found == found) if mt.is_masked_tensor(x) else found


CASES = [Case("CRF", lambda: load("torchcrf").CRF(3, batch_first=True), GIVEN, call=scores)]

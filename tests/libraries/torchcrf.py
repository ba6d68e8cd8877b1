"""pytorch-crf: conditional random fields; a recurrence that is written by hand."""

from ._case import Case, integers, load, ragged

LIBRARY = "pytorch-crf"
CASES = [
    Case(
        "CRF",
        lambda: load("torchcrf").CRF(3, batch_first=True),
        ragged((None, 3), integers(3, None)),
        "declared",
        "masked after the first masked step: it is a recurrence by hand. Give it the mask: "
        "`crf(x.filled(0), tags.filled(0), mask=x.get_mask()[..., 0])`",
        call=lambda crf, x, tags: crf(x, tags, reduction="none"),
    ),
    Case(
        "CRF (mask=)",
        lambda: load("torchcrf").CRF(3, batch_first=True),
        ragged((None, 3), integers(3, None)),
        call=lambda crf, x, tags: with_mask(crf, x, tags),
    ),
]


def with_mask(crf, x, tags):
    mt = load("masked_tensor")
    if not mt.is_masked_tensor(x):
        return crf(x, tags, reduction="none")
    found = crf(x.filled(0), tags.filled(0), mask=x.get_mask()[..., 0], reduction="none")
    return mt.as_masked_tensor(found, found == found)

"""The part of the page on heads, and the column of the table of all types."""

from collections import Counter

from . import other_page
from .head_rows import HEADS
from .heads import FORMS

RIGHT = ("exact", "helped")
COLUMNS = (*RIGHT, "differs", "refused", "fails alone", "not built")
POOLED = "scores are valid"
#: Why a batch is not what its rows are, where the type itself is.
REASONS = {
    "big_bird": "finds the end of a question at the first separator, counted from the padded start",
    "convbert": "for multiple choice, use `to_right(x)` with `position_ids`",
    "jetmoe": "exact in float32; its float32 softmax turns the lowest float64, which its mask adds, into -inf",
    "mbart": "moves the last token of each row to the front, which makes its decoder one step longer",
    "mobilebert": '`meaning(product="all")` unpacks a batch packed along its last dimension, and `view` then fails',
    "roc_bert": '`meaning(product="all")` unpacks a batch packed along its last dimension, and `view` then fails',
    "roformer": "for multiple choice with padding on the right, use `to_right(x)`",
    "t5gemma": "reads the step after the last token, which an unpadded row does not have",
}
HEAD = """## Heads

The heads of text models and speech recognisers, trained eager in float64 (`python -m tests.models --heads`; {count}
heads of {types} types). These are compared with the rows alone: the scores (1e-6), the loss, the auxiliary losses of
experts from their router logits, and the gradient of the loss for every parameter. (The tolerance of losses and
gradients is 1e-5, since transformers computes losses in float32.) The loss of the batch is the mean over all its
labels. Labels are masked like their tokens, with a valid class under the mask. Padding is on the right, on the left
(`to_right`), or not stored (`packed`). *Embedding* is the mean of the states over time, with a loss that compares the
rows.

| head | padding | {columns} |
|---|---|{lines}
{counted}

*Helped* types use the setting that the tables above or in [Padding on the left](#padding-on-the-left) name, or
`decoder_input_ids`. A decoder whose tokens are shifted from masked ones has one more step in short rows: pass
`as_masked_tensor(shifted, labels.get_mask())`. Three groups differ for a known reason:

- {pooled} read `x[:, 0]`, which is padding if the row is padded on the left. The scores of such rows are masked, and
  their labels do not count.
- {behind} differ with padding on the left even without a head: see [Padding on the left](#padding-on-the-left).
- {without} differ, or fail alone, even without a head: see [All types](#all-types).

| type | head, padding | what was seen |
|---|---|---|
{rest}"""


def column(name: str) -> str:
    """How many heads of a type are exact or helped, padded behind, in front and packed; of how many."""
    found = other_page.known("heads").get(name, {})
    good = [sum(found[k][0] in RIGHT for k in found if k.endswith(form)) for form in FORMS]
    return f"{', '.join(map(str, good))} of {len(found) // len(FORMS)}" if found else ""


def section() -> str:
    """The section on heads."""
    found, base, front = other_page.known("heads"), other_page.known_types(), other_page.known("left")
    counted = []
    for head in HEADS:
        for form in FORMS:
            of = Counter(said[f"{head}, {form}"][0] for said in found.values() if f"{head}, {form}" in said)
            if of:
                counted.append(f"| {head} | {form} | {' | '.join(str(of[c]) for c in COLUMNS)} |")
    pooled, behind, without = set(), set(), set()
    rest: dict[tuple[str, str], list[str]] = {}
    for name, said in found.items():
        for where, (outcome, detail) in said.items():
            if outcome in RIGHT:
                continue
            if base.get(name, {}).get("eager", ["exact"])[0] not in RIGHT:
                without.add(name)
            elif where.endswith("left") and front.get(name, {}).get("left", ["exact"])[0] not in RIGHT:
                behind.add(name)
            elif where.endswith("left") and detail.startswith("0 of") and detail.endswith(POOLED):
                pooled.add(name)
            else:
                kind = outcome if outcome == "differs" else f"{outcome}: {detail}".replace("`", "'").replace("|", "/")
                rest.setdefault((name, kind), []).append(f"{where} ({detail})" if outcome == "differs" else where)
    lines = [
        f"| `{name}` | {'; '.join(places)} | {'; '.join(filter(None, [kind, REASONS.get(name, '')]))} |"
        for (name, kind), places in sorted(rest.items())
    ]
    return HEAD.format(
        count=sum(len({k.partition(",")[0] for k in said}) for said in found.values()),
        types=len(found),
        columns=" | ".join(COLUMNS),
        lines="---:|" * len(COLUMNS),
        counted="\n".join(counted),
        pooled=_names(pooled),
        behind=_names(behind),
        without=_names(without),
        rest="\n".join(lines),
    )


def _names(names: set[str]) -> str:
    return ", ".join(f"`{name}`" for name in sorted(names))

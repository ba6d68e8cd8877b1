"""The parts of the page on padding in front, and on ``meaning(product="all")``."""

from collections import Counter

from . import other_page
from .left import FIRST

#: Why a batch that is padded in front is not what its rows are; and what to do.
REASONS = {
    "canine": "splits time into blocks, and reads the last step of each",
    "deepseek_v4": "compresses windows of time that start at the first position of the batch",
    "dpr": "its output is `x[:, 0]`, which is padding",
    "fastspeech2_conformer": "expands tokens into frames by their durations, in a plain tensor",
    "fnet": "mixes a whole row with a Fourier transform, so a row with padding is masked",
    "funnel": "treats `x[:, 0]` separately, and pools time by two",
    "mra": "splits the padded length into blocks",
    "nystromformer": "averages pieces of the padded length into landmarks",
    "vits": "its splines write into plain tensors, and it draws random durations, even with padding on the right",
    "jetmoe": "exact in float32; its float32 softmax turns the lowest float64, which its mask adds, into -inf",
}
COUNTED = "counts positions from the padded start, and accepts no `position_ids`; its own mask has the same effect"
STEPS = "has a recurrence of its own, which stays masked after its first masked step"
OFFSET = (
    "prophetnet roformer bart bigbird_pegasus blenderbot blenderbot-small led marian mbart mvp pegasus pegasus_x plbart"
)
REASONS |= dict.fromkeys(OFFSET.split(), COUNTED)
REASONS |= dict.fromkeys(("falcon_mamba", "jamba", "mamba", "recurrent_gemma", "rwkv", "xlstm", "zamba"), STEPS)
HEAD = """## Padding on the left

The text models, eager and in float64, with padding on the left (for an encoder-decoder, on the left of the encoder's
tokens). `to_right` makes the input, and `to_left` moves the result back (`python -m tests.models --left`; {count}
types). *Helped* types are exact with the setting or argument that the table names. Models that count positions from 0
need `position_ids`: `(mask.cumsum(1) - 1).clamp(min=0)`, where `mask` is that of the batch. {first} of the exact and
helped types also return a `pooler_output` that reads `x[:, 0]`, which is masked if the row begins with padding. If a
model differs with padding on the left, pad on the right, as above.

| exact | helped | differs | refused | fails alone | not built |
|---:|---:|---:|---:|---:|---:|
| {counts} |

| what helps | types |
|---|---|
{helped}

| type | what was seen |
|---|---|
{rest}"""
COLUMNS = ("exact", "helped", "differs", "refused", "fails alone", "not built")


def section() -> str:
    """The section on padding in front."""
    found = {name: said["left"] for name, said in other_page.known("left").items()}
    counts = Counter(outcome for outcome, _ in found.values())
    helped: dict[str, list[str]] = {}
    rest = []
    for name, (outcome, detail) in sorted(found.items(), key=lambda item: item[0].lower()):
        if outcome == "helped":
            helped.setdefault(detail.replace(FIRST, ""), []).append(f"`{name}`")
        elif outcome in ("differs", "refused"):
            seen = detail.replace("`", "'").replace("|", "/")
            rest.append(f"| `{name}` | {'; '.join(filter(None, [f'{outcome}: {seen}', REASONS.get(name, '')]))} |")
    return HEAD.format(
        count=len(found),
        first=sum(FIRST in detail for _, detail in found.values()),
        counts=" | ".join(str(counts[column]) for column in COLUMNS),
        helped="\n".join(f"| {means} | {', '.join(names)} |" for means, names in helped.items()),
        rest="\n".join(rest),
    )

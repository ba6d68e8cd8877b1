"""The parts of the page on padding in front, and on ``meaning(product="all")``."""

from collections import Counter

from . import other_page
from .left import FIRST

#: Why a batch that is padded in front is not what its rows are; and what to do.
REASONS = {
    "canine": "cuts time into blocks, and reads the last step of each",
    "deepseek_v4": "compresses windows of time, which begin where the padded batch does",
    "dpr": "its output is `x[:, 0]`, which is padding",
    "fastspeech2_conformer": "makes frames out of tokens by durations, in a plain tensor",
    "fnet": "mixes a whole row by a Fourier transform: with padding it is masked",
    "funnel": "keeps `x[:, 0]` apart, and pools time by two",
    "mra": "cuts the padded length into blocks",
    "nystromformer": "its landmarks are means over pieces of the padded length",
    "vits": "its splines write into plain tensors, and it draws random durations; padded behind, too",
    "jetmoe": "exact in float32: its softmax in float32 makes -inf of the least float64, which its mask adds",
}
COUNTED = "counts positions from the padded start, and takes no `position_ids`; its own mask has the same effect"
STEPS = "a recurrence by hand, which stays masked after its first masked step"
OFFSET = (
    "prophetnet roformer bart bigbird_pegasus blenderbot blenderbot-small led marian mbart mvp pegasus pegasus_x plbart"
)
REASONS |= dict.fromkeys(OFFSET.split(), COUNTED)
REASONS |= dict.fromkeys(("falcon_mamba", "jamba", "mamba", "recurrent_gemma", "rwkv", "xlstm", "zamba"), STEPS)
HEAD = """## Padding on the left

The text models as eager code, in float64, with the padding in front of the rows, of an encoder-decoder in front of the
tokens of the encoder: `x = to_right(x)`, and the result moved back by `to_left` (`python -m tests.models --left`;
{count} types). *Helped*: exact with what the table names: models that count positions from 0 need `position_ids`,
`(mask.cumsum(1) - 1).clamp(min=0)` of the batch's mask. {first} of the exact and helped types also give a
`pooler_output` that reads `x[:, 0]`: it is masked where a row begins with padding. Where padding in front differs, give
the model rows that are padded behind, as above.

| exact | helped | differs | refused | fails alone | not built |
|---:|---:|---:|---:|---:|---:|
| {counts} |

| | types |
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

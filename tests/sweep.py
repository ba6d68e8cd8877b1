"""The whole operator database under the laws that need no oracle; ``python -m tests.sweep`` prints the score by family.

Every entry *passes* (garbage invariance, gradients, identity), is *refused* with the documented error, or is *wrong*.
With names (``python -m tests.sweep softmax norm``) only entries that contain one of them are judged.
"""

import sys
import warnings
from collections import Counter
from dataclasses import dataclass

import torch

from masked_tensor.errors import MaskedValueError, UnsupportedOpError

from .helpers import database, harness, transforms
from .oracles import FAMILY, XFAIL

# Entries that no masked tensor can reach, and why.
NOT_APPLICABLE = {
    "makes a tensor from sizes and numbers": {
        *("arange", "broadcast_shapes", "linspace", "logspace", "ones", "zeros", "full", "empty", "eye", "randn"),
        *("randint", "empty_strided", "empty_permuted", "scalar_tensor", "triu_indices", "tril_indices"),
        *("linspace.tensor_overload", "logspace.tensor_overload", "normal.number_mean"),
        *(name for name in database.ENTRIES if name.startswith("signal.windows.")),
    },
    "uninitialised memory or random by definition": {
        *("empty_like", "new_empty", "new_empty_strided", "resize_", "resize_as_"),
    },
    "its argument is a part of a larger storage, which the harness's copies are not": {"as_strided.partial_views"},
    "needs a CUDA device": {
        *(name for name in database.ENTRIES if name.startswith("jiterator")),
        *("torch._scaled_mm", "torch._scaled_mm_v2"),
        *("torch.ops.aten._flash_attention_forward", "torch.ops.aten._efficient_attention_forward"),
    },
    "a sparse result, which the harness cannot compare: see test_sparse": {"to_sparse"},
    "its offsets, which the harness masks too, must be plain: see test_embedding": {"nn.functional.embedding_bag"},
    "the peer's own functions, tested as ours in test_matrix": {
        *(name for name in database.ENTRIES if name.startswith("masked.")),
    },
}
SKIPPED = {name: reason for reason, names in NOT_APPLICABLE.items() for name in names}

# No honest masked meaning: every result depends on every entry, masked ones included.
REFUSED = {
    "a hash of the bytes": {"hash_tensor"},
    "a plain sparse factor, whose gradient would be lost": {"sparse.sampled_addmm", "sparse.mm.reduce"},
}
REASONS = {name: reason for reason, names in REFUSED.items() for name in names}


@dataclass(frozen=True)
class Verdict:
    """What became of one entry."""

    name: str
    outcome: str  # passes, refused, wrong, skipped
    detail: str = ""
    backward: bool = False  # a gradient came back, too


def judge(name: str, limit: int = 4, laws: bool = True) -> Verdict:
    """Runs the laws on a few samples of one entry, save those the law tests expect to fail (with their reasons).

    Without ``laws`` it is only seen whether a result and a gradient come out.
    """
    if name in SKIPPED:
        return Verdict(name, "skipped", SKIPPED[name])
    backward, ran, refused = False, 0, ""
    for sample in database.samples(name, limit=limit):
        case = harness.masked_case(sample, "random")
        if not list(harness.masked_leaves((case.args, case.kwargs))):
            continue
        try:
            backward |= _differentiates(case)
            if laws:
                _keeps_the_laws(name, sample, case)
            ran += 1
        except MaskedValueError:  # the documented refusal: a masked entry was asked for its value
            continue
        except UnsupportedOpError as error:
            refused = str(error).split(" has no")[0]
        except Exception as error:  # every other exception is a finding
            return Verdict(name, "wrong", f"{type(error).__name__}: {str(error)[:160]}")
    if refused and (not ran or name in REASONS):
        return Verdict(name, "refused", refused)
    if not ran:
        return Verdict(name, "skipped", "no tensor argument")
    return Verdict(name, "passes", f"{ran} samples{refused and ', others refused: '}{refused}", backward)


def _differentiates(case: database.Sample) -> bool:
    """Whether the op runs, and autograd connects a result with an input."""
    outputs, _ = harness.run(case, requires_grad=harness.plain_has_gradient(case))
    return any(isinstance(o, torch.Tensor) and o.requires_grad for o in outputs)


def _keeps_the_laws(name: str, sample: database.Sample, case: database.Sample) -> None:
    """Raises what a broken law raises."""
    if (name, "garbage") not in XFAIL:
        harness.check_garbage(case)
    if (name, "identity") not in XFAIL and not harness.ignores(sample):
        harness.check_identity(sample)
    if (name, "gradient") not in XFAIL and plain_gradcheck_passes(sample):
        harness.check_gradient(case)


def plain_gradcheck_passes(sample: database.Sample) -> bool:
    """Whether torch's own gradient of the sample survives gradcheck (repeated indices and the like do not)."""
    try:
        harness.check_gradient(sample)
    except (RuntimeError, AssertionError):  # a GradcheckError, or a large sample along a direction
        return False
    return True


COLUMNS = ("entries", "forward", "differentiable", "backward", "refused", "wrong", "strict xfails", "not applicable")


def score(verdicts: list[Verdict]) -> str:
    """A table in Markdown: what became of the entries of each family, and the total."""
    rows: dict[str, Counter[str]] = {}
    for verdict in verdicts:
        row = rows.setdefault(_family(verdict), Counter())
        row["entries"] += 1
        row[{"passes": "forward", "skipped": "not applicable"}.get(verdict.outcome, verdict.outcome)] += 1
        row["differentiable"] += verdict.outcome == "passes" and (verdict.backward or _differentiable(verdict.name))
        row["backward"] += verdict.backward
        row["strict xfails"] += sum(verdict.name == name for name, _ in (*XFAIL, *transforms.XFAIL))
    rows = dict(sorted(rows.items())) | {"**all**": sum(rows.values(), Counter())}
    lines = [f"| family | {' | '.join(COLUMNS)} |", "|---|" + "---:|" * len(COLUMNS)]
    lines += [f"| {family} | " + " | ".join(str(row[c]) for c in COLUMNS) + " |" for family, row in rows.items()]
    return "\n".join(lines) + "\n"


def _differentiable(name: str) -> bool:
    return database.ENTRIES[name].supports_autograd and any(d.is_floating_point for d in database.dtypes(name))


def _family(verdict: Verdict) -> str:
    if verdict.outcome == "skipped":
        return "*no masked argument*"
    return FAMILY.get(verdict.name) or f"*{REASONS.get(verdict.name, 'made of other ops')}*"


def main() -> None:
    names = [n for n in database.ENTRIES if not sys.argv[1:] or any(a in n for a in sys.argv[1:])]
    warnings.simplefilter("ignore")
    verdicts = [judge(name) for name in names]
    for verdict in verdicts:
        if verdict.outcome in ("wrong", "refused") or "refused" in verdict.detail:
            print(f"{verdict.outcome:8} {verdict.name:45} {verdict.detail}".replace("\n", " "), file=sys.stderr)
    print(score(verdicts), end="")


if __name__ == "__main__":
    main()

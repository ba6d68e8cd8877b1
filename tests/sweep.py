"""The whole operator database under the laws that need no oracle; ``python -m tests.sweep`` prints the score.

Every entry *passes* (garbage invariance, gradients, identity), is *refused* with the documented error, or is *wrong*.
"""

import sys
import warnings
from collections import Counter
from dataclasses import dataclass

import torch

from masked_tensor.errors import MaskedValueError, UnsupportedOpError

from . import database, harness
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
    "the peer's own functions, tested as ours in test_functional": {
        *(name for name in database.ENTRIES if name.startswith("masked.")),
    },
}
SKIPPED = {name: reason for reason, names in NOT_APPLICABLE.items() for name in names}


@dataclass(frozen=True)
class Verdict:
    """What became of one entry."""

    name: str
    outcome: str  # passes, refused, wrong, skipped
    detail: str = ""
    backward: bool = False  # a gradient was checked, too


def judge(name: str, limit: int = 4) -> Verdict:
    """Runs the laws on a few samples of one entry, save those the law tests expect to fail (with their reasons)."""
    if name in SKIPPED:
        return Verdict(name, "skipped", SKIPPED[name])
    backward, ran = False, 0
    for sample in database.samples(name, limit=limit):
        case = harness.masked_case(sample, "random")
        if not list(harness.masked_leaves((case.args, case.kwargs))):
            continue
        try:
            backward |= _keeps_the_laws(name, sample, case)
            ran += 1
        except MaskedValueError:  # the documented refusal: a hole was asked for its value
            continue
        except UnsupportedOpError as error:
            return Verdict(name, "refused", str(error).split(" has no")[0])
        except Exception as error:  # every other exception is a finding
            return Verdict(name, "wrong", f"{type(error).__name__}: {str(error)[:160]}")
    if not ran:
        return Verdict(name, "skipped", "no tensor argument")
    return Verdict(name, "passes", f"{ran} samples", backward)


def _keeps_the_laws(name: str, sample: database.Sample, case: database.Sample) -> bool:
    """Raises what a broken law raises; returns whether a gradient was checked."""
    backward = harness.plain_has_gradient(case)
    outputs, _ = harness.run(case, requires_grad=backward)
    if (name, "garbage") not in XFAIL:
        harness.check_garbage(case)
    empty = any(not m.data.numel() for m in harness.masked_leaves((case.args, case.kwargs)))
    if (name, "identity") not in XFAIL and not empty:  # L6: a slice of nothing is masked
        harness.check_identity(sample)
    if (name, "gradient") not in XFAIL and plain_gradcheck_passes(sample):
        harness.check_gradient(case)
    return any(isinstance(o, torch.Tensor) and o.requires_grad for o in outputs)


def plain_gradcheck_passes(sample: database.Sample) -> bool:
    """Whether torch's own gradient of the sample survives gradcheck (repeated indices and the like do not)."""
    try:
        harness.check_gradient(sample)
    except RuntimeError:  # a GradcheckError is one
        return False
    return True


def main() -> None:
    names = [n for n in database.ENTRIES if not sys.argv[1:] or any(a in n for a in sys.argv[1:])]
    total: Counter[str] = Counter()
    warnings.simplefilter("ignore")
    for name in names:
        verdict = judge(name)
        total[verdict.outcome] += 1
        total["backward"] += verdict.backward
        if verdict.outcome in ("wrong", "refused"):
            print(f"{verdict.outcome:8} {name:45} {verdict.detail}".replace("\n", " "), flush=True)
    applicable = sum(total[k] for k in ("passes", "refused", "wrong"))
    print(dict(total), f"{total['passes'] / max(1, applicable):.1%} of {applicable}", f"with an oracle: {len(FAMILY)}")


if __name__ == "__main__":
    main()

"""The laws over torch's operator database: one test per entry and law, generated from the families' oracles.

The test file of each family asks for those of its own: ``test_law = laws("softmax")``.
"""

import itertools
import os
import warnings
from collections.abc import Callable
from zlib import crc32

import pytest
import torch

from masked_tensor import settings
from masked_tensor.engine.table import ENTRIES
from masked_tensor.errors import MaskedValueError

from .helpers import database, harness, transforms
from .helpers.trees import tree_leaves
from .oracles import FAMILY, ORACLES, XFAIL

LAWS = ("value", "garbage", "gradient", "identity", "inplace", "compiled", "inference", "vmap", "autocast")
FEW = ("compiled", "inference", "vmap", "autocast")  # one mask each
PATTERNS = ("random", "rows", "none")
RECORDED = settings.RECORDED
PAYLOADS = harness.PAYLOADS
# Twice the samples of each entry, each with every pattern of masks and all garbage, not one in turn; all compiled.
# Known failures take all.
WHOLE = bool(os.environ.get("MASKED_TENSOR_LAWS"))
COSTLY = ("linalg", "solve", "fourier")  # many entries that share few rules, and masked or not is all there is to see


def _compiled() -> set[str]:
    """The entries that are compiled, which takes as long as all other laws: one of each rule, a sixth of the others."""
    chosen, rules = set(), set()
    for name in sorted(set(ORACLES) & set(database.ENTRIES)):
        packet = getattr(torch.ops.aten, database.ENTRIES[name].aten_name or name, None)
        overloads = [getattr(packet, overload) for overload in packet.overloads()] if packet else []
        rule = next((ENTRIES[overload].op.rule for overload in overloads if overload in ENTRIES), FAMILY[name])
        if rule not in rules or crc32(name.encode()) % 6 == 0:
            chosen.add(name)
        rules.add(rule)
    return chosen


COMPILED = _compiled()


def _parameters(family: str) -> list:
    result = []
    for name, law in itertools.product(sorted(n for n in ORACLES if FAMILY[n] == family), LAWS):
        if name not in database.ENTRIES or (law == "inplace" and database.ENTRIES[name].inplace_variant is None):
            continue
        if law == "compiled" and not (WHOLE or (name, law) in XFAIL or name in COMPILED):
            continue
        reason = XFAIL.get((name, law)) or transforms.XFAIL.get((name, law))
        marks = [pytest.mark.xfail(reason=reason, strict=True)] if reason else []
        result.append(pytest.param(name, law, marks=marks, id=f"{name}-{law}"))
    return result


def laws(family: str) -> Callable[..., None]:
    """A test of every law for every entry of the family."""

    @pytest.mark.filterwarnings("ignore::masked_tensor.MaskedLossWarning")  # samples of which nothing is valid
    @pytest.mark.filterwarnings("ignore:There is a performance drop")  # vmap's, of ops without a batching rule
    @pytest.mark.filterwarnings("ignore:reduction. 'mean' divides the total loss")  # kl_div's own notice
    @pytest.mark.filterwarnings("ignore:linear_cross_entropy. ``options`` ignored")  # torch's choice of another path
    @pytest.mark.filterwarnings("ignore:Using torch.cross without specifying the dim")  # a sample of the database
    @pytest.mark.filterwarnings("ignore:.* joins valid features to masked steps")  # samples of which one part is masked
    @pytest.mark.parametrize(("name", "law"), _parameters(family))
    def test_law(
        name: str, law: str, record_property: Callable[[str, object], None], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        checked = ran = 0
        whole = WHOLE or (name, law) in XFAIL
        samples = list(_samples(name, law))
        for k, sample in enumerate(samples):
            if ran == (1 if law == "compiled" else 6) and not whole:
                break
            if not plain_runs(sample) or (law == "gradient" and extreme(sample)):
                continue
            if law == "identity" and harness.ignores(sample):
                continue
            # Samples are tiny: every other one is recorded as a large tensor is.
            monkeypatch.setattr(settings, "RECORDED", RECORDED if k % 2 else 0)
            before = checked
            patterns = PATTERNS if whole or len(samples) < 2 * len(PATTERNS) else (PATTERNS[k % len(PATTERNS)],)
            for case in _cases(sample, law, patterns):
                try:
                    _check(
                        name, law, sample, case, PAYLOADS if whole else (PAYLOADS[0], PAYLOADS[1 + (k + k // 3) % 3])
                    )
                except (
                    MaskedValueError
                ):  # the documented refusal: a masked entry was asked where to split, what to repeat ...
                    continue
                checked += 1
            ran += checked > before
        record_property("law", (FAMILY[name], name, checked))
        assert checked or law == "inplace", "no sample of the database could be run"

    return test_law


def _samples(name, law):
    if law == "compiled":
        return database.samples(name, limit=2)
    if law == "autocast":  # which leaves float64 alone
        dtype = torch.float32 if torch.float32 in database.ENTRIES[name].supported_dtypes("cpu") else None
        return database.samples(name, dtype, limit=4)
    if law == "vmap":
        return database.samples(name, limit=4)
    # The oracle of __getitem__ has plain keys alone; the known failures are those of other samples.
    forms = name != "__getitem__" and (name, law) not in XFAIL
    if law == "inference" or FAMILY[name] in COSTLY:
        return database.samples(name, limit=4, forms=forms)
    if forms:
        return database.samples(name, forms=True)
    found = list(database.samples(name))
    return [*found[::2], *found[1::2]]  # the database orders simple samples first


def _cases(sample, law, patterns):
    if law == "identity":
        return [sample]
    if law in FEW:
        return [harness.masked_case(sample, "random")]
    return [
        harness.masked_case(sample, pattern, which, seed)
        for seed, (pattern, which) in enumerate(itertools.product(PATTERNS, ("all", "first")))
        if pattern in patterns
    ]


def plain_runs(sample) -> bool:
    args, kwargs = harness.build((sample.args, sample.kwargs))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            sample.op(*args, **kwargs)
    except (RuntimeError, ValueError, IndexError, TypeError):
        return False
    return any(isinstance(a, torch.Tensor) for a in tree_leaves((args, kwargs)))


def extreme(sample) -> bool:
    """Whether there is an operand for which finite differences say nothing."""
    args = tree_leaves((sample.args, sample.kwargs))
    given = [a for a in args if isinstance(a, torch.Tensor) and a.is_floating_point()]
    return any(bool((a.detach().abs() > 1e150).any()) or bool(a.isnan().any()) for a in given)


def _check(name, law, sample, case, payloads):
    if law == "value":
        harness.check_value(case, ORACLES[name])
    elif law == "garbage":
        harness.check_garbage(case, payloads)
    elif law == "gradient":
        harness.check_gradient(case)
    elif law == "identity":
        harness.check_identity(case)
    elif law == "inplace":
        harness.check_inplace(case, database.ENTRIES[name].inplace_variant)
        harness.check_inplace_of_views(case, database.ENTRIES[name].inplace_variant)
    elif law == "compiled":
        harness.check_compiled(case)
    elif law == "inference":
        transforms.check_inference(case)
    elif law == "vmap":
        transforms.check_vmap(case, values=FAMILY[name] != "random")  # vmap draws in another order than a loop
    else:
        differs = (name, "identity") in XFAIL or harness.ignores(sample)
        transforms.check_autocast(case, None if differs else sample)

"""torchrl: returns and advantages in a loop and in vectors, networks, and a loss."""

import torch

import masked_tensor as mt

from ._case import Case, beside, load, ragged, unit

STEPS = (None, 1)
EPISODES = ragged(STEPS, STEPS, STEPS)
LIBRARY = "torchrl"


def last_of(x):
    """An episode is over at its last step, and not before."""
    steps = x.get_mask() if mt.is_masked_tensor(x) else torch.ones_like(x, dtype=torch.bool)
    return steps & ~torch.nn.functional.pad(steps, (0, 0, 0, 1))[..., 1:, :]


def estimate(name, *args, fill=False):
    """The function as it is, or on zeros with the mask put back: from the end backwards, zeros add nothing."""

    def run(value, following, reward):
        value, following, given = [mt.filled(x, 0) if fill else x for x in (value, following, reward)]
        values = [value] if "advantage" in name else []
        found = getattr(load("torchrl.objectives.value.functional"), name)(
            0.9, *args, *values, following, given, last_of(reward)
        )
        found = found[0] if isinstance(found, tuple) else found
        return mt.as_masked_tensor(found, reward.get_mask()) if fill and mt.is_masked_tensor(reward) else found

    return lambda: run


def net(name, *args, **options):
    return lambda: getattr(load("torchrl.modules"), name)(*args, **options)


def log_prob(distribution, **options):
    def run(mean, scale, action):
        return getattr(load("torchrl.modules"), distribution)(mean, scale, **options).log_prob(action)

    return lambda: run


def distance(kind):
    return lambda: lambda x, y: load("torchrl.objectives.utils").distance_loss(x, y, kind).mean()


BACK = (
    "use the function with `vec_` in its name, or fill values and rewards with 0 and put the mask back: "
    "`as_masked_tensor(advantage, reward.get_mask())`"
)
LOOP = f"runs a recurrence from the end, which is masked in short episodes; {BACK}"
WRITES = f"writes into a plain tensor; {BACK}"
LOOPS = [("td1_return_estimate", ()), ("td_lambda_return_estimate", (0.8,)), ("td_lambda_advantage_estimate", (0.8,))]
WHOLE = [
    ("td0_return_estimate", ()),
    ("vec_generalized_advantage_estimate", (0.8,)),
    ("vec_td1_return_estimate", ()),
    ("vec_td_lambda_return_estimate", (0.8,)),
    ("vec_td_lambda_advantage_estimate", (0.8,)),
]
GAE = ("generalized_advantage_estimate", (0.8,))
CASES = [
    *[Case(name, estimate(name, *args), EPISODES) for name, args in WHOLE],
    Case(GAE[0], estimate(GAE[0], *GAE[1]), EPISODES, "refused", WRITES),
    *[Case(name, estimate(name, *args), EPISODES, "declared", LOOP) for name, args in LOOPS],
    *[Case(f"{name} (filled)", estimate(name, *args, fill=True), EPISODES) for name, args in [GAE, *LOOPS, *WHOLE]],
    Case("MLP", net("MLP", in_features=4, out_features=2, num_cells=[8]), ragged((None, 4))),
    Case("NormalParamExtractor", net("NormalParamExtractor"), ragged((None, 4))),
    Case("TanhNormal.log_prob", log_prob("TanhNormal"), beside((3,), unit(3), unit(3))),
    Case("TruncatedNormal.log_prob", log_prob("TruncatedNormal"), beside((3,), unit(3), unit(3))),
    Case("IndependentNormal.log_prob", log_prob("IndependentNormal"), beside((3,), unit(3), (3,))),
    *[Case(f"distance_loss ({kind})", distance(kind), beside((4,), (4,))) for kind in ("l1", "l2", "smooth_l1")],
]  # fmt: skip

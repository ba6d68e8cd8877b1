"""Random programs of views, reads, writes and joins give what a slow pair of numpy arrays gives.

Every live tensor is compared after every step, so that a write that reaches too far, or not far enough, is found at
once.
"""

import os
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from .helpers.reading_steps import VALUES, VIEWS
from .helpers.twins import fresh
from .helpers.writing_steps import WRITES

PROGRAMS = int(os.environ.get("MASKED_TENSOR_PROGRAMS", "2000"))
STEPS = 8


@pytest.mark.filterwarnings("ignore:.* joins valid features to masked steps")  # drawn joins
@settings(max_examples=PROGRAMS, deadline=None)
@given(st.integers(0, 2**62))
def test_random_programs(seed: int) -> None:
    rng = random.Random(seed)
    pool = [fresh(rng, tuple(rng.randint(1, 4) for _ in range(rng.randint(1, 3))))]
    program = []
    for _ in range(STEPS):
        target = rng.choice(pool)
        kind = rng.choice([VIEWS, VIEWS, WRITES, WRITES, VALUES])
        step = rng.choice(kind)
        program.append(f"{step.__name__}({pool.index(target)})")
        before = target.mask.copy()
        result = step(rng, target)
        if result is None and target.family.hard:
            target.mask[...] &= before
        if result is not None and result is not target:
            if kind is VIEWS:
                result.family = target.family
            pool.append(result)
        for k, twin in enumerate(pool):
            assert not twin.differs(), f"tensor {k} after {program} (seed {seed})"

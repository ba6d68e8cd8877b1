"""mambapy: Mamba in plain torch; scans over time."""

from ._case import Case, load, ragged


def mamba(**options):
    return lambda: load("mambapy.mamba").Mamba(load("mambapy.mamba").MambaConfig(d_model=8, n_layers=2, **options))


STEPS = ragged((None, 8))
LIBRARY = "mambapy"
CASES = [
    Case("Mamba (pscan=False)", mamba(pscan=False), STEPS),
    Case("Mamba", mamba(), STEPS),
    Case("Mamba (inner_layernorms)", mamba(pscan=False, inner_layernorms=True), STEPS),
    Case(
        "MambaBlock",
        lambda: load("mambapy.mamba").MambaBlock(load("mambapy.mamba").MambaConfig(d_model=8, n_layers=2, pscan=False)),
        STEPS,
    ),
    Case("RMSNorm", lambda: load("mambapy.mamba").RMSNorm(8), STEPS),
]

"""auraloss: losses of padded waves."""

from ._case import Case, beside, load, ragged

PAIRS = beside((1, 256), (1, 256), rows=3)
LIBRARY = "auraloss"


def time(name, **options):
    return lambda: getattr(load("auraloss.time"), name)(**options)


CASES = [
    Case("ESRLoss", time("ESRLoss"), PAIRS),
    Case("DCLoss", time("DCLoss"), PAIRS),
    Case("LogCoshLoss", time("LogCoshLoss"), PAIRS),
    Case("SNRLoss", time("SNRLoss"), PAIRS),
    Case("SISDRLoss", time("SISDRLoss"), PAIRS),
    Case("SDSDRLoss", time("SDSDRLoss"), PAIRS),
    Case("SNRLoss (padded)", time("SNRLoss", reduction="none"), ragged((1, None), (1, None))),
    Case("SISDRLoss (padded)", time("SISDRLoss", reduction="none"), ragged((1, None), (1, None))),
    Case("STFTLoss", lambda: load("auraloss.freq").STFTLoss(64, 16, 64), PAIRS),
    Case("MultiResolutionSTFTLoss", lambda: load("auraloss.freq").MultiResolutionSTFTLoss([64], [16], [64]), PAIRS),
]

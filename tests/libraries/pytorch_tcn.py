"""pytorch-tcn: temporal convolutions."""

from ._case import Case, load, ragged

STEPS = ragged((6, None))
LIBRARY = "pytorch-tcn"


def tcn(**options):
    return lambda: load("pytorch_tcn").TCN(num_inputs=6, num_channels=[8, 8], kernel_size=3, dropout=0.0, **options)


CASES = [
    Case("TCN", tcn(), STEPS),
    Case("TCN (causal=False)", tcn(causal=False), STEPS),
    Case("TCN (layer_norm)", tcn(use_norm="layer_norm"), STEPS),
    Case("TCN (skip connections)", tcn(use_skip_connections=True), STEPS),
    Case("TCN (gated)", tcn(use_gate=True), STEPS),
    Case("TemporalConv1d", lambda: load("pytorch_tcn").TemporalConv1d(6, 8, 3), STEPS),
]

"""asteroid-filterbanks: learned filterbanks of padded waves."""

from ._case import Case, load, ragged

WAVES = ragged((1, None), lengths=(64, 32, 48))
LIBRARY = "asteroid-filterbanks"


def bank(name, **options):
    made = load
    return lambda: made("asteroid_filterbanks").Encoder(
        getattr(made("asteroid_filterbanks"), name)(n_filters=16, kernel_size=8, stride=4, **options)
    )


CASES = [
    Case("FreeFB", bank("FreeFB"), WAVES),
    Case("AnalyticFreeFB", bank("AnalyticFreeFB"), WAVES),
    Case("STFTFB", bank("STFTFB"), WAVES),
]

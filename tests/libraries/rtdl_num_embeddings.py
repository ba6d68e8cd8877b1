"""rtdl_num_embeddings: embeddings of numbers, beside rows and in padded sets."""

import torch

from ._case import Case, beside, load, ragged

ROWS = beside((5,))
STEPS = ragged((None, 5))
LIBRARY = "rtdl_num_embeddings"


def made(name, *args, **options):
    return lambda: getattr(load("rtdl_num_embeddings"), name)(*args, **options)


def bins():
    return [torch.tensor([-1.0, 0.0, 1.0])] * 5


CASES = [
    Case("LinearEmbeddings", made("LinearEmbeddings", 5, 4), STEPS),
    Case("LinearReLUEmbeddings", made("LinearReLUEmbeddings", 5, 4), STEPS),
    Case("PeriodicEmbeddings", made("PeriodicEmbeddings", 5, 4, lite=False), ROWS),
    Case("PeriodicEmbeddings (lite)", made("PeriodicEmbeddings", 5, 4, lite=True), STEPS),
    Case("PiecewiseLinearEncoding", lambda: load("rtdl_num_embeddings").PiecewiseLinearEncoding(bins()), STEPS),
    Case(
        "PiecewiseLinearEmbeddings",
        lambda: load("rtdl_num_embeddings").PiecewiseLinearEmbeddings(bins(), 4, activation=False, version="B"),
        ROWS,
    ),
]

"""pytorch-metric-learning: a loss between two views, of the rows that are valid in both."""

from ...patches.libraries import VICREG
from .wrapping import replace, with_valid_rows

replace(VICREG, with_valid_rows("VICRegLoss", "embeddings", "ref_emb"))

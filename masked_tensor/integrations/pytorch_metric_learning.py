"""pytorch-metric-learning: a loss between two views, of the rows that are valid in both."""

from ..extend.libraries import replace
from .places import VICREG
from .wrapping import with_valid_rows

replace(VICREG, with_valid_rows("VICRegLoss", "embeddings", "ref_emb"))

"""monai: losses between two views, of the rows that are valid in both."""

from ..extend.libraries import replace
from .places import BARLOW_TWINS, CONTRASTIVE
from .wrapping import with_valid_rows

replace(CONTRASTIVE, with_valid_rows("ContrastiveLoss", "input", "target"))
replace(BARLOW_TWINS, with_valid_rows("BarlowTwinsLoss", "input", "target"))

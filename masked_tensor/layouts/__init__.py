from .elements import is_sparse, of, to, values, with_values
from .reduction import reduce
from .validity import dense_mask, nonzero, restricted, specified_mask

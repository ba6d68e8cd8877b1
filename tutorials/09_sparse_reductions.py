"""
How do I take the maximum, mean or softmax of what a sparse matrix stores?
==========================================================================

First decide whether an element that is not stored is a zero or does not count.  Without
a mask it is a zero.  With the stored pattern as the mask it does not count.  Either way
you need one call, which works for every layout, has gradients and makes no dense copy.
"""

import time
import warnings
from collections.abc import Callable
from pathlib import Path

import matplotlib.pyplot as plt
import torch

import masked_tensor as mt

warnings.filterwarnings("ignore", "Sparse CSR tensor support is in beta")

# %%
# Three people rate four films.  A film that a person did not rate is not stored.

dense = torch.tensor([[5.0, 0.0, 0.0, 3.0], [0.0, 0.0, 1.0, 0.0], [4.0, 2.0, 0.0, 0.0]])
for ratings in (dense.to_sparse(), dense.to_sparse_csr()):
    rated = mt.extend.specified_mask(ratings)
    # Without a mask, an element that is not stored is a zero: the result equals that of
    # the dense matrix.
    assert mt.amin(ratings, 1).to_dense().tolist() == [0.0, 0.0, 0.0]
    torch.testing.assert_close(mt.mean(ratings, 1).to_dense(), dense.mean(1))
    # With the stored elements as the mask, only ratings count.
    assert mt.amin(ratings, 1, mask=rated).to_dense().tolist() == [3.0, 1.0, 2.0]
    assert mt.amax(ratings, 0, mask=rated).to_dense().tolist() == [5.0, 2.0, 1.0, 3.0]
    assert mt.mean(ratings, 1, mask=rated).to_dense().tolist() == [4.0, 1.0, 3.0]
    weights = mt.softmax(ratings, 1)  # over what is stored, as torch.sparse.softmax
    torch.testing.assert_close(weights.to_dense().sum(1), torch.ones(3))
    assert weights.layout is ratings.layout

# %%
# The same with a masked tensor: its reductions need no mask argument.

m = mt.as_masked_tensor(dense.to_sparse())
print(m.to_dense())
assert m.mean(1).tolist() == [4.0, 1.0, 3.0]
assert m.amin(0).tolist() == [4.0, 2.0, 1.0, 3.0]

# %%
# A stored zero is a value.  An element that is not stored is masked.

stored_zero = torch.sparse_coo_tensor(
    [[0, 0], [0, 1]], [0.0, -2.0], (1, 3), check_invariants=True
)
assert mt.amax(
    stored_zero, 1, mask=mt.extend.specified_mask(stored_zero)
).to_dense().tolist() == [0.0]
assert mt.as_masked_tensor(stored_zero).tolist() == [[0.0, -2.0, None]]

# %%
# Gradients come back in the pattern of the input.

leaf = dense.to_sparse().requires_grad_()
mt.amax(
    leaf, 1, mask=mt.extend.specified_mask(dense.to_sparse())
).to_dense().sum().backward()
assert leaf.grad.layout is torch.sparse_coo
assert leaf.grad.to_dense().tolist() == [
    [1.0, 0.0, 0.0, 0.0],
    [0.0, 0.0, 1.0, 0.0],
    [1.0, 0.0, 0.0, 0.0],
]

# %%
# The cost depends on the number of stored elements, not on the size.  The largest of
# these matrices would need 40 GB if it were dense.


def milliseconds(reduction: Callable[..., torch.Tensor], matrix: torch.Tensor) -> float:
    """The fastest of five."""
    stored, times = mt.extend.specified_mask(matrix), []
    for _ in range(5):
        start = time.perf_counter()
        reduction(matrix, 1, mask=stored)
        times.append(time.perf_counter() - start)
    return 1e3 * min(times)


torch.manual_seed(0)
SIZES = [1_000, 3_000, 10_000, 30_000, 100_000]
NAMES = ["sum", "mean", "amax", "prod", "var"]
spent: dict[str, list[float]] = {name: [] for name in NAMES}
dense_sum: list[float] = []
print(
    f"{'milliseconds, 200,000 entries stored':40}"
    + "".join(f"{name:>9}" for name in NAMES)
)
for size in SIZES:
    entries = torch.randint(size, (2, 200_000)), torch.randn(200_000)
    large = torch.sparse_coo_tensor(
        *entries, (size, size), check_invariants=True
    ).coalesce()
    for name in NAMES:
        spent[name].append(milliseconds(getattr(mt, name), large))
    if size <= 10_000:
        dense_sum.append(
            milliseconds(lambda x, dim, mask: x.sum(dim), large.to_dense())
        )
    row = f"{size:,} x {size:,}"
    print(f"{row:40}" + "".join(f"{spent[name][-1]:9.1f}" for name in NAMES))

# %%
# The largest matrix has ten thousand times as many elements as the smallest but needs
# about the same time.  The time of the dense sum grows with the number of elements.

figure, axes = plt.subplots(figsize=(7, 4), constrained_layout=True)
for name in NAMES:
    axes.plot(SIZES, spent[name], marker="o", label=name)
axes.plot(
    SIZES[: len(dense_sum)],
    dense_sum,
    marker="o",
    linestyle="--",
    color="0.5",
    label="torch.sum, dense",
)
axes.set(xscale="log", yscale="log", xlabel="rows and columns", ylabel="milliseconds")
axes.set(title="reduction of each row, 200,000 stored entries")
axes.legend()
if "__file__" in globals():  # a script; a notebook shows the picture itself
    picture = Path(__file__).with_suffix(".png")
    figure.savefig(picture)
    print(f"saved {picture.name} beside this script")

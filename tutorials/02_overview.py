"""
What is a masked tensor, and what can I do with it?
===================================================

A masked tensor is a tensor with a mask.  The mask says which entries are valid (True)
and which are masked (False).  All the code below is ordinary PyTorch.  A masked entry
prints as ``--``.
"""

import textwrap

import torch

import masked_tensor as mt


def rounded(x: torch.Tensor) -> list[float | None]:
    return [None if v is None else round(v, 4) for v in x.tolist()]


# %%
# You can make one from data and a mask, from a list with None, or by masking NaN.  No
# result depends on the data under the mask.

nan = float("nan")
data = torch.tensor([0.0, 1.0, nan, 3.0, nan])
m = mt.masked_invalid(data)
print(m)
assert m.tolist() == [0.0, 1.0, None, 3.0, None]
assert torch.equal(m, mt.masked_tensor([0.0, 1.0, None, 3.0, None]))
assert torch.equal(
    m, mt.masked_tensor(torch.arange(5.0), [True, True, False, True, False])
)

# %%
# The result of an elementwise op is valid where all operands are valid.

print(m + m)
print(m.cos())
assert (m + m).tolist() == [0.0, 2.0, None, 6.0, None]
assert rounded(m.cos()) == [1.0, 0.5403, None, -0.99, None]

# %%
# Two masks are combined with AND, as in numpy.ma, Arrow and SQL.  To raise an error if
# they differ, use
# ``mt.meaning(mismatch="raise")``.

other = mt.masked_tensor(torch.arange(5.0), ~m.mask)
print(m + other)
assert (m + other).tolist() == [None] * 5
try:
    with mt.meaning(mismatch="raise"):
        m + other
except ValueError as error:
    print("refused:", *textwrap.wrap(str(error), 76), sep="\n  ")
else:
    raise AssertionError("different masks were accepted")

# %%
# Indexing returns masked tensors.  Views share memory: assigning through a view changes
# the base.  Assigning a value makes an entry valid.

table = mt.masked_tensor(
    [
        [6.0, 10, None],
        [9, None, None],
        [7, -10, -2],
        [None] * 3,
        [0, 9, None],
        [None, -10, None],
    ]
)
print(table[0], table[:, 1], table[table.mask], sep="\n")
copy = table.clone()
copy[0][2] = 1.0
assert copy[0].tolist() == [6.0, 10.0, 1.0]
assert table[table.mask].mask.all()

# %%
# The gradient of a masked entry is zero, whatever its data.  Plain tensors get plain
# gradients.

x = mt.masked_tensor([3.0, None], requires_grad=True)
y = torch.tensor([2.0, nan], requires_grad=True)
(x * y).sum().backward()
print(x.grad, y.grad, sep="\n")
assert x.grad.tolist() == [2.0, None]
assert y.grad.tolist() == [3.0, 0.0]

# %%
# To get a plain tensor, choose a value for the masked entries, or keep only the valid
# ones.

print(m.filled(-1), m.compressed(), sep="\n")
assert m.filled(-1).tolist() == [0.0, 1.0, -1.0, 3.0, -1.0]
assert m.compressed().tolist() == [0.0, 1.0, 3.0]

# %%
# Reductions use only the valid entries.  A row without valid entries has no sum, mean
# or maximum, so its result is masked.

NAMES = ["sum", "mean", "prod", "amin", "amax"]
results = {name: rounded(getattr(table, name)(1)) for name in NAMES}
print(f"{'row':24}" + "".join(f"{name:>9}" for name in NAMES))
for i, row in enumerate(table.tolist()):
    cells = ["--" if results[n][i] is None else results[n][i] for n in NAMES]
    print(f"{row!s:24}" + "".join(f"{cell:>9}" for cell in cells))
assert results["sum"] == [16, 9, -5, None, 9, -10]
assert rounded(table.mean(1)) == [8, 9, -1.6667, None, 4.5, -10]
assert results["prod"] == [60, 9, 140, None, 0, -10]
assert results["amin"] == [6, 9, -10, None, 0, -10]
assert results["amax"] == [10, 9, 7, None, 9, -10]

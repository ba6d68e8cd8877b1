"""
What is a masked tensor, and what can I do with it?
===================================================

A masked tensor is data with holes: values, and a mask that says which of them count (True = valid).  Everything below
is ordinary PyTorch; the only new thing is the hole, printed ``--``.
"""

import torch

import masked_tensor as mt

# Make one from data and a mask.  What lies under the mask is nobody's business: here it is NaN.
data = torch.tensor([0.0, 1.0, float("nan"), 3.0, float("nan")])
m = mt.masked_invalid(data)
print(m)
assert m.tolist() == [0.0, 1.0, None, 3.0, None]

# Elementwise: a result is valid where all its operands are.
assert (m + m).tolist() == [0.0, 2.0, None, 6.0, None]
cosines = [None if v is None else round(v, 4) for v in m.cos().tolist()]
assert cosines == [1.0, 0.5403, None, -0.99, None]

# Two masks are AND-ed, as in numpy.ma, arrow and SQL.  Who wants to be told gets an error instead.
other = mt.masked_tensor(torch.arange(5.0), ~m.get_mask())
assert (m + other).tolist() == [None] * 5
try:
    with mt.mask_mismatch("raise"):
        m + other
except ValueError as error:
    print("refused:", error)
else:
    raise AssertionError("different masks were accepted")

# Reductions run over what is valid.  A row without a valid entry has no sum, mean or maximum: its result is a hole.
nan = float("nan")
table = mt.masked_invalid(
    torch.tensor([[6, 10, nan], [9, nan, nan], [7, -10, -2], [nan, nan, nan], [0, 9, nan], [nan, -10, nan]])
)
print(f"{'row':24}" + "".join(f"{name:>9}" for name in ("sum", "mean", "prod", "amin", "amax")))
rows = {name: getattr(table, name)(1).tolist() for name in ("sum", "mean", "prod", "amin", "amax")}
for i in range(len(table)):
    cells = "".join(f"{'--' if values[i] is None else round(values[i], 4):>9}" for values in rows.values())
    print(f"{table[i].tolist()!s:24}" + cells)
assert rows["sum"] == [16, 9, -5, None, 9, -10]
assert [None if v is None else round(v, 4) for v in rows["mean"]] == [8, 9, -1.6667, None, 4.5, -10]
assert rows["prod"] == [60, 9, 140, None, 0, -10]
assert rows["amin"] == [6, 9, -10, None, 0, -10]
assert rows["amax"] == [10, 9, 7, None, 9, -10]

# Indexing gives masked tensors; views are views, and writing makes a hole valid.
first = table[0]
first[2] = 1.0
assert table[0].tolist() == [6.0, 10.0, 1.0]
assert table[table.get_mask()].get_mask().all()

# Gradients: zero at holes, and plain tensors get plain gradients.
x = mt.masked_tensor([3.0, 0.0], [True, False], requires_grad=True)
y = torch.tensor([2.0, nan], requires_grad=True)
(x * y).sum().backward()
assert x.grad.tolist() == [2.0, None]
assert y.grad.tolist() == [3.0, 0.0]

# Leaving is explicit: say what a hole should count as, or keep only what is valid.
assert m.filled(-1).tolist() == [0.0, 1.0, -1.0, 3.0, -1.0]
assert m.compressed().tolist() == [0.0, 1.0, 3.0]

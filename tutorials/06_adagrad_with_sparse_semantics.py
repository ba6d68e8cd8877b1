"""
How do I update only the rows that have a gradient?
===================================================

With a sparse gradient, Adagrad must update only the entries that the gradient stores.
No gradient is not the same as a gradient of zero.  With masked tensors, the dense
formula gets this right in four lines.
"""

import warnings
from functools import partial

import torch
from torch import Tensor

import masked_tensor as mt

# torch.optim.Adagrad, used for comparison below, gives this warning.
warnings.filterwarnings("ignore", "Sparse invariant checks")

# %%
# The gradient stores three of eight entries.  The rest are masked.

rate, epsilon = 0.1, 1e-10
parameter = torch.arange(8.0).reshape(2, 4)
index, values = torch.tensor([[0, 1, 1], [2, 0, 2]]), torch.tensor([3.0, 4.0, 5.0])
places = (index[0], index[1])
named = torch.zeros(2, 4, dtype=torch.bool).index_put(places, torch.tensor(True))
gradient = mt.masked_tensor(torch.zeros(2, 4).index_put(places, values), named)
print(gradient)

# %%
# One step follows the formula in the paper.  ``torch.where`` keeps the old value where
# the gradient is masked.


def step(parameter: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
    """One Adagrad step; where the gradient is masked, nothing changes."""
    total = state + gradient * gradient
    update = rate * gradient / (total.sqrt() + epsilon)
    moved = torch.where(named, (parameter - update).filled(0), parameter)
    return moved, torch.where(named, total.filled(0), state)


state = torch.full((2, 4), 0.5)
total = state + gradient * gradient
assert total.compressed().tolist() == [9.5, 16.5, 25.5]
close = partial(torch.testing.assert_close, atol=1e-4, rtol=0)
close(total.sqrt().compressed(), torch.tensor([3.0822, 4.0620, 5.0498]))

first, state = step(parameter, state)
expected = torch.tensor([[0, 1, 1.9027, 3], [3.9015, 5, 5.9010, 7]])
close(first, expected)

second, state = step(first, state)
close(second[named], torch.tensor([1.8329, 3.8314, 5.8306]))

# %%
# ``torch.optim.Adagrad`` computes the same result from the sparse gradient.
weight = torch.nn.Parameter(parameter.clone())
optimizer = torch.optim.Adagrad(
    [weight], lr=rate, initial_accumulator_value=0.5, eps=epsilon
)
for _ in range(2):
    weight.grad = torch.sparse_coo_tensor(index, values, (2, 4), check_invariants=True)
    optimizer.step()
torch.testing.assert_close(weight.detach(), second)

for name, moment in {"before": parameter, "one step": first, "two": second}.items():
    print(f"{name:10} {[[round(v, 4) for v in row] for row in moment.tolist()]}")

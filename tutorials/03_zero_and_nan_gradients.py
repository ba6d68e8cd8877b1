"""
Why is my gradient NaN although the loss is fine?
=================================================

``torch.where`` selects a value, but in the backward pass autograd multiplies the
derivative of the value that was *not* selected by zero, and zero times infinity is NaN.
With a mask, that product is never computed.  The first four cases are issues that users
filed against PyTorch.
"""

from pathlib import Path

import matplotlib.pyplot as plt
import torch
from torch import tensor

import masked_tensor as mt

ROWS: list[tuple[str, str, str]] = []


def row(case: str, plain: torch.Tensor, masked: mt.MaskedTensor | torch.Tensor) -> None:
    """One line of the table at the end."""
    shown = [None if v is None else round(v, 5) for v in masked.reshape(-1).tolist()]
    wrong = str([round(v, 5) for v in plain.reshape(-1).tolist()])
    ROWS.append((case, wrong, str(shown).replace("None", "--")))


# %%
# Issue 10729: ``exp`` overflows in the branch that is not taken.

values = tensor([-10.0, -5, 0, 50, 90, 100])
plain = values.clone().requires_grad_()
torch.where(plain < 0, plain.exp(), torch.ones(6)).sum().backward()
negative = values < 0
x = mt.masked_tensor(values, negative, requires_grad=True)
ones = mt.masked_tensor(torch.ones(6), ~negative)
torch.where(negative, x.exp(), ones).sum().backward()
row("10729 where(x < 0, exp(x), 1)", plain.grad, x.grad)
assert plain.grad[-2:].isnan().all()
assert x.grad.mask.tolist() == negative.tolist()
torch.testing.assert_close(x.grad.compressed(), values[:2].exp())

# %%
# Issue 52248: division by zero in the branch that is not taken.

plain = tensor(1.0, requires_grad=True)
torch.where(tensor(False), plain / 0, tensor(1.0)).backward()
a = mt.masked_tensor(1.0, False, requires_grad=True)
loss = torch.where(tensor(False), a / 0, tensor(1.0))
loss.backward()
row("52248 where(False, a / 0, c)", plain.grad, a.grad)
assert loss.item() == 1.0
assert plain.grad.isnan()
assert a.grad.tolist() is None

# %%
# Issue 67180: ``nansum`` skips the NaN, but its gradient does not.

plain = tensor(1.0, requires_grad=True)
torch.nansum(tensor([1.0, 2.0, float("nan")]) * plain).backward()
b = tensor(1.0, requires_grad=True)
(mt.masked_invalid(tensor([1.0, 2.0, float("nan")])) * b).sum().backward()
row("67180 nansum(a * b), gradient of b", plain.grad, b.grad)
assert plain.grad.isnan()
assert b.grad == 3.0

# %%
# Issue 4132: divide by zero, then keep only the valid results.  Here the *divisor* is
# masked, because the derivative of the division is infinite and must not be computed.

divisor = tensor([0.0, 1.0])
plain = tensor([1.0, 1.0], requires_grad=True)
(plain / divisor)[divisor != 0].sum().backward()
x = tensor([1.0, 1.0], requires_grad=True)
(x / mt.masked_equal(divisor, 0)).sum().backward()
row("4132 (x / [0, 1])[valid]", plain.grad, x.grad)
assert plain.grad[0].isnan()
assert x.grad.tolist() == [0.0, 1.0]

# %%
# The most common case: missing targets.

torch.manual_seed(0)
inputs, targets = torch.randn(5, 3), tensor([1.0, float("nan"), 2.0, float("nan"), 0.5])
by_hand, masked = (torch.nn.Linear(3, 1) for _ in range(2))
masked.load_state_dict(by_hand.state_dict())
known = ~targets.isnan()
error = (by_hand(inputs).squeeze(1) - targets).square()
(torch.where(known, error, tensor(0.0)).sum() / known.sum()).backward()
outputs = masked(inputs).squeeze(1)
torch.nn.functional.mse_loss(outputs, mt.masked_invalid(targets)).backward()
row("missing targets, gradient of the bias", by_hand.bias.grad, masked.bias.grad)
assert by_hand.weight.grad.isnan().all()
assert masked.weight.grad.isfinite().all()

print(f"{'case':36} torch.where and friends, above masked_tensor")
for case, left, right in ROWS:
    print(f"{case:36} {left}\n{'':36} {right}")

# %%
# The first case as a picture.  The function is constant on the right, so its gradient
# is 0 there.  Plain autograd returns NaN as soon as ``exp`` overflows in the branch
# that is not taken.

line = torch.linspace(-5, 120, 1001)
plain = line.clone().requires_grad_()
torch.where(plain < 0, plain.exp(), 1.0).sum().backward()
x = line.clone().requires_grad_()
result = torch.where(line < 0, mt.masked_where(line >= 0, x).exp(), tensor(1.0))
result.filled(0).sum().backward()
lost = line[plain.grad.isnan()]
assert x.grad.isfinite().all()
assert (x.grad[line >= 0] == 0).all()

figure, axes = plt.subplots(figsize=(7, 3.5), constrained_layout=True)
axes.plot(line, x.grad, color="C2", label="masked")
axes.plot(line, plain.grad + 0.02, color="C0", label="plain (drawn a little higher)")
axes.axvspan(lost[0], 120, color="C0", alpha=0.2, label="plain: NaN")
axes.set(title="gradient of where(x < 0, exp(x), 1)", xlabel="x")
axes.legend()
if "__file__" in globals():  # a script; a notebook shows the picture itself
    picture = Path(__file__).with_suffix(".png")
    figure.savefig(picture)
    print(f"saved {picture.name} beside this script")

"""
Why does a fully padded row turn my softmax into NaN?
=====================================================

The usual recipe fills padding with ``-inf`` and takes the softmax.  A row with nothing but padding is then 0/0.  If the
padding is a *mask*, the row simply has no softmax: it is a hole, its gradient is zero, and a real NaN stays visible.
"""

import torch

import masked_tensor as mt

torch.manual_seed(0)
scores = torch.randn(3, 3)
valid = torch.tensor([[True, False, False], [True, False, True], [False, False, False]])

# The recipe: column 1 and everything that shares weights with it is lost.
plain = scores.clone().requires_grad_()
out = plain.masked_fill(~valid, float("-inf")).softmax(0)
out[:, 0].sum().backward()
print("filled with -inf:\n", out.detach())
assert out[:, 1].isnan().all()

# The mask: column 1 is a hole, the others are right.
x = mt.masked_tensor(scores, valid, requires_grad=True)
probabilities = x.softmax(0)
print("masked:\n", probabilities.detach())
assert probabilities.get_mask().equal(valid)
torch.testing.assert_close(probabilities[:2, 0].sum().item(), 1.0)
assert probabilities[1, 2].item() == 1.0
probabilities.square().sum().backward()
assert (x.grad.filled(0)[:, 1] == 0).all()

# A -inf or NaN that was *computed* is a value, not a mask: it is not swept under the rug ...
score = torch.tensor([[float("-inf"), float("-inf")]])
assert mt.softmax(score, 1, mask=torch.tensor([[True, True]])).isnan().all()
# ... unless asked for.
assert (mt.softmax(score, 1, mask=torch.tensor([[True, True]]), mode="inf_as_zero") == 0).all()

print(f"{'mode':12} {'row of -inf, all valid':>24} {'row with nothing valid':>24}")
for mode in ("safe", "inf_as_zero", "none"):
    cells = [mt.softmax(score, 1, mask=torch.full((1, 2), seen), mode=mode).tolist() for seen in (True, False)]
    print(f"{mode:12} {cells[0]!s:>24} {cells[1]!s:>24}")

"""
Which function skips missing values, and what if all are missing?
=================================================================

PyTorch has ``nansum`` and ``nanmean``, but no ``nanvar``, ``nanmax``, ``nanprod`` or
``nanargmin``.  With a mask, every reduction skips missing values.  A mask also
distinguishes "the mean is NaN" from "there is no mean", and a NaN that your code
computed from a value that was never measured.
"""

import torch

import masked_tensor as mt

# %%
# Some of these values were never measured.  Every reduction in PyTorch skips the masked
# ones.  The code checks the right column against the same reduction of only the
# measured values.

y = torch.arange(32.0)
x = y * y.fmod(4)
x = torch.where(x == 0, float("nan"), x)  # zeros were never measured
m = mt.masked_invalid(x)

assert round(m.mean().item(), 4) == 32.6667
torch.testing.assert_close(torch.nanmean(m).item(), x.nanmean().item())

print(f"{'reduction':14} {'plain':>12} {'masked':>12}")
NAMES = "sum mean var std amax amin argmax argmin prod median logsumexp"
for name in NAMES.split():
    arguments = (0,) if name == "logsumexp" else ()
    plain, masked = getattr(x, name)(*arguments), getattr(m, name)(*arguments)
    print(f"{name:14} {plain.item():12.4g} {masked.item():12.4g}")
    known = x[~x.isnan()]
    expected = getattr(known, name)(*arguments)
    if name.startswith("arg"):
        expected = torch.nonzero(x == known[expected])[0, 0]
    torch.testing.assert_close(masked.item(), expected.item(), rtol=1e-5, atol=1e-5)

# %%
# If all values are missing, ``nanmean`` returns NaN, as if it had been computed.  With
# a mask, the result is masked: there is no mean.
nothing = torch.full((4,), float("nan"))
assert nothing.nanmean().isnan()
mean = mt.masked_invalid(nothing).mean()
print("mean of nothing:", mean)
assert mean.tolist() is None
# You can also choose a value for this case.
assert mt.mean(nothing, mask=~nothing.isnan(), fill_value=0.0) == 0.0

# %%
# A NaN computed from valid values is not skipped, so you notice the bug.
ratio = mt.masked_tensor([1.0, 0.0, None]) / torch.tensor([2.0, 0.0, 1.0])
print("a computed NaN stays visible:", ratio)
print("and in the mean:", ratio.mean())
assert ratio.mean().item() != ratio.mean().item()

"""
How do I get per-sample gradients, Hessians and derivatives with missing data?
==============================================================================

``torch.func`` and forward mode accept masked tensors just like plain ones.  Here are
five short examples: per-sample gradients of a padded batch; clipping; the Hessian of a
loss with missing targets; the diagonal curvature for a Laplace approximation; and a
differential equation with incomplete measurements.

The tangent of a masked entry is exactly 0, and so is the tangent of a masked result.
"""

import torch
from torch import Tensor, nn
from torch.func import functional_call, grad, hessian, jacrev, vmap

import masked_tensor as mt

torch.manual_seed(0)
torch.set_num_threads(1)

# %%
# Per-sample gradients of a padded batch
# --------------------------------------
# The batch has three sequences of different lengths, padded with NaN.
# ``vmap(grad(loss))`` computes the gradient of each.  It equals the gradient of the
# same sequence without padding.

rows = [torch.randn(n, 4) for n in (5, 2, 3)]
lengths = torch.tensor([len(row) for row in rows])
padded = nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=float("nan"))
present = torch.arange(5) < lengths[:, None]
batch = mt.masked_tensor(padded, present[..., None].expand(padded.shape))
labels = torch.tensor([1.0, -1.0, 0.5])


class Reader(nn.Module):
    """Maps a sequence to one number."""

    def __init__(self) -> None:
        super().__init__()
        self.steps, self.out = nn.GRU(4, 6), nn.Linear(6, 1)

    def forward(self, x: Tensor) -> Tensor:
        return self.out(self.steps(x)[0].mean(0)).squeeze(-1)


model = Reader()
parameters = {name: p.detach() for name, p in model.named_parameters()}


def loss(parameters: dict[str, Tensor], x: Tensor, y: Tensor) -> Tensor:
    return (functional_call(model, parameters, (x,)) - y).square()


gradients = vmap(grad(loss), (None, 0, 0))(parameters, batch, labels)
for i, row in enumerate(rows):
    alone = grad(loss)(parameters, row, labels[i])
    assert all(
        torch.allclose(gradients[name][i], alone[name], atol=1e-6)
        for name in parameters
    )
print("per-sample gradients:", {name: tuple(g.shape) for name, g in gradients.items()})

# %%
# Clipping per sample, as private training does
# ---------------------------------------------
# The norm of each sample's gradient is clipped before the gradients are added up.  The
# gradients of parameters are plain tensors.

norms = torch.stack([g.flatten(1).norm(dim=1) for g in gradients.values()]).norm(dim=0)
factors = (0.1 / norms).clamp(max=1)
clipped = {
    name: torch.einsum("b,b...->...", factors, g) for name, g in gradients.items()
}
print("norms before clipping:", [round(float(n), 3) for n in norms])

# %%
# A Hessian with missing targets
# ------------------------------
# There are two outputs for each of six inputs, and some targets are missing.  The loss
# is the mean over the known targets.  Its Hessian equals that of a least-squares fit to
# those targets.

inputs = torch.randn(6, 3).double()
known = torch.rand(6, 2) < 0.7
targets = mt.masked_tensor(
    torch.randn(6, 2).double().masked_fill(~known, float("nan")), known
)
weight = torch.zeros(2, 3).double()
curvature = hessian(lambda w: (inputs @ w.mT - targets).square().mean().filled(0))(
    weight
)
for k in range(2):
    fit = inputs[known[:, k]]
    assert torch.allclose(curvature[k, :, k], 2 * fit.mT @ fit / known.sum())
print("Hessian:", tuple(curvature.shape))

# %%
# The Hessian of a masked argument is masked wherever its row or its column is.

point = mt.masked_tensor([1.0, None, 2.0])
print(hessian(lambda x: (x**3).sum())(point))

# %%
# Diagonal curvature for a Laplace approximation
# ----------------------------------------------
# The generalised Gauss-Newton matrix of a squared error is the sum of J^T J, times two.
# A masked target does not contribute.

head = nn.Linear(3, 2).double()
start = {name: p.detach() for name, p in head.named_parameters()}
jacobians = vmap(jacrev(lambda p, x: functional_call(head, p, (x,))), (None, 0))(
    start, inputs
)
used = (targets * 0 + 1).filled(0)
diagonal = {
    name: torch.einsum("bk,bk...->...", used, 2 * j.square())
    for name, j in jacobians.items()
}
assert torch.equal(diagonal["bias"], 2 * known.sum(0).double())
print(
    "posterior deviation of the bias:",
    [round(float(v), 3) for v in diagonal["bias"].rsqrt()],
)

# %%
# A differential equation with missing measurements
# -------------------------------------------------
# A network learns to solve u'' = -u.  We train it on the equation at 40 points in time,
# and on measurements at the same points, three quarters of which are missing.

times = torch.linspace(0, 3, 40)
measured = torch.arange(40) % 4 == 0
values = mt.masked_tensor(times.sin().masked_fill(~measured, float("nan")), measured)
network = nn.Sequential(
    nn.Linear(1, 24), nn.Tanh(), nn.Linear(24, 24), nn.Tanh(), nn.Linear(24, 1)
)


def u(t: Tensor) -> Tensor:
    return network(t.view(1)).squeeze()


optimizer = torch.optim.Adam(network.parameters(), lr=1e-2)
for _ in range(300):
    equation = (vmap(grad(grad(u)))(times) + vmap(u)(times)).square().mean()
    fit = (vmap(u)(times) - values).square().mean().filled(0)
    optimizer.zero_grad()
    (equation + fit).backward()
    optimizer.step()
error = (vmap(u)(times) - times.sin()).detach().abs().max()
print(f"largest error, including times without a measurement: {float(error):.3f}")
assert error < 0.1

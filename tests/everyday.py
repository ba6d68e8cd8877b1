"""Lines that a user writes every day; type checkers find nothing wrong with them."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader

import masked_tensor as mt

x = mt.masked_tensor([[1.0, None], [3.0, 4.0]])
filled: torch.Tensor = x.filled()
mean: mt.MaskedTensor = x.mean(1)
print(mean.filled(0.0), x.sum().item(), x.count(0).tolist())
y = (x + 1) * 2 - x / 3
print(y.filled(0), (2 * x).compressed(), (-x).get_mask(), (x @ x.T).count())
print(x[0].filled(0), x[:, 1].compressed(), x[x > 2].count())
x[0, 1] = 5.0
x[0, 1] = None
values, indices = x.max(1)
print(values.filled(0), indices.filled(0), x.max(1).values.count())
z = x.transpose(0, 1).reshape(4).unsqueeze(0).to(torch.float64).detach().clone().requires_grad_()
print(z.count(), z.cpu().relu().filled(0), z.softmax(-1).filled(0), z.isnan().filled(False))
for row in x:
    print(row.count())
first, second = x.unbind()
print(first.filled(0), [part.count() for part in x.split(1)], [part.count() for part in x.chunk(2)])
model = nn.Linear(2, 1)
loss = F.mse_loss(model(x), torch.ones(2, 1))
loss.backward()
batch = mt.from_sequences([torch.ones(2), torch.ones(3)])
print(batch.lengths(), [s.shape for s in batch.unpad()], batch.to_numpy_ma(), batch.std(1).filled(0))
loader: DataLoader[torch.Tensor] = DataLoader(torch.ones(3), collate_fn=mt.collate)  # type: ignore[arg-type]
w = mt.from_lengths(torch.zeros(2, 3), [3, 1])
w += 1
print(mt.softmax(w, -1), mt.ffill(w, 1, lengths="full"), w.where(w > 0, 0.0).filled(0), w.grad)
w.masked_fill_(w > 1, 0.0).add_(1).filled(0)
condition: mt.MaskedTensor = w == 1
print(w.size(), w.dtype, w.dim(), w.shape[0], w.tolist(), condition.any().filled(False))

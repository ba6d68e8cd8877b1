"""Mistakes that users make, one a line: mypy and pyright find each of them, and nothing wrong with the other lines.

No line runs: the functions are never called.
"""

import torch
from torch import Tensor

import masked_tensor as mt

x = mt.masked_tensor([[1.0, None], [3.0, 4.0]])
t = torch.ones(2, 2)
valid = t > 0


def keywords() -> None:
    mt.sum(t, msk=valid)  # wrong
    mt.sum(t, 1, masks=valid)  # wrong
    mt.mean(t, keep_dim=True)  # wrong
    mt.mean(t, min_counts=2)  # wrong
    mt.max(t, 1, fill=0.0)  # wrong
    mt.median(t, 1, skipna=True)  # wrong
    mt.softmax(t, 1, maks=valid)  # wrong
    mt.mse_loss(t, t, msk=valid)  # wrong
    mt.mse_loss(t, t, targetmask=valid)  # wrong
    mt.l1_loss(t, t, input_mask=valid)  # wrong
    mt.cross_entropy(t, t, padding_mask=valid)  # wrong
    mt.nll_loss(t, t, ignore=-1)  # wrong
    mt.kl_div(t, t, fillvalue=0.0)  # wrong
    mt.huber_loss(t, t, beta=1.0)  # wrong
    mt.layer_norm(t, (2,), msk=valid)  # wrong
    mt.rankdata(t, ties="min")  # wrong
    mt.cov(t, min_periods=2)  # wrong
    mt.quantile(t, 0.5, alpha=0.4)  # wrong
    mt.ffill(t, axis_limit=2)  # wrong
    mt.scaled_dot_product_attention(t, t, t, key_padding_mask=valid)  # wrong
    mt.argmax(t, 1, dtype=torch.int32)  # wrong
    mt.masked_tensor([1.0, None], masked=valid)  # wrong
    mt.from_lengths(t, [2, 1], side="left")  # wrong
    mt.pad_sequence([t], padding="left")  # wrong


def values() -> None:
    mt.softmax(t, 1, mode="fast")  # wrong
    mt.rankdata(t, "first")  # wrong
    mt.interpolate(t, method="cubic")  # wrong
    mt.interpolate(t, limit_direction="left")  # wrong
    mt.ffill(t, limit_area="within")  # wrong
    mt.rolling(t, 2, closed="up")  # wrong
    mt.sum(t, mask=[True, False])  # wrong
    mt.sum(t, "rows")  # wrong
    mt.median(t, (0, 1))  # wrong
    mt.max(t, (0, 1))  # wrong
    mt.mean(t, dtype="float32")  # wrong
    mt.mean(t, fill_value="nan")  # wrong
    mt.sum([1.0, 2.0])  # wrong
    mt.mse_loss(t, 0.0)  # wrong
    mt.masked_fill(t, valid, None)  # wrong
    mt.meaning(mismatch="ignore")  # wrong


def missing() -> None:
    mt.softmax(t)  # wrong
    mt.cumsum(t)  # wrong
    mt.quantile(t)  # wrong
    mt.mse_loss(t)  # wrong
    mt.group_norm(t)  # wrong
    mt.masked_fill(t, valid)  # wrong
    mt.rolling(t)  # wrong


def results() -> None:
    mt.sum(t).filled(0.0)  # wrong
    mt.mse_loss(t, t).filled(0.0)  # wrong
    mt.max(t, 1).values.compressed()  # wrong
    mt.max(t, 1).compressed()  # wrong
    mt.median(t).values.sum()  # wrong
    mt.ffill(t).compressed()  # wrong
    mt.rolling(t, 2).mean().get_mask()  # wrong
    mt.var_mean(t)[0].filled(0.0)  # wrong
    mt.sum(x).missing()  # wrong
    mt.count(x).filled(0)  # wrong
    x.mask = valid  # wrong
    x.mask()  # wrong


def right() -> Tensor:
    mt.sum(x).filled(0.0)
    mt.sum(t, 1, mask=valid, min_count=2, fill_value=0.0)
    mt.mse_loss(x, t).filled(0.0)
    mt.mse_loss(t, x, target_mask=valid).filled(0.0)
    mt.max(x, 1).values.compressed()
    mt.max(x).filled(0.0)
    mt.median(x, 1).indices.filled(0)
    mt.var_mean(x)[0].filled(0.0)
    mt.unique(x).compressed()
    mt.unique(x, return_counts=True)[1].compressed()
    mt.rolling(x, 2).mean().compressed()
    mt.ffill(x).compressed()
    mt.rankdata(x, "dense", dim=1).compressed()
    mt.softmax(x, 1, mode="none").compressed()
    mt.masked_fill(x, valid, 0.0).compressed()
    mt.scaled_dot_product_attention(x, t, t, key_mask=valid).compressed()
    mt.cov(x, min_count=2).compressed()
    return mt.sum(torch.nn.Parameter(t)) + mt.sum(t) + mt.max(t, 1).values + mt.mse_loss(t, t)

"""Llama and BERT of transformers under data-parallel wrappers, on ranks with different numbers of labels."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel

import masked_tensor as mt

transformers = pytest.importorskip("transformers")  # this file is collected where it is not installed, too

SMALL: dict[str, Any] = {"vocab_size": 30, "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2}
SMALL |= {"intermediate_size": 32}


def made(name: str) -> nn.Module:
    torch.manual_seed(1)
    if name == "llama":
        return transformers.LlamaForCausalLM(transformers.LlamaConfig(**SMALL)).double()
    without = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    return transformers.BertForMaskedLM(transformers.BertConfig(**SMALL, **without)).double()


def data() -> tuple[Any, Any]:
    """Four padded rows; labels are known in few places of the first row and in most of the others."""
    generator = torch.Generator().manual_seed(0)
    ids = torch.randint(3, 30, (4, 9), generator=generator)
    valid = torch.arange(9) < torch.tensor([9, 5, 7, 3])[:, None]
    known = valid & (torch.rand(4, 9, generator=generator) < torch.tensor([0.2, 0.9, 0.9, 0.9])[:, None])
    return mt.masked_tensor(ids, valid), mt.masked_tensor(ids, known)


def step(m: nn.Module, rows: slice) -> Tensor:
    """The model's own loss."""
    ids, labels = data()
    with mt.mean_over():
        loss: Tensor = m(input_ids=ids[rows], labels=labels[rows]).loss
    loss.backward()
    return loss.detach()


def errors(rank: int, ranks: int) -> dict[str, float]:
    """The greatest absolute error of the loss and all gradients, against the whole batch on one rank."""
    mt.MaskedTensor.float = lambda x: x  # transformers rounds the logits to float32: without it, exactness can be seen
    found = {}
    for name in ("llama", "bert"):
        one = made(name)
        ids, labels = data()
        true = one(input_ids=ids, labels=labels).loss
        true.backward()
        for wrapper in (DistributedDataParallel, fully_shard):
            m = wrapper(made(name))
            loss = step(m, slice(0, 1) if rank == 0 else slice(1, 4))
            grads: Any = [p.grad for p in m.parameters()]
            grads = [g.full_tensor() if hasattr(g, "full_tensor") else g for g in grads]
            pairs = zip(grads, [p.grad for p in one.parameters()], strict=True)
            wrong = [float((g - e).abs().max()) for g, e in pairs]
            found[f"{name} {wrapper.__name__}"] = max([*wrong, abs(loss.item() - true.item())])
    return found

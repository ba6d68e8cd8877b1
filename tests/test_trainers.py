"""The lines of the table in docs/machines.md: each trainer's accumulation gives the mean of one process, exactly.

Trainers that are not installed are left out; on two ranks each runs in the processes of ``tests.helpers.ranks``.
"""

import os
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch import distributed as dist
from torch.distributed.fsdp import fully_shard
from torch.utils.data import DataLoader, Dataset

import masked_tensor as mt

from .helpers.ranks import gathered

PARTS, SIZE = 3, 2  #: micro-batches a step, samples in each
LR = 0.5
VALID = torch.tensor([[1, 1, 1], [1, 0, 1], [0, 0, 1], [0, 1, 0], [1, 0, 0], [0, 0, 0]] * 2) > 0  # per rank 6 of them


class Samples(Dataset[Any]):
    """Inputs and targets, of which the micro-batches have 5, 2 and 1 valid ones."""

    def __len__(self) -> int:
        return len(VALID)

    def __getitem__(self, i: int) -> dict[str, Any]:
        generator = torch.Generator().manual_seed(i)
        x, y = torch.randn(2, 3, 2, generator=generator, dtype=torch.float64)
        return {"x": x, "labels": mt.masked_tensor(y.sum(1), VALID[i])}


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.layer = nn.Linear(2, 1, dtype=torch.float64)

    def forward(self, x: Tensor, labels: Any = None) -> Tensor:
        return self.layer(x).squeeze(-1)


def loader(rank: int = 0, ranks: int = 1) -> Any:
    """The micro-batches of one step on one rank."""
    samples = Samples()
    each = PARTS * SIZE
    rows = [samples[i] for i in range(rank * each, (rank + 1) * each)]
    return DataLoader(rows, batch_size=SIZE, collate_fn=mt.collate)  # type: ignore[arg-type]


def loss(net: Any, batch: dict[str, Any]) -> Tensor:
    return F.mse_loss(net(batch["x"]), batch["labels"])


def expected(ranks: int = 1) -> list[Tensor]:
    """The parameters after one step of one process with all that is valid."""
    net = Net()
    rows = mt.collate([Samples()[i] for i in range(ranks * PARTS * SIZE)])
    loss(net, rows).backward()
    torch.optim.SGD(net.parameters(), LR).step()
    return [p.detach() for p in net.parameters()]


def check(net: nn.Module, ranks: int = 1) -> None:
    found = [p.full_tensor() if hasattr(p, "full_tensor") else p.detach() for p in net.parameters()]
    torch.testing.assert_close(found, expected(ranks), rtol=1e-12, atol=1e-13)


# -------------------------------------------------------------------------------------------------------- the trainers


def by_hand(rank: int, ranks: int) -> nn.Module:
    """DistributedDataParallel: no_sync but for the last."""
    net = Net()
    wrapped = nn.parallel.DistributedDataParallel(net)
    optimizer = torch.optim.SGD(net.parameters(), LR)
    mean = mt.mean_over(parameters=net.parameters())
    for i, batch in enumerate(loader(rank)):
        wrapped.require_backward_grad_sync = i == PARTS - 1
        with mean:
            part = loss(wrapped, batch)
        part.backward()
    mean.finish()
    optimizer.step()
    return net


def by_accelerate(rank: int, ranks: int) -> nn.Module:
    """It divides each loss by the number of micro-batches."""
    accelerate = pytest.importorskip("accelerate")
    accelerator = accelerate.Accelerator(cpu=True, gradient_accumulation_steps=PARTS)
    net = Net()
    wrapped, optimizer = accelerator.prepare(net, torch.optim.SGD(net.parameters(), LR))
    mean = mt.mean_over(parameters=net.parameters())
    for batch in loader(rank):
        with accelerator.accumulate(wrapped):
            with mean:
                part = loss(wrapped, batch)
            accelerator.backward(part * accelerator.gradient_accumulation_steps)
            if accelerator.sync_gradients:
                mean.finish()
            optimizer.step()
            optimizer.zero_grad()
    return net


def by_lightning(rank: int = 0, ranks: int = 1) -> nn.Module:
    """It divides each loss, too, and runs the last one in the optimizer's closure."""
    lightning: Any = pytest.importorskip("lightning")

    class Module(lightning.LightningModule):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.net = Net()
            self.mean = mt.mean_over(parameters=self.net.parameters())

        def training_step(self, batch: Any, index: int) -> Tensor:
            with self.mean:
                part = loss(self.net, batch)
            return part * self.trainer.accumulate_grad_batches

        def on_before_optimizer_step(self, optimizer: Any) -> None:
            self.mean.finish()

        def configure_optimizers(self) -> Any:
            return torch.optim.SGD(self.parameters(), LR)

    module = Module()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        trainer = lightning.Trainer(
            max_epochs=1,
            accelerator="cpu",
            accumulate_grad_batches=PARTS,
            logger=False,
            enable_checkpointing=False,
            enable_progress_bar=False,
            enable_model_summary=False,
        )
        trainer.fit(module, loader())
    return module.net


def by_transformers(rank: int = 0, ranks: int = 1) -> nn.Module:
    """It counts the targets itself, over micro-batches and ranks, and multiplies the loss by the ranks."""
    transformers = pytest.importorskip("transformers")
    pytest.importorskip("accelerate")

    def compute_loss(outputs: Tensor, labels: Any, num_items_in_batch: Any) -> Tensor:
        with mt.mean_over(count=num_items_in_batch, gradients="sum"):
            return F.mse_loss(outputs, labels)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        arguments = transformers.TrainingArguments(
            output_dir=str(Path(sys.argv[0]).parent / "none"),
            num_train_epochs=1,
            per_device_train_batch_size=SIZE,
            gradient_accumulation_steps=PARTS,
            use_cpu=True,
            save_strategy="no",
            report_to=[],
            disable_tqdm=True,
            remove_unused_columns=False,
            optim="sgd",
            learning_rate=LR,
            lr_scheduler_type="constant",
            max_grad_norm=0.0,
            seed=0,
        )
        net = Net()
        samples = Samples()
        trainer = transformers.Trainer(
            Returns(net),
            arguments,
            data_collator=mt.collate,
            train_dataset=[samples[i] for i in range(ranks * PARTS * SIZE)],
            compute_loss_func=compute_loss,
        )
        trainer.train()
    return net


class Returns(nn.Module):
    """A model that gives the Trainer what it knows: outputs, and no loss."""

    def __init__(self, net: nn.Module) -> None:
        super().__init__()
        self.net = net

    def forward(self, x: Tensor, labels: Any = None) -> Any:
        return self.net(x)


def by_torchtitan(rank: int, ranks: int) -> nn.Module:
    """It counts the targets before the step, adds up the gradients of FSDP2, and its loss is a sum over the count."""
    parallelize = pytest.importorskip("torchtitan.distributed.fsdp", reason="not installed", exc_type=ImportError)
    net = Net()
    fully_shard(net)
    parallelize.disable_fsdp_gradient_division(net)
    return known_count(net, net, rank, lambda part: part.backward(), gradients="sum")


def by_summing_fsdp(rank: int, ranks: int) -> nn.Module:
    """What torchtitan and Megatron do, without them."""
    net = Net()
    fully_shard(net).set_gradient_divide_factor(1.0)
    return known_count(net, net, rank, lambda part: part.backward(), gradients="sum")


def known_count(wrapped: Any, net: nn.Module, rank: int, backward: Callable[[Tensor], object], **options: Any) -> Any:
    optimizer = torch.optim.SGD(net.parameters(), LR)
    batches = list(loader(rank))
    count = sum(batch["labels"].count() for batch in batches)
    if dist.is_initialized():
        dist.all_reduce(count)
    mean = mt.mean_over(count=count, **options)
    for batch in batches:
        with mean:
            part = loss(wrapped, batch)
        backward(part)
    optimizer.step()
    return net


ONE = {"lightning": by_lightning, "transformers": by_transformers}
RANKED = {"by hand": by_hand, "accelerate": by_accelerate, "transformers": by_transformers}
RANKED |= {"summing fsdp": by_summing_fsdp, "torchtitan": by_torchtitan}


def on_ranks(rank: int, ranks: int) -> dict[str, str]:
    """What is wrong with each trainer that several ranks can run in one process group."""
    found = {}
    os.environ |= {"RANK": f"{rank}", "LOCAL_RANK": f"{rank}", "WORLD_SIZE": f"{ranks}"}  # as torchrun, for accelerate
    os.environ |= {"MASTER_ADDR": "localhost", "MASTER_PORT": "29500"}
    for name, train in RANKED.items():
        try:
            net = train(rank, ranks)
            check(net, ranks)
            found[name] = ""
        except pytest.skip.Exception as missing:
            found[name] = f"skip: {missing}"
        except AssertionError as wrong:
            found[name] = str(wrong)
    return found


@pytest.mark.parametrize("name", ONE)
def test_one_process(name: str) -> None:
    check(ONE[name]())


@pytest.fixture(scope="module")
def ranked() -> list[dict[str, str]]:
    return gathered(2, on_ranks)


@pytest.mark.parametrize("name", RANKED)
def test_two_ranks(name: str, ranked: list[dict[str, str]]) -> None:
    found = [each[name] for each in ranked]
    if any(text.startswith("skip") for text in found):
        pytest.skip(found[0])
    assert found == ["", ""]

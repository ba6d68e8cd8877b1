"""Flat modules with what trains models: ranks, accumulation, wrappers; gradients as of each sequence alone.

Trainers that are not installed are left out; both ways of two ranks run in one start of processes.
"""

import copy
import io
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel

import masked_tensor as mt

from .helpers.ranks import gathered

LENGTHS = [[6, 2], [1, 4, 3]]  # of each rank, or of each micro-batch
LR = 0.5


def encoder() -> nn.TransformerEncoder:
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(8, 2, 16, 0.0, batch_first=True, dtype=torch.float64)
    return nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)


def rows(part: int) -> list[Tensor]:
    torch.manual_seed(part + 1)
    return [torch.randn(n, 8, dtype=torch.float64) for n in LENGTHS[part]]


def batch(part: int, packed: bool = False) -> Any:
    """NaN in the padding, unless it is packed."""
    time = max(LENGTHS[part])
    data = torch.stack([torch.cat([r, r.new_full((time - len(r), 8), torch.nan)]) for r in rows(part)])
    return mt.from_lengths(data, LENGTHS[part], packed=packed)


def expected(parts: tuple[int, ...] = (0, 1)) -> list[Tensor]:
    """The parameters after one step over all tokens, each sequence alone."""
    model = encoder()
    outs = [model(row[None]).square() for part in parts for row in rows(part)]
    torch.cat([out.flatten() for out in outs]).mean().backward()
    torch.optim.SGD(model.parameters(), LR).step()
    return [p.detach() for p in model.parameters()]


def check(model: nn.Module, parts: tuple[int, ...] = (0, 1)) -> None:
    found = [p.full_tensor() if hasattr(p, "full_tensor") else p.detach() for p in model.parameters()]
    torch.testing.assert_close(found, expected(parts), rtol=1e-10, atol=1e-11)


def loss_of(model: nn.Module, part: int) -> Tensor:
    x = batch(part)
    return F.mse_loss(model(x), x * 0)


def step(model: nn.Module, part: int) -> None:
    with mt.mean_over():
        loss = loss_of(model, part)
    loss.backward()
    torch.optim.SGD(model.parameters(), LR).step()


def train(rank: int, ranks: int) -> list[str]:
    done = []
    for name in ("flat in ddp", "ddp made flat"):
        inner = encoder()
        model = (
            DistributedDataParallel(mt.flat(inner))
            if name == "flat in ddp"
            else mt.flat(DistributedDataParallel(inner))
        )
        step(model, rank)
        check(inner)
        done.append(name)
    for name in ("flat, sharded", "sharded, flat", "undone"):
        sharded = encoder()
        if name != "sharded, flat":
            mt.flat(sharded)
        for layer in sharded.layers:
            fully_shard(layer)
        fully_shard(sharded)
        if name == "undone":
            mt.flat(sharded, False)
            assert "FSDP" in type(sharded).__name__
        else:
            mt.flat(sharded)
        step(sharded, rank)
        check(sharded)
        done.append(name)
    return done


def test_two_ranks() -> None:
    ways = ["flat in ddp", "ddp made flat", "flat, sharded", "sharded, flat", "undone"]
    assert gathered(2, train) == [ways, ways]


def test_data_parallel_and_the_mean_over_micro_batches() -> None:
    model = encoder()
    keys = list(model.state_dict())
    wrapped = mt.flat(nn.DataParallel(model))  # on the CPU it hands its input on
    assert hasattr(type(model), "flat_of")
    assert list(model.state_dict()) == keys
    mean = mt.mean_over(parameters=model.parameters())
    for part in range(2):
        with mean:
            loss = loss_of(wrapped, part)
        loss.backward()
    mean.finish()
    torch.optim.SGD(model.parameters(), LR).step()
    check(model)


def test_saved_models_are_flat_and_weights_fit_both() -> None:
    model, plain = mt.flat(encoder()), encoder()
    plain.load_state_dict(model.state_dict())
    model.load_state_dict(plain.state_dict())
    file = io.BytesIO()
    torch.save(model, file)
    file.seek(0)
    again = torch.load(file, weights_only=False)
    wanted = model(batch(0))
    for other in (again, copy.deepcopy(model), mt.flat(copy.deepcopy(mt.flat(model, False)))):
        assert torch.equal(other(batch(0)).filled(0), wanted.filled(0))
    assert type(model) is nn.TransformerEncoder
    assert {type(part) for part in model.modules()} == {type(part) for part in plain.modules()}


def test_flat_within_flat_and_gradients_of_functions() -> None:
    model = encoder()
    mt.flat(model.layers[0])
    mt.flat(model)
    weights = dict(model.named_parameters())

    def loss(weights: dict[str, Tensor]) -> Tensor:
        out: Tensor = torch.func.functional_call(model, weights, (batch(0),)).square().mean()
        return out

    grads = torch.func.grad(loss)(weights)
    with torch.no_grad():
        for name, weight in weights.items():
            weight -= LR * grads[name]
    check(model, (0,))
    assert mt.flat(model.layers[0])(batch(0)).lengths().tolist() == LENGTHS[0]


def test_autocast() -> None:
    model = mt.flat(encoder().float())
    x = mt.from_lengths(batch(0).filled(0).float(), LENGTHS[0])
    with torch.autocast("cpu", torch.bfloat16):
        out = model(x)
        alone = [model(row[None].float())[0] for row in rows(0)]
    for a, b in zip(out.unpad(), alone, strict=True):
        torch.testing.assert_close(a, b, atol=3e-2, rtol=3e-2)
    out.float().square().mean().backward()
    assert all(p.grad.isfinite().all() for p in model.parameters())


def test_export_says_what_it_takes() -> None:
    with pytest.raises(Exception, match=r"torch\.export cannot trace"):
        torch.export.export(mt.flat(encoder()), (batch(0, packed=True),))


@pytest.mark.filterwarnings("ignore:`is_gradient_checkpointing`:FutureWarning")  # peft asks transformers by it
@pytest.mark.parametrize(("name", "head", "targets"), [("Llama", "ForCausalLM", "q_proj"), ("Bert", "Model", "query")])
def test_accelerate_and_adapters_of_peft(name: str, head: str, targets: str) -> None:
    accelerate, peft = pytest.importorskip("accelerate"), pytest.importorskip("peft")
    from .test_flat_transformers import LENGTHS, make
    from .test_flat_transformers import batch as ids_of

    ids, valid = ids_of()
    x = mt.masked_tensor(ids, valid)
    config = peft.LoraConfig(target_modules=[targets], init_lora_weights=False)
    for first in (True, False):
        model = make(name, head).eval()
        model = peft.get_peft_model(mt.flat(model), config) if first else mt.flat(peft.get_peft_model(model, config))
        prepared = accelerate.Accelerator(cpu=True).prepare(model)
        trained = [p for p in model.parameters() if p.requires_grad]
        out = prepared(input_ids=x)[0].filled(0)[valid]
        alone = [model(input_ids=row[None, :n])[0][0] for row, n in zip(ids, LENGTHS, strict=True)]
        torch.testing.assert_close(out, torch.cat(alone), atol=1e-5, rtol=1e-4)
        got = torch.autograd.grad(out.square().sum(), trained)
        wanted = torch.autograd.grad(torch.cat(alone).square().sum(), trained)
        torch.testing.assert_close(got, wanted, atol=1e-4, rtol=1e-3)


@pytest.mark.filterwarnings("ignore::masked_tensor.MaskedSizeWarning")  # of its estimate of the compute
def test_the_trainer_of_transformers(tmp_path: Any) -> None:
    pytest.importorskip("accelerate")
    transformers = pytest.importorskip("transformers")
    from .test_flat_transformers import make

    model = make("Bert", "ForTokenClassification").train()
    samples = [{"input_ids": torch.randint(3, 50, (n,)), "labels": torch.randint(0, 2, (n,))} for n in (5, 2, 4, 3)]
    twin = copy.deepcopy(model)
    terms = [twin(input_ids=s["input_ids"][None], labels=s["labels"][None]).loss * len(s["labels"]) for s in samples]
    (sum(terms) / 14).backward()
    torch.optim.SGD(twin.parameters(), LR).step()
    trainer = transformers.Trainer(
        mt.flat(model),
        transformers.TrainingArguments(
            str(tmp_path), per_device_train_batch_size=4, max_steps=1, learning_rate=LR, use_cpu=True, report_to=[],
            lr_scheduler_type="constant", max_grad_norm=0.0, save_strategy="no", disable_tqdm=True, optim="sgd",
        ),
        data_collator=mt.collate,
        train_dataset=samples,
    )  # fmt: skip
    trainer.train()
    for a, b in zip(model.parameters(), twin.parameters(), strict=True):
        torch.testing.assert_close(a, b, atol=1e-5, rtol=1e-4)

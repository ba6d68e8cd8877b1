"""torchtune: layers of decoders, and losses of distillation and preferences."""

from ._case import Case, beside, integers, load, ragged

STEPS = ragged((None, 16))
LOGITS = beside((6, 9), (6, 9), integers(9, 6))
CHOICES = beside((), (), (), ())
LIBRARY = "torchtune"


def module(name, *args, **options):
    return lambda: getattr(load("torchtune.modules"), name)(*args, **options)


def attention():
    m, nn = load("torchtune.modules"), load("torch.nn")
    return m.MultiHeadAttention(
        embed_dim=16, num_heads=2, num_kv_heads=1, head_dim=8, q_proj=nn.Linear(16, 16), k_proj=nn.Linear(16, 8),
        v_proj=nn.Linear(16, 8), output_proj=nn.Linear(16, 16), pos_embeddings=m.RotaryPositionalEmbeddings(8, 32),
        max_seq_len=32, is_causal=True,
    )  # fmt: skip


def mlp():
    nn = load("torch.nn")
    return load("torchtune.modules").FeedForward(
        gate_proj=nn.Linear(16, 24), down_proj=nn.Linear(24, 16), up_proj=nn.Linear(16, 24)
    )


def layer():
    m = load("torchtune.modules")
    return m.TransformerSelfAttentionLayer(attention(), mlp(), sa_norm=m.RMSNorm(16), mlp_norm=m.RMSNorm(16))


def to_itself(model, x):
    return model(x, x)


def loss(place, name, **options):
    return lambda: getattr(load(f"torchtune.{place}"), name)(**options)


def chunks(made, x, labels):
    return made(list(x.chunk(3, 1)), labels)


def mean(made, *given):
    return made(*given)[0].mean()


CASES = [
    Case("MultiHeadAttention", attention, STEPS, call=to_itself),
    Case("FeedForward", mlp, STEPS),
    Case("TransformerSelfAttentionLayer", layer, STEPS),
    Case("RMSNorm", module("RMSNorm", 16), STEPS),
    Case("Fp32LayerNorm", module("Fp32LayerNorm", 16), STEPS),
    Case("TanhGate", module("TanhGate"), STEPS),
    Case("RotaryPositionalEmbeddings", module("RotaryPositionalEmbeddings", 8, 32), ragged((None, 2, 8))),
    *[Case(name, loss("modules.loss", name), LOGITS) for name in ("ForwardKLLoss", "ReverseKLLoss", "SymmetricKLLoss")],
    Case(
        "CEWithChunkedOutputLoss",
        loss("modules.loss", "CEWithChunkedOutputLoss", num_output_chunks=3),
        beside((6, 9), integers(9, 6)),
        call=chunks,
    ),
    Case("DPOLoss", loss("rlhf.loss", "DPOLoss"), CHOICES, call=mean),
    Case("RSOLoss", loss("rlhf.loss", "RSOLoss"), CHOICES, call=mean),
]

"""litgpt: decoders of tokens, their parts, and its loss in chunks."""

from ._case import Case, beside, integers, load, ragged

TOKENS, STEPS = ragged(integers(32, None)), ragged((None, 16))
LOGITS = beside((6, 9), integers(9, 6))
CONFIG = {"block_size": 16, "n_layer": 2, "n_embd": 16, "n_head": 2, "padded_vocab_size": 32, "vocab_size": 32}
LIBRARY = "litgpt"


def config(**options):
    return load("litgpt").Config(**CONFIG | options)


def decoder(**options):
    return lambda: load("litgpt").GPT(config(**options))


def part(name, *args, **options):
    return lambda: getattr(load("litgpt.model"), name)(*args, **options)


def of_config(name, *args, **options):
    return lambda: getattr(load("litgpt.model"), name)(config(**options), *args)


def chunked(size):
    return lambda: lambda x, y: load("litgpt.utils").chunked_cross_entropy(x, y, chunk_size=size)


LLAMA = {"norm_class_name": "RMSNorm", "mlp_class_name": "LLaMAMLP", "intermediate_size": 24, "rotary_percentage": 1.0}
EXPERTS = LLAMA | {"mlp_class_name": "LLaMAMoE", "n_expert": 4, "n_expert_per_token": 2, "moe_intermediate_size": 24}
CASES = [
    Case("GPT", decoder(), TOKENS),
    Case("GPT (llama, grouped queries)", decoder(n_query_groups=1, **LLAMA), TOKENS),
    Case("GPT (sliding window)", decoder(sliding_window_size=4, sliding_window_indices=[1, 0], **LLAMA), TOKENS),
    Case("GPT (experts)", decoder(**EXPERTS), TOKENS),
    Case("GptNeoxMLP", of_config("GptNeoxMLP", intermediate_size=24), STEPS),
    Case("LLaMAMLP", of_config("LLaMAMLP", **LLAMA), STEPS),
    Case("LLaMAMoE", of_config("LLaMAMoE", **EXPERTS), STEPS),
    Case("RMSNorm", part("RMSNorm", 16), STEPS),
    Case("chunked_cross_entropy", chunked(0), LOGITS),
    Case("chunked_cross_entropy (chunks)", chunked(4), LOGITS),
]

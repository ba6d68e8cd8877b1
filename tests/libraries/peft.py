"""peft: layers with adapters."""

from torch import nn

from ._case import Case, integers, load, ragged

STEPS, TOKENS = ragged((None, 8)), ragged(integers(16, None))
LIBRARY = "peft"


class Model(nn.Module):
    def __init__(self, first):
        super().__init__()
        self.first, self.second = first, nn.Linear(8, 4)

    def forward(self, x):
        return self.second(self.first(x).tanh())


def adapted(name, first=None, **options):
    def made():
        peft = load("peft")
        config = getattr(peft, name)(target_modules=["first", "second"], **options)
        return peft.get_peft_model(Model(first() if first else nn.Linear(8, 8)), config).base_model.model

    return made


CASES = [
    Case("LoraConfig", adapted("LoraConfig", r=2, init_lora_weights=False), STEPS),
    Case("LoraConfig (use_dora)", adapted("LoraConfig", r=2, use_dora=True, init_lora_weights=False), STEPS),
    Case(
        "LoraConfig (Embedding)",
        adapted("LoraConfig", lambda: nn.Embedding(16, 8), r=2, init_lora_weights=False),
        TOKENS,
    ),
    Case("LoHaConfig", adapted("LoHaConfig", r=2, init_weights=False), STEPS),
    Case("LoKrConfig", adapted("LoKrConfig", r=2, init_weights=False), STEPS),
    Case("IA3Config", adapted("IA3Config", feedforward_modules=["second"]), STEPS),
    Case("OFTConfig", adapted("OFTConfig", r=2, oft_block_size=0, init_weights=False), STEPS),
    Case("VeraConfig", adapted("VeraConfig", r=2), STEPS),
    Case("FourierFTConfig", adapted("FourierFTConfig", n_frequency=4, init_weights=True), STEPS),
]

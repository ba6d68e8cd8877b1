"""soft-moe-pytorch: soft mixtures of experts over padded rows, with no mask given."""

from ._case import Case, load, ragged

STEPS = ragged((None, 6))


def moe(name, **options):
    return lambda: getattr(load("soft_moe_pytorch"), name)(6, **options)


LIBRARY = "soft-moe-pytorch"
CASES = [
    Case("SoftMoE", moe("SoftMoE", num_slots=2, num_experts=2), STEPS),
    Case("SoftMoE (seq_len)", moe("SoftMoE", seq_len=12, num_experts=2), STEPS),
    Case("DynamicSlotsSoftMoE", moe("DynamicSlotsSoftMoE", num_experts=2), STEPS),
    Case(
        "DynamicSlotsSoftMoE (experts that do not divide the length)", moe("DynamicSlotsSoftMoE", num_experts=5), STEPS
    ),
]

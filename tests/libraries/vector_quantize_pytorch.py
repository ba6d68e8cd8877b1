"""vector-quantize-pytorch: codes of padded steps."""

from ._case import Case, load, ragged


def codes(name, **options):
    return lambda: getattr(load("vector_quantize_pytorch"), name)(**options)


STEPS = ragged((None, 8))
LIBRARY = "vector-quantize-pytorch"
CASES = [
    Case("VectorQuantize", codes("VectorQuantize", dim=8, codebook_size=16), STEPS),
    Case("VectorQuantize (cosine)", codes("VectorQuantize", dim=8, codebook_size=16, use_cosine_sim=True), STEPS),
    Case("ResidualVQ", codes("ResidualVQ", dim=8, codebook_size=16, num_quantizers=2), STEPS),
    Case("GroupedResidualVQ", codes("GroupedResidualVQ", dim=8, groups=2, codebook_size=16, num_quantizers=2), STEPS),
    Case("FSQ", codes("FSQ", levels=[8, 5, 5], dim=8), STEPS),
    Case("LFQ", codes("LFQ", codebook_size=16, dim=8), STEPS),
    Case("ResidualFSQ", codes("ResidualFSQ", levels=[8, 5, 5], dim=8, num_quantizers=2), STEPS),
    Case("RandomProjectionQuantizer", codes("SimVQ", dim=8, codebook_size=16), STEPS),
]

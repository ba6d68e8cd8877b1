"""timm: losses and layers; docs/models.md has its models."""

from ._case import Case, beside, images, integers, load, ragged, unit

STEPS, IMAGES = ragged((None, 8)), images(8, 8, 8)
CLASSES = beside((5,), integers(5))
LIBRARY = "timm"


def layer(name, *args, **options):
    return lambda: getattr(load("timm.layers"), name)(*args, **options)


def loss(name, *args, **options):
    return lambda: getattr(load("timm.loss"), name)(*args, **options)


CASES = [
    Case("LabelSmoothingCrossEntropy", loss("LabelSmoothingCrossEntropy", 0.1), CLASSES),
    Case("SoftTargetCrossEntropy", loss("SoftTargetCrossEntropy"), beside((5,), unit(5))),
    Case("BinaryCrossEntropy", loss("BinaryCrossEntropy", smoothing=0.0), beside((5,), unit(5))),
    Case("AsymmetricLossMultiLabel", loss("AsymmetricLossMultiLabel"), beside((5,), unit(5)), "declared",
         'divides by the number of rows; use `reduction="mean"`'),
    Case("AsymmetricLossMultiLabel (mean)", loss("AsymmetricLossMultiLabel", reduction="mean"), beside((5,), unit(5))),
    Case("Mlp", layer("Mlp", 8), STEPS),
    Case("GluMlp", layer("GluMlp", 8), STEPS),
    Case("SwiGLU", layer("SwiGLU", 8), STEPS),
    Case("Attention", layer("Attention", 8, num_heads=2), STEPS),
    Case("RmsNorm", layer("RmsNorm", 8), STEPS),
    Case("SEModule", layer("SEModule", 8), IMAGES),
    Case("EcaModule", layer("EcaModule", 8), IMAGES),
    Case("BlurPool2d", layer("BlurPool2d", 8), IMAGES),
    Case("AttentionPoolLatent", layer("AttentionPoolLatent", 8, num_heads=2), STEPS),
]  # fmt: skip

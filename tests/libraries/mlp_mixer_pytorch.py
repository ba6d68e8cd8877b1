"""mlp-mixer-pytorch: mixing over patches, beside masked images."""

from ._case import Case, images, load

IMAGES = images(3, 16, 16)
LIBRARY = "mlp-mixer-pytorch"
CASES = [
    Case(
        "MLPMixer",
        lambda: load("mlp_mixer_pytorch").MLPMixer(
            image_size=16, channels=3, patch_size=4, dim=16, depth=1, num_classes=5
        ),
        IMAGES,
    ),
]

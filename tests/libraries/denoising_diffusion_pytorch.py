"""denoising-diffusion-pytorch: networks and losses of diffusion, beside masked images."""

from ._case import Case, beside, images, load, plain, unit

IMAGES = images(3, 16, 16, others=(plain(unit()),))
LIBRARY = "denoising-diffusion-pytorch"
CASES = [
    Case("Unet", lambda: load("denoising_diffusion_pytorch").Unet(8, dim_mults=(1, 2), flash_attn=False), IMAGES),
    Case(
        "Unet1D",
        lambda: load("denoising_diffusion_pytorch").Unet1D(8, dim_mults=(1, 2), channels=3),
        beside((3, 16), plain(unit()), rows=3),
    ),
]

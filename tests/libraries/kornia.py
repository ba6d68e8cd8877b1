"""kornia: filters, colours, losses and metrics of images that are padded or masked."""

from ._case import Case, beside, images, load, ragged, unit

IMAGES = ragged(unit(3, 16, None), lengths=(16, 8, 12))
BATCH, PAIRS = images(3, 8, 8, kind="unit"), beside(unit(3, 8, 8), unit(3, 8, 8))
LIBRARY = "kornia"


def function(path, name, *args, **options):
    return lambda: lambda *x: getattr(load(f"kornia.{path}"), name)(*x, *args, **options)


def colour(name):
    return Case(name, function("color", name), IMAGES)


CASES = [
    *[colour(name) for name in ("rgb_to_grayscale", "rgb_to_hsv", "rgb_to_hls", "rgb_to_ycbcr", "rgb_to_yuv",
                                "rgb_to_lab", "rgb_to_luv", "rgb_to_xyz", "rgb_to_linear_rgb")],
    Case("gaussian_blur2d", function("filters", "gaussian_blur2d", (3, 3), (1.0, 1.0), "constant"), IMAGES),
    Case("box_blur", function("filters", "box_blur", (3, 3), "constant"), IMAGES),
    Case("median_blur", function("filters", "median_blur", (3, 3)), BATCH),
    Case("sobel", function("filters", "sobel"), BATCH),
    Case("laplacian", function("filters", "laplacian", 3), BATCH),
    Case("unsharp_mask", function("filters", "unsharp_mask", (3, 3), (1.0, 1.0)), BATCH),
    Case("adjust_brightness", function("enhance", "adjust_brightness", 0.1), IMAGES),
    Case("adjust_gamma", function("enhance", "adjust_gamma", 0.7), IMAGES),
    Case("adjust_contrast", function("enhance", "adjust_contrast", 0.7), IMAGES),
    Case("normalize", function("enhance", "normalize", 0.5, 0.2), IMAGES),
    Case("hflip", function("geometry", "hflip"), BATCH),
    Case("rotate", lambda: lambda x: load("kornia.geometry").rotate(x, x.new_full((len(x),), 30.0)), BATCH,
         within="masked_factories()"),
    Case("resize", function("geometry", "resize", (4, 4)), BATCH),
    Case("ssim_loss", function("losses", "ssim_loss", 5), PAIRS),
    Case("psnr_loss", function("losses", "psnr_loss", 1.0), PAIRS),
    Case("total_variation", function("losses", "total_variation"), BATCH),
    Case("charbonnier_loss", function("losses", "charbonnier_loss", "mean"), PAIRS),
    Case("welsch_loss", function("losses", "welsch_loss", "mean"), PAIRS),
    Case("cauchy_loss", function("losses", "cauchy_loss", "mean"), PAIRS),
    Case("kl_div_loss_2d", function("losses", "kl_div_loss_2d", reduction="none"), PAIRS),
    Case("js_div_loss_2d", function("losses", "js_div_loss_2d", reduction="none"), PAIRS),
    Case("binary_focal_loss_with_logits", function("losses", "binary_focal_loss_with_logits", 0.25, reduction="mean"),
         PAIRS),
    Case("ssim", function("metrics", "ssim", 5), PAIRS),
    Case("SpatialSoftArgmax2d", lambda: load("kornia.geometry.subpix").SpatialSoftArgmax2d(), BATCH),
]  # fmt: skip

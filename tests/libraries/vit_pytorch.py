"""vit-pytorch: image models beside images that are masked."""

from ._case import Case, images, load

IMAGES = images(3, 16, 16)
SIZES = {"image_size": 16, "patch_size": 4, "num_classes": 5, "dim": 16, "depth": 1, "heads": 2, "mlp_dim": 16}


def model(module, name, **options):
    return lambda: getattr(load(f"vit_pytorch.{module}"), name)(**SIZES | options)


LIBRARY = "vit-pytorch"
CASES = [
    Case("ViT", model("vit", "ViT"), IMAGES),
    Case("ViT (mean)", model("vit", "ViT", pool="mean"), IMAGES),
    Case("SimpleViT", model("simple_vit", "SimpleViT"), IMAGES),
    Case("SimpleViT (registers)", model("simple_vit_with_register_tokens", "SimpleViT", num_register_tokens=2), IMAGES),
    Case("SimpleViT (patch dropout)", model("simple_vit_with_patch_dropout", "SimpleViT"), IMAGES),
    Case("SimpleViT (qk norm)", model("simple_vit_with_qk_norm", "SimpleViT"), IMAGES),
    Case("DeepViT", model("deepvit", "DeepViT"), IMAGES),
    Case("ViT (parallel)", model("parallel_vit", "ViT"), IMAGES),
    Case("ViT (small datasets)", model("vit_for_small_dataset", "ViT"), IMAGES),
    Case("CaiT", model("cait", "CaiT", cls_depth=1), IMAGES),
    Case("MAE encoder (ViT.to_patch_embedding)", lambda: model("vit", "ViT")().to_patch_embedding, IMAGES),
]

"""monai: networks beside masked volumes, losses and metrics."""

from ._case import Case, beside, images, load, unit

IMAGES = images(1, 32, 32)
PAIRS = beside(unit(2, 8, 8), unit(2, 8, 8))
VIEWS = beside((4,), (4,), rows=6, masked=(1, 4))
LIBRARY = "monai"
PLANE = {"spatial_dims": 2, "in_channels": 1, "out_channels": 2}


def net(name, **options):
    return lambda: getattr(load("monai.networks.nets"), name)(**options)


def loss(name, **options):
    return lambda: getattr(load("monai.losses"), name)(**options)


CASES = [
    Case("UNet", net("UNet", channels=(4, 8, 16), strides=(2, 2), **PLANE), IMAGES),
    Case("AttentionUnet", net("AttentionUnet", channels=(4, 8, 16), strides=(2, 2), **PLANE), IMAGES),
    Case("BasicUNet", net("BasicUNet", features=(4, 4, 8, 8, 8, 4), **PLANE), IMAGES),
    Case("SegResNet", net("SegResNet", init_filters=8, blocks_down=(1, 1), blocks_up=(1,), **PLANE), IMAGES),
    Case("DynUNet", net("DynUNet", kernel_size=[3, 3, 3], strides=[1, 2, 2], upsample_kernel_size=[2, 2],
                        filters=[4, 8, 8], **PLANE), IMAGES),
    Case("UNETR", net("UNETR", in_channels=1, out_channels=2, img_size=32, spatial_dims=2, feature_size=4,
                      hidden_size=24, mlp_dim=24, num_heads=2), IMAGES),
    Case("ViT", net("ViT", in_channels=1, img_size=(32, 32), patch_size=(8, 8), hidden_size=16, mlp_dim=16,
                    num_layers=1, num_heads=2, spatial_dims=2, classification=True), IMAGES),
    Case("DenseNet", net("DenseNet", spatial_dims=2, in_channels=1, out_channels=2, init_features=4, growth_rate=4,
                         block_config=(2, 2)), IMAGES),
    Case("ResNet", net("ResNet", block="basic", layers=[1, 1, 1, 1], block_inplanes=[4, 4, 8, 8], spatial_dims=2,
                       n_input_channels=1, num_classes=2), IMAGES),
    Case("HighResNet", net("HighResNet", layer_params=(
        {"name": "conv_0", "n_features": 4, "kernel_size": 3},
        {"name": "res_1", "n_features": 4, "kernels": (3, 3), "repeat": 1},
        {"name": "conv_1", "n_features": 4, "kernel_size": 1}, {"name": "conv_2", "kernel_size": 1}), **PLANE), IMAGES),
    Case("AutoEncoder", net("AutoEncoder", channels=(4, 8), strides=(2, 2), **PLANE), IMAGES),
    Case("DiceLoss", loss("DiceLoss"), PAIRS),
    Case("DiceCELoss", loss("DiceCELoss"), PAIRS),
    Case("FocalLoss", loss("FocalLoss"), PAIRS),
    Case("TverskyLoss", loss("TverskyLoss"), PAIRS),
    Case("DiceFocalLoss", loss("DiceFocalLoss"), PAIRS),
    Case("SSIMLoss", loss("SSIMLoss", spatial_dims=2, win_size=5), PAIRS),
    Case("LocalNormalizedCrossCorrelationLoss", loss("LocalNormalizedCrossCorrelationLoss", spatial_dims=2), PAIRS),
    Case("BendingEnergyLoss", loss("BendingEnergyLoss"), beside((2, 8, 8))),
    Case("ContrastiveLoss", loss("ContrastiveLoss"), VIEWS),
    Case("BarlowTwinsLoss", loss("BarlowTwinsLoss"), VIEWS),
    Case("SSIMMetric", lambda: load("monai.metrics").SSIMMetric(spatial_dims=2, win_size=5), PAIRS,
         call=lambda m, x, y: m._compute_metric(x, y)),
    Case("MSEMetric", lambda: lambda x, y: load("monai.metrics").MSEMetric()._compute_metric(x, y), PAIRS),
]  # fmt: skip

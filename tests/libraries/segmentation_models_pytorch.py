"""segmentation-models-pytorch: networks beside masked images, and losses of partly labelled ones."""

from ._case import Case, beside, images, integers, load

IMAGES = images(3, 64, 64)
LABELS = beside((3, 8, 8), integers(3, 8, 8))
BINARY = beside((1, 8, 8), integers(2, 1, 8, 8))
NAMES = "Unet UnetPlusPlus MAnet Linknet FPN PSPNet DeepLabV3 DeepLabV3Plus UPerNet"
LIBRARY = "segmentation-models-pytorch"


def net(name):
    return lambda: getattr(load("segmentation_models_pytorch"), name)("resnet18", encoder_weights=None, classes=2)


def loss(name, *args, **options):
    return lambda: getattr(load("segmentation_models_pytorch.losses"), name)(*args, **options)


CASES = [
    *[Case(name, net(name), IMAGES) for name in NAMES.split()],
    Case("DiceLoss", loss("DiceLoss", "multiclass"), LABELS),
    Case("JaccardLoss", loss("JaccardLoss", "multiclass"), LABELS),
    Case("TverskyLoss", loss("TverskyLoss", "multiclass"), LABELS),
    Case("FocalLoss", loss("FocalLoss", "multiclass"), LABELS),
    Case("FocalLoss (binary)", loss("FocalLoss", "binary"), BINARY),
    Case("SoftBCEWithLogitsLoss", loss("SoftBCEWithLogitsLoss"), beside((1, 8, 8), (1, 8, 8))),
    Case("SoftCrossEntropyLoss", loss("SoftCrossEntropyLoss", smooth_factor=0.1), LABELS),
]

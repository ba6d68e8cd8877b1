"""pytorch-toolbelt: losses of segmentation and classification; a row is masked in prediction and target, or in one."""

from ._case import Case, beside, integers, load, plain, unit

PIXELS = beside((1, 6, 6), integers(2, 1, 6, 6))
PREDICTED = beside((1, 6, 6), plain(integers(2, 1, 6, 6)))
CLASSES = beside((5,), integers(5))
REAL = beside((5,), (5,))
LIBRARY = "pytorch-toolbelt"


def loss(name, *args, **options):
    return lambda: getattr(load("pytorch_toolbelt.losses"), name)(*args, **options)


def floats(made, x, target):
    return made(x, target.double())


CASES = [
    Case("DiceLoss", loss("DiceLoss", "binary"), PIXELS, call=floats),
    Case("DiceLoss (prediction masked)", loss("DiceLoss", "binary"), PREDICTED, call=floats),
    Case("JaccardLoss", loss("JaccardLoss", "binary"), PIXELS, call=floats),
    Case("BinaryFocalLoss", loss("BinaryFocalLoss"), PIXELS, call=floats),
    Case("BinaryFocalLoss (prediction masked)", loss("BinaryFocalLoss"), PREDICTED, call=floats),
    Case("CrossEntropyFocalLoss", loss("CrossEntropyFocalLoss"), CLASSES),
    Case("SoftBCEWithLogitsLoss", loss("SoftBCEWithLogitsLoss", smooth_factor=0.1), PIXELS, call=floats),
    Case("SoftCrossEntropyLoss", loss("SoftCrossEntropyLoss", smooth_factor=0.1), CLASSES),
    Case("WingLoss", loss("WingLoss"), REAL),
    Case("LogCoshLoss", loss("LogCoshLoss"), REAL),
    Case("BalancedBCEWithLogitsLoss", loss("BalancedBCEWithLogitsLoss"), PIXELS, call=floats),
    Case("BinarySoftF1Loss", loss("BinarySoftF1Loss"), beside((1,), integers(2, 1)), call=floats),
    Case("SoftF1Loss", loss("SoftF1Loss"), CLASSES),
    Case("QualityFocalLoss", loss("QualityFocalLoss"), beside((5,), unit(5))),
    Case("BiTemperedLogisticLoss", loss("BiTemperedLogisticLoss", t1=0.8, t2=1.4), CLASSES),
]

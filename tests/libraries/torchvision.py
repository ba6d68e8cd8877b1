"""torchvision: image models and losses beside images that are masked."""

from ._case import Case, beside, images, load, unit

IMAGES = images(3, 64, 64)
LIBRARY = "torchvision"


def model(name, **options):
    return lambda: getattr(load("torchvision.models"), name)(weights=None, num_classes=5, **options)


def vit():
    return load("torchvision.models").VisionTransformer(32, 16, 1, 2, 16, 16, num_classes=5)


def swin():
    made = load("torchvision.models.swin_transformer").SwinTransformer
    return made([4, 4], 8, [1, 1], [2, 2], [4, 4], num_classes=5, stochastic_depth_prob=0.0)


def segmentation(name):
    return lambda: getattr(load("torchvision.models.segmentation"), name)(
        weights=None, weights_backbone=None, num_classes=3
    )


def detection():
    made = load("torchvision.models.detection.backbone_utils").resnet_fpn_backbone
    head = load("torchvision.models.detection.retinanet").RetinaNetHead(256, 9, 3)
    backbone = made(backbone_name="resnet18", weights=None, trainable_layers=5)
    return load("torch.nn").ModuleDict({"backbone": backbone, "head": head})


def detected(model, x):
    found = model["head"](list(model["backbone"](x).values()))
    return load("torch").cat([found["cls_logits"], found["bbox_regression"]], -1)


def loss(name, **options):
    return lambda: lambda *x: getattr(load("torchvision.ops"), name)(*x, **options)


BOXES = beside((2,), (2,), unit(2), unit(2))


def boxes(model, a, b, c, d):
    cat = load("torch").cat
    return model(cat([a, a + 0.5 + c], 1), cat([b, b + 0.5 + d], 1))


CASES = [
    *[Case(name, model(name), IMAGES) for name in (
        "resnet18", "squeezenet1_1", "mobilenet_v2", "mobilenet_v3_small", "shufflenet_v2_x0_5", "mnasnet0_5",
        "regnet_y_400mf", "efficientnet_b0", "densenet121", "googlenet")],
    Case("VisionTransformer", vit, images(3, 32, 32)),
    Case("SwinTransformer", swin, images(3, 32, 32)),
    Case("lraspp_mobilenet_v3_large", segmentation("lraspp_mobilenet_v3_large"), IMAGES),
    Case("deeplabv3_mobilenet_v3_large", segmentation("deeplabv3_mobilenet_v3_large"), IMAGES),
    Case("RetinaNet (backbone, head)", detection, IMAGES, call=detected),
    Case("sigmoid_focal_loss", loss("sigmoid_focal_loss"), beside((5,), unit(5))),
    Case("sigmoid_focal_loss (mean)", loss("sigmoid_focal_loss", reduction="mean"), beside((5,), unit(5))),
    Case("generalized_box_iou_loss", loss("generalized_box_iou_loss", reduction="mean"), BOXES, call=boxes),
    Case("complete_box_iou_loss", loss("complete_box_iou_loss", reduction="mean"), BOXES, call=boxes),
    Case("distance_box_iou_loss", loss("distance_box_iou_loss", reduction="mean"), BOXES, call=boxes),
    Case("SqueezeExcitation", lambda: load("torchvision.ops").SqueezeExcitation(3, 2), IMAGES),
    Case("FrozenBatchNorm2d", lambda: load("torchvision.ops").FrozenBatchNorm2d(3), IMAGES),
]  # fmt: skip

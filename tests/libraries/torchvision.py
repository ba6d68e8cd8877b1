"""torchvision: image models and losses beside images that are masked; training steps of detection models.

A *step* is the sum of a detection model's losses for a padded batch of images with padded boxes and labels, NaN and
-100 in the padding.  It is compared with the steps of the images alone, cropped, with their own boxes: their mean, or,
where a model divides by the matched anchors of the whole batch, their mean weighted by these.
"""

from contextlib import contextmanager
from unittest import mock

import torch
from torch import Tensor

import masked_tensor as mt

from ._case import Case, Given, beside, images, load, unit

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


def network(name):
    """RetinaNet or FCOS, without the resizing of images."""

    def make():
        made = load("torchvision.models.detection.backbone_utils").resnet_fpn_backbone
        backbone = made(backbone_name="resnet18", weights=None, trainable_layers=5)
        return getattr(load("torchvision.models.detection"), name)(backbone, 3, _skip_resize=True)

    return make


def ssd():
    backbone = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 16, 16), torch.nn.ReLU())
    backbone.out_channels = [8]
    boxes = load("torchvision.models.detection.anchor_utils").DefaultBoxGenerator([[2]])
    return load("torchvision.models.detection.ssd").SSD(backbone, boxes, (64, 128), 3, _skip_resize=True)


COUNTS = (3, 2)  # boxes of each image


def scenes(*widths: int, masked: bool = True):
    """Images of these widths with their boxes and labels, padded; the row is the same, plain."""

    def given() -> Given:
        generator = torch.Generator().manual_seed(0)
        x = torch.rand(2, 3, 64, 128, generator=generator, dtype=torch.float64)
        corners = torch.rand(2, 4, 2, generator=generator, dtype=torch.float64)
        corners = 4 + corners * (torch.tensor(widths).view(2, 1, 1) - 40).clamp(max=24)
        sizes = 14 + 16 * torch.rand(2, 4, 2, generator=generator, dtype=torch.float64)
        boxes, labels = torch.cat([corners, corners + sizes], -1), torch.randint(3, (2, 4), generator=generator)
        there = torch.arange(128) < torch.tensor(widths).view(2, 1, 1, 1)
        real = torch.arange(4) < torch.tensor(COUNTS).view(2, 1)
        batch = (
            mt.as_masked_tensor(x.masked_fill(~there, torch.nan), there) if masked else x,
            mt.as_masked_tensor(boxes.masked_fill(~real[..., None], torch.nan), real[..., None]),
            mt.as_masked_tensor(labels.masked_fill(~real, -100), real),
        )
        return Given([(x, boxes, labels)], batch)

    def step(model, x, boxes, labels) -> Tensor:
        boxes = boxes.detach()  # the plain gradient of FCOS's is NaN
        if mt.is_masked_tensor(boxes):
            targets = [{"boxes": b, "labels": k} for b, k in zip(boxes, labels, strict=True)]
            return sum(model(list(x), targets).values()).reshape(1, 1)
        losses, counts = [], []
        for i, (width, n) in enumerate(zip(widths, COUNTS, strict=True)):
            with _matched(model, counts):
                found = model([x[i, :, :, :width]], [{"boxes": boxes[i, :n], "labels": labels[i, :n]}])
            losses.append(sum(found.values()))
        weights = [1, 1] if type(model).__name__ == "RetinaNet" else counts
        return (sum(y * n for y, n in zip(losses, weights, strict=True)) / sum(weights)).reshape(1, 1)

    return {"given": given, "call": step, "train": True}


@contextmanager
def _matched(model, counts):
    """Adds up how many anchors are matched to boxes."""
    owner = model if type(model).__name__ == "SSD" else model.head
    inner = owner.compute_loss

    def seen(*given):
        counts.append(sum((matched >= 0).sum().item() for matched in given[3]))
        return inner(*given)

    with mock.patch.object(owner, "compute_loss", seen):
        yield


CASES = [
    *[Case(name, model(name), IMAGES) for name in (
        "resnet18", "squeezenet1_1", "mobilenet_v2", "mobilenet_v3_small", "shufflenet_v2_x0_5", "mnasnet0_5",
        "regnet_y_400mf", "efficientnet_b0", "densenet121", "googlenet")],
    Case("VisionTransformer", vit, images(3, 32, 32)),
    Case("SwinTransformer", swin, images(3, 32, 32)),
    Case("lraspp_mobilenet_v3_large", segmentation("lraspp_mobilenet_v3_large"), IMAGES),
    Case("deeplabv3_mobilenet_v3_large", segmentation("deeplabv3_mobilenet_v3_large"), IMAGES),
    Case("RetinaNet (backbone, head)", detection, IMAGES, call=detected),
    Case("RetinaNet (step)", network("RetinaNet"), **scenes(128, 64)),
    Case("RetinaNet (step, boxes alone padded)", network("RetinaNet"), within="masked_factories()",
         **scenes(128, 128, masked=False)),
    Case("FCOS (step)", network("FCOS"), **scenes(128, 64)),
    Case("SSD (step)", ssd, within="masked_factories()", **scenes(128, 128)),
    Case("sigmoid_focal_loss", loss("sigmoid_focal_loss"), beside((5,), unit(5))),
    Case("sigmoid_focal_loss (mean)", loss("sigmoid_focal_loss", reduction="mean"), beside((5,), unit(5))),
    Case("generalized_box_iou_loss", loss("generalized_box_iou_loss", reduction="mean"), BOXES, call=boxes),
    Case("complete_box_iou_loss", loss("complete_box_iou_loss", reduction="mean"), BOXES, call=boxes),
    Case("distance_box_iou_loss", loss("distance_box_iou_loss", reduction="mean"), BOXES, call=boxes),
    Case("SqueezeExcitation", lambda: load("torchvision.ops").SqueezeExcitation(3, 2), IMAGES),
    Case("FrozenBatchNorm2d", lambda: load("torchvision.ops").FrozenBatchNorm2d(3), IMAGES),
]  # fmt: skip

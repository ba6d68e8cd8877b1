"""open_clip: contrastive losses of pairs of which one is masked, on both sides or on one."""

from ._case import Case, Input, beside, load, plain

BOTH, IMAGES = beside((4,), (4,)), beside((4,), plain(Input((4,))))


def loss(name):
    return lambda: getattr(load("open_clip.loss"), name)()


def clip(made, images, texts):
    return made(images, texts, 10.0)


def sigmoid(made, images, texts):
    return made(images, texts, 10.0, -1.0)


LIBRARY = "open_clip_torch"
CASES = [
    Case("ClipLoss (both sides masked)", loss("ClipLoss"), BOTH, call=clip),
    Case("SigLipLoss (both sides masked)", loss("SigLipLoss"), BOTH, call=sigmoid),
]

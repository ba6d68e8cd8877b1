"""Image models of timm, one small model of each of its modules: what masked images do to them.

*Whole*: images that are valid everywhere give what plain images give, in eval and in train mode, every parameter's
gradient and every buffer included.  *Beside*: an image that is masked altogether (NaN under the mask) changes nothing
of those beside it.  *Pixels*: with missing pixels, under ``meaning(convolution="any", renormalize=True)``, nothing
depends on what lies under the mask, and gradients are finite.  *Padded*: an image padded at its right and bottom
against itself alone and smaller, where a model takes images of another size; that is no law: positions come from the
size, and strides need not meet.
"""

import copy
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn

import masked_tensor as mt

from .judge import Verdict, short

# The smallest model of each module.
SMALLEST = """
    beit=beit_base_patch16_224 byoanet=halonet_h1 byobnet=test_byobnet cait=cait_xxs24_224 coat=coat_tiny
    convit=convit_tiny convmixer=convmixer_768_32 convnext=test_convnext cpubone=cpubone_nano
    crossvit=crossvit_tiny_240 csatv2=csatv2 cspnet=cs3darknet_focus_s cspnext=cspnext_tiny davit=davit_tiny
    deepseek_vit=deepseek_vit_412m deit=deit_tiny_patch16_224 densenet=densenet121 dla=dla46x_c dpn=dpn48b
    edgenext=edgenext_xx_small efficientformer=efficientformer_l1 efficientformer_v2=efficientformerv2_s0
    efficientnet=test_efficientnet efficientvim=efficientvim_m1 efficientvit_mit=efficientvit_b0
    efficientvit_msra=efficientvit_m0 eva=eva02_tiny_patch14_224 fasternet=fasternet_t0 fastvit=fastvit_t8
    focalnet=focalnet_tiny_srf gcvit=gcvit_xxtiny gemma4_vit=gemma4_vit_167m ghostnet=ghostnet_050
    hardcorenas=hardcorenas_b hgnet=hgnetv2_b0 hiera=hiera_tiny_224 hieradet_sam2=sam2_hiera_tiny
    hrnet=hrnet_w18_small iformer=iformer_t inception_next=inception_next_atto inception_resnet_v2=inception_resnet_v2
    inception_v3=inception_v3 inception_v4=inception_v4 lcnetv2=lcnetv2_small levit=levit_128s lowformer=lowformer_b0
    mambaout=test_mambaout maxxvit=test_maxvit metaformer=poolformerv2_s12 mlp_mixer=gmlp_ti16_224
    mobilenetv3=mobilenetv3_small_050 mobilenetv5=mobilenetv5_base mobilevit=mobilevit_xxs mvitv2=mvitv2_tiny
    naflexvit=naflexvit_base_patch16_gap nasnet=nasnetalarge nest=nest_tiny nextvit=nextvit_small nfnet=test_nfnet
    pit=pit_ti_224 pnasnet=pnasnet5large pvt_v2=pvt_v2_b0 qwen3_vit=qwen3_vit_88m rdnet=rdnet_tiny regnet=regnetx_002
    repghost=repghostnet_050 repvit=repvit_m0_9 res2net=res2next50 resnest=resnest14d resnet=test_resnet
    resnetv2=resnetv2_18 rexnet=rexnet_100 selecsls=selecsls42 senet=legacy_seresnet18 sequencer=sequencer2d_s
    shvit=shvit_s1 sknet=skresnet18 starnet=starnet_s050 swiftformer=swiftformer_xs
    swin_transformer=swin_tiny_patch4_window7_224 swin_transformer_v2=swinv2_tiny_window8_256
    swin_transformer_v2_cr=swinv2_cr_tiny_224 tiny_vit=tiny_vit_5m_224 tnt=tnt_s_patch16_224 tresnet=tresnet_m
    twins=twins_svt_small vgg=vgg11_bn visformer=visformer_tiny vision_transformer=test_vit
    vision_transformer_hybrid=vit_tiny_r_s16_p8_224 vision_transformer_relpos=test_vit_relpos
    vision_transformer_sam=samvit_base_patch16_224 vitamin=vitamin_small_224 volo=volo_d1_224
    vovnet=ese_vovnet19b_slim_dw xception=legacy_xception xception_aligned=xception41p xcit=xcit_nano_12_p8_224
"""
MODELS = dict(pair.split("=") for pair in SMALLEST.split())
SHALLOW = {"embed_dim": 64, "depth": 2, "num_heads": 4}
OPTIONS: dict[str, dict[str, Any]] = {  # of those that are large even so
    **dict.fromkeys(("beit", "deepseek_vit", "gemma4_vit", "naflexvit", "qwen3_vit"), SHALLOW),
    "vision_transformer_sam": SHALLOW | {"global_attn_indexes": (1,)},
    "cait": {"depth": 2},
    "vgg": {"mlp_ratio": 0.01},
}
SIZES = (64, 96, 128, 160, 192, 224, 256, 299, 331)
CHECKS = ("whole", "beside", "pixels", "padded")
LIMIT = 1e-6
SINGLE = ("efficientvit_mit",)  # computes a part in float32, by itself: ten times the limit


def modules() -> list[str]:
    """The modules of the installed timm that register models."""
    _without_extension()
    from timm.models._registry import _module_to_models

    return sorted(_module_to_models)


def _without_extension() -> None:
    """torchvision can be imported where its compiled part does not load; timm needs its Python alone."""
    global _library
    try:
        import torchvision  # noqa: F401
    except RuntimeError:
        _library = torch.library.Library("torchvision", "DEF")
        for name in ("nms", "qnms"):
            _library.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")


_library: Any = None


def build(module: str) -> tuple[nn.Module, int]:
    """A small float64 model of a module, and the least size of an image that it takes."""
    _without_extension()
    import timm

    for size in SIZES:
        for sized in ({"img_size": size}, {}):
            torch.manual_seed(0)
            try:
                model = timm.create_model(MODELS[module], num_classes=10, **OPTIONS.get(module, {}), **sized)
                with torch.no_grad():
                    outputs(model.eval(), torch.zeros(1, 3, size, size))
            except Exception as error:
                said = error
                continue
            if module == "convmixer":  # its depth is no option, and 32 blocks blow up what is rounding
                model.blocks = model.blocks[:2]
            return _drawn(model.double()), size
    raise said


def _drawn(model: nn.Module) -> nn.Module:
    """With weights that hide no branch: what begins as a constant (a scale of 0 or 1e-6) is drawn."""
    with torch.no_grad():
        for p in model.parameters():
            if p.numel() == 1 or p.std() == 0:
                p.copy_(torch.empty_like(p).uniform_(0.5, 1.5))
    return model


def outputs(model: nn.Module, images: Tensor) -> list[Tensor]:
    """Every tensor that the model gives."""
    found = model(images)
    return [found] if isinstance(found, Tensor) else [y for y in found if isinstance(y, Tensor)]


def verdicts(module: str) -> Iterator[tuple[str, Verdict]]:
    """What each check says of one module's model."""
    try:
        model, size = build(module)
    except Exception as error:
        for check in CHECKS:
            yield check, Verdict("not built", short(error))
        return
    images = torch.randn(3, 3, size, size, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    for check in CHECKS:
        try:
            yield check, globals()[check](model, images)
        except mt.UnsupportedOpError as error:
            yield check, Verdict("refused", str(error).split(" has no")[0])
        except Exception as error:
            yield check, Verdict("refused", short(error))


def whole(model: nn.Module, images: Tensor) -> Verdict:
    """As plain images, values, gradients and what batch norms keep; random draws are the same, too."""
    masked = mt.as_masked_tensor(images, torch.ones(images.shape, dtype=torch.bool))
    start = copy.deepcopy(model.state_dict())
    for training in (False, True):
        found = []
        for given in (images, masked, images * (1 + 1e-15)):
            found.append(_run(_set(model, training), given))
            model.load_state_dict(start)
        worst, own = _farthest(found[1], found[0]), _farthest(found[2], found[0])
        if not worst[0] <= max(_limit(model), 10 * own[0]):  # some networks blow up what is rounding
            return Verdict("differs", f"{'train' if training else 'eval'}: {worst[1]} by {worst[0]:.1e}")
    return Verdict("exact", f"rounding becomes {own[0]:.0e}" if 10 * own[0] > LIMIT else "")


def beside(model: nn.Module, images: Tensor) -> Verdict:
    """The others are as without the second image, which is masked altogether."""
    between = torch.full_like(images[:1], torch.nan)
    mask = torch.tensor([True, False, True, True]).view(4, *[1] * (images.dim() - 1))
    masked = mt.as_masked_tensor(torch.cat([images[:1], between, images[1:]]), mask)
    expected = _run(_set(model), images)
    found = _run(_set(model), masked, torch.tensor([0, 2, 3]))
    worst = _farthest(found, expected)
    if not worst[0] <= _limit(model):
        return Verdict("differs", f"{worst[1]} by {worst[0]:.1e}")
    valid = outputs(model, masked)[0][1].get_mask()
    kind = "valid" if valid.all() else "a part is valid" if valid.any() else ""
    return Verdict("exact", kind)


def pixels(model: nn.Module, images: Tensor) -> Verdict:
    """A third of the pixels is missing: the same values and gradients for NaN and for 1e30 under the mask."""
    mask = torch.rand(3, 1, *images.shape[2:], generator=torch.Generator().manual_seed(1)) > 1 / 3
    with mt.meaning(convolution="any", renormalize=True):
        found = [
            _run(_set(model), mt.as_masked_tensor(images.masked_fill(~mask, garbage), mask), slice(None))
            for garbage in (torch.nan, 1e30)
        ]
    if not all(y.isfinite().all() for k, y in found[0].items() if k.startswith(("output", "gradient"))):
        return Verdict("differs", "not finite")
    worst = _farthest(found[1], found[0])
    return Verdict("exact") if worst[0] <= _limit(model) else Verdict("differs", f"{worst[1]} by {worst[0]:.1e}")


def padded(model: nn.Module, images: Tensor) -> Verdict:
    """An image whose last 32 columns and rows are padding, as the smaller image alone."""
    size = images.shape[-1] - 32
    small = images[:1, :, :size, :size].contiguous()
    try:
        with torch.no_grad():
            expected = outputs(model.eval(), small)[0]
    except Exception:
        return Verdict("one size")
    mask = torch.zeros(images.shape, dtype=torch.bool)
    mask[:1, :, :size, :size] = True
    mask[1:] = True
    with torch.no_grad():
        y = outputs(model, mt.as_masked_tensor(images.masked_fill(~mask, torch.nan), mask))[0]
    if y.shape[1:] != expected.shape[1:]:
        return Verdict("maps")
    if not y.get_mask()[0].all():
        return Verdict("differs", "a valid output is masked")
    worst = _distance(y.get_data()[:1], expected)
    return Verdict("exact") if worst <= LIMIT else Verdict("differs", f"values by {worst:.1e}")


def _limit(model: nn.Module) -> float:
    single = next(model.parameters()).dtype == torch.float32
    return LIMIT * (1000 if single else 10 if type(model).__module__.endswith(SINGLE) else 1)


def _set(model: nn.Module, training: bool = False) -> nn.Module:
    """In its mode, with nothing that it keeps of an earlier run (biases, with their graph)."""
    return model.train().train(training)


def _run(model: nn.Module, images: Tensor, rows: Tensor | slice | None = None) -> dict[str, Tensor]:
    """Outputs, gradients of a loss over them, and buffers; of a masked batch, plain and valid, or it is an error."""
    torch.manual_seed(1)
    model.zero_grad()
    found = [y if rows is None else y[rows] for y in outputs(model, images)]
    sum((y * torch.linspace(-1, 1, y.shape[-1], dtype=y.dtype)).sum() for y in found).backward()
    values = {f"output {i}": _plain(y) for i, y in enumerate(found)}
    gradients = {f"gradient of {k}": _plain(p.grad).clone() for k, p in model.named_parameters() if p.grad is not None}
    return values | gradients | {k: b.clone() for k, b in model.named_buffers() if b.is_floating_point()}


def _plain(y: Tensor) -> Tensor:
    if not mt.is_masked_tensor(y):
        return y.detach()
    if not y.get_mask().all():
        raise ValueError("a valid output is masked")
    return y.get_data().detach()


def _farthest(found: dict[str, Tensor], expected: dict[str, Tensor]) -> tuple[float, str]:
    """The greatest difference, and of what; gradients that are 0 up to rounding are compared with the others."""
    if found.keys() != expected.keys():
        return float("inf"), f"{next(iter(found.keys() ^ expected.keys()))}, which one of them has,"
    scale = max(
        (g.abs().max().item() for k, g in expected.items() if k.startswith("gradient") and g.numel()), default=0.0
    )
    far = [(_distance(found[k], y, 1e-6 * scale * k.startswith("gradient")), k) for k, y in expected.items()]
    return max(far, key=lambda pair: (pair[0] != pair[0], pair[0]))


def _distance(a: Tensor, b: Tensor, floor: float = 0.0) -> float:
    if not b.numel() or torch.equal(a, b):
        return 0.0
    return (a - b).abs().max().item() / max(floor, b.abs().max().item(), 1e-300)

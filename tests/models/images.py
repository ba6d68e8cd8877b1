"""Image models of timm, one small model of each of its modules, and what ``image_checks`` says of them."""

from collections.abc import Iterable, Iterator
from typing import Any

import torch
from torch import nn

import masked_tensor as mt

from . import image_checks
from .image_checks import outputs
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
CHECKS = ("whole", "beside", "pixels", "padded", "half")


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


def verdicts(module: str, checks: Iterable[str] = CHECKS) -> Iterator[tuple[str, Verdict]]:
    """What each check says of one module's model."""
    try:
        model, size = build(module)
    except Exception as error:
        for check in checks:
            yield check, Verdict("not built", short(error))
        return
    images = torch.randn(3, 3, size, size, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    for check in checks:
        try:
            yield check, getattr(image_checks, check)(model, images)
        except mt.UnsupportedOpError as error:
            yield check, Verdict("refused", str(error).split(" has no")[0])
        except Exception as error:
            yield check, Verdict("refused", short(error))

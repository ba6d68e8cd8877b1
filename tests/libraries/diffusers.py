"""diffusers: networks and schedulers beside masked samples; padded text for a conditional network."""

import torch

from ._case import Case, beside, images, integers, load, plain, ragged

IMAGES = images(3, 16, 16, others=(plain(integers(10)),))
LIBRARY = "diffusers"
SMALL = {"block_out_channels": (8, 8), "norm_num_groups": 4, "layers_per_block": 1}


def net(name, **options):
    return lambda: getattr(load("diffusers"), name)(**options)


def conditioned(model, text):
    noise = torch.linspace(-1, 1, 3 * 8 * 8, dtype=text.dtype).view(1, 3, 8, 8).expand(len(text), -1, -1, -1)
    return model(noise, torch.full((len(text),), 3), text).sample


def step(name, **options):
    def made():
        scheduler = getattr(load("diffusers"), name)(**options)
        scheduler.set_timesteps(5)
        return lambda x, e: scheduler_step(scheduler, x, e)

    return made


def scheduler_step(scheduler, x, e):
    scheduler.set_timesteps(5)
    return scheduler.step(e, scheduler.timesteps[0], x).prev_sample


def noised(model, x, e):
    return load("diffusers").DDPMScheduler().add_noise(x, e, torch.full((len(x),), 5))


BOTH = ragged((None, 4), (None, 4))
CASES = [
    Case(
        "UNet2DModel",
        net(
            "UNet2DModel",
            sample_size=16,
            down_block_types=("DownBlock2D", "AttnDownBlock2D"),
            up_block_types=("AttnUpBlock2D", "UpBlock2D"),
            attention_head_dim=4,
            **SMALL,
        ),
        IMAGES,
        call=lambda m, x, t: m(x, t).sample,
    ),
    Case(
        "UNet2DConditionModel (text)",
        net(
            "UNet2DConditionModel",
            sample_size=8,
            in_channels=3,
            out_channels=3,
            down_block_types=("CrossAttnDownBlock2D", "DownBlock2D"),
            up_block_types=("UpBlock2D", "CrossAttnUpBlock2D"),
            cross_attention_dim=8,
            attention_head_dim=4,
            **SMALL,
        ),
        ragged((None, 8)),
        call=conditioned,
    ),
    Case(
        "AutoencoderKL",
        net(
            "AutoencoderKL",
            down_block_types=("DownEncoderBlock2D",) * 2,
            up_block_types=("UpDecoderBlock2D",) * 2,
            latent_channels=2,
            **SMALL,
        ),
        images(3, 16, 16),
        call=lambda m, x: m(x).sample,
    ),
    Case(
        "DiTTransformer2DModel",
        net(
            "DiTTransformer2DModel",
            num_attention_heads=2,
            attention_head_dim=4,
            in_channels=3,
            num_layers=1,
            norm_num_groups=4,
            sample_size=8,
            patch_size=2,
            num_embeds_ada_norm=10,
        ),
        images(3, 8, 8, others=(plain(integers(10)),)),
        call=lambda m, x, t: m(x, t, class_labels=t % 3).sample,
    ),
    Case(
        "Transformer2DModel",
        net(
            "Transformer2DModel",
            num_attention_heads=2,
            attention_head_dim=4,
            in_channels=8,
            num_layers=1,
            norm_num_groups=4,
        ),
        images(8, 8, 8),
        call=lambda m, x: m(x).sample,
    ),
    Case(
        "UNet1DModel",
        net(
            "UNet1DModel",
            in_channels=14,
            out_channels=14,
            block_out_channels=(8, 8),
            down_block_types=("DownResnetBlock1D",) * 2,
            up_block_types=("UpResnetBlock1D",),
            mid_block_type="MidResTemporalBlock1D",
            out_block_type="OutConv1DBlock",
            norm_num_groups=4,
            time_embedding_type="positional",
            use_timestep_embedding=True,
            extra_in_channels=0,
            flip_sin_to_cos=False,
            freq_shift=1,
            act_fn="mish",
        ),
        beside((14, 16), plain(integers(10)), rows=3),
        call=lambda m, x, t: m(x, t).sample,
    ),
    Case("DDPMScheduler.add_noise", lambda: torch.nn.Identity(), BOTH, call=noised),
    Case("DDIMScheduler", step("DDIMScheduler", clip_sample=False), BOTH),
    Case("EulerDiscreteScheduler", step("EulerDiscreteScheduler"), BOTH),
    Case("DPMSolverMultistepScheduler", step("DPMSolverMultistepScheduler"), BOTH),
    Case("HeunDiscreteScheduler", step("HeunDiscreteScheduler"), BOTH),
    Case("PNDMScheduler", step("PNDMScheduler", skip_prk_steps=True), BOTH),
    Case("FlowMatchEulerDiscreteScheduler", step("FlowMatchEulerDiscreteScheduler"), BOTH),
    Case("UniPCMultistepScheduler", step("UniPCMultistepScheduler"), BOTH),
]

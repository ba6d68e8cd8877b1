"""perceiver-pytorch: latents that read a padded input."""

from ._case import Case, load, ragged

LIBRARY = "perceiver-pytorch"
CASES = [
    Case(
        "Perceiver",
        lambda: load("perceiver_pytorch").Perceiver(
            num_freq_bands=2, depth=1, max_freq=4.0, input_channels=6, input_axis=1, num_latents=4, latent_dim=16,
            num_classes=5, latent_heads=2, cross_dim_head=8, latent_dim_head=8,
        ),
        ragged((None, 6)),
        "declared",
        "encodes positions as fractions of the padded length, with a UserWarning (an error inside `strict()`); run "
        "each sequence alone: `torch.cat([model(row[None]) for row in x.unpad()])`",
    ),
    Case(
        "Perceiver (fourier_encode_data=False)",
        lambda: load("perceiver_pytorch").Perceiver(
            num_freq_bands=2, depth=1, max_freq=4.0, input_channels=6, input_axis=1, num_latents=4, latent_dim=16,
            num_classes=5, latent_heads=2, cross_dim_head=8, latent_dim_head=8, fourier_encode_data=False,
        ),
        ragged((None, 6)),
    ),
    Case(
        "PerceiverIO",
        lambda: load("perceiver_pytorch").PerceiverIO(
            dim=6, queries_dim=8, logits_dim=5, depth=1, num_latents=4, latent_dim=16, latent_dim_head=8,
            cross_dim_head=8, latent_heads=2,
        ),
        ragged((None, 6), (None, 8)),
        call=lambda model, x, queries: model(x, queries=queries),
    ),
]  # fmt: skip

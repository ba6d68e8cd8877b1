"""Losses and their counts: sums of losses, losses without a valid entry, ``numel()``."""

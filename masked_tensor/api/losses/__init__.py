"""Losses and how many entries they are of: their total, losses without a valid entry, ``numel()``."""

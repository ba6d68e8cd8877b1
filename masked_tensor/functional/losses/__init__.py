"""Functional losses: their denominators, and masks of inputs, targets and weights."""

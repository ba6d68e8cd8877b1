"""Functional losses, which divide by the number of valid entries, with masks for inputs, targets and weights."""

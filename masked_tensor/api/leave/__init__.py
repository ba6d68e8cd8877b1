"""Leaving: the only ways from masked tensors to plain data."""

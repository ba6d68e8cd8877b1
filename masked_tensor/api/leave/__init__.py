"""Conversions from masked tensors to plain data; there are no others."""

"""Batches of sequences: creating, aligning, joining, packing and taking them apart."""

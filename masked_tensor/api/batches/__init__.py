"""Batches of sequences: made, aligned, joined, packed and taken apart."""

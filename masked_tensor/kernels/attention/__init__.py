"""Attention over packed batches: the fused kernel of the CPU over runs, the kernels of GPUs, one op of a graph."""

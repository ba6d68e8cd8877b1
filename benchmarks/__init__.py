"""What masked tensors cost: ``python -m benchmarks`` runs everything here, or what is named."""

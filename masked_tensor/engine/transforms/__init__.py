"""``torch.func`` and forward mode: inside a transform, a masked tensor consists of what the transform wraps."""

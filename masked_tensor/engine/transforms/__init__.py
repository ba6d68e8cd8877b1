"""``torch.func`` and forward mode: inside of a transform a masked tensor is made of what the transform wraps."""

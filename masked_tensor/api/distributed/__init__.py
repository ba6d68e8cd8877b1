"""More than one rank: device meshes, means over ranks, state dicts and checkpoints, and wrappers that are refused."""

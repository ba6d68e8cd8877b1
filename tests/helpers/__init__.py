"""What several test files use: samples from torch's databases, the laws of one case, twins for random programs."""

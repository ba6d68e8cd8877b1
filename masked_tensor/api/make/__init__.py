"""Creating masked tensors: from data and a mask, from values that stand for missing, by torch's factories."""

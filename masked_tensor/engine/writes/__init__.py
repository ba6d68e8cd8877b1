"""Writes into masked tensors: in place, by assignment, through views, recorded by autograd or not."""

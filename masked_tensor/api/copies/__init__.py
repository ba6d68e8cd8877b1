"""Copies of a tensor: in this process, in a pickle, on the way to another process, and of masks passed by the user."""

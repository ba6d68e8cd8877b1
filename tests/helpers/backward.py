"""A backward pass of the same program on masked and on plain tensors."""

from torch import Tensor


def run_backward(ours: Tensor, theirs: Tensor) -> bool:
    """Whether both went back; torch may refuse the plain one, and then so may we."""
    try:
        theirs.backward()
    except RuntimeError as error:  # a value that backward needs was overwritten
        if "modified by an inplace operation" not in str(error):
            raise
        return False
    ours.backward()
    return True

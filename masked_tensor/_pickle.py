"""The one path that pickles name: ``masked_tensor._pickle.rebuild``.  It never changes.

So a pickle, or a file of ``torch.save``, is read whatever is renamed elsewhere.
"""

from .api.copies.pickling import rebuild

__all__ = ["rebuild"]

"""For pipelines of scikit-learn (``pip install 'torch-masked-tensor[sklearn]'``)."""

from .scaler import MaskedStandardScaler

__all__ = ["MaskedStandardScaler"]

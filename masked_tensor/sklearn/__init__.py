"""Transformers for scikit-learn pipelines (``pip install 'torch-masked-tensor[sklearn]'``)."""

from ..stats.sklearn import MaskedStandardScaler

__all__ = ["MaskedStandardScaler"]

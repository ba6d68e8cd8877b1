"""A scikit-learn transformer from a table with missing values to a standardized masked tensor or a filled array.

It needs scikit-learn: ``pip install 'torch-masked-tensor[sklearn]'``.
"""

from typing import Any

import numpy as np
import torch
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from .. import MaskedTensor, filled, masked_invalid, masked_tensor
from .running import RunningStatistics


class MaskedStandardScaler(TransformerMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """A scaler to mean 0 and standard deviation 1, computed over the valid entries of each column.

    The result is ``z = (x - mean_) / scale_``. A column without valid entries has mean 0; one that is constant or has
    none has scale 1. NaN, None and masked entries count as missing in ``fit`` and ``transform``, and stay missing.

    Args:
        fill (float, optional): The value for missing entries, such as 0, the mean of the column; the result is then an
            array, for scikit-learn estimators. Default: the result is a masked tensor, for torch models.
        indicator (bool, optional): Append a column for each column, which is 1 where the entry was missing. Default:
            False.
        dtype (torch.dtype, optional): The dtype of the result. Default: torch's default dtype.

    Attributes:
        mean_ (numpy.ndarray): ``(C,)``, float64: the means.
        scale_ (numpy.ndarray): ``(C,)``, float64: the standard deviations, with 0 replaced by 1.
        count_ (numpy.ndarray): ``(C,)``: the number of valid entries of each column.
        n_features_in_ (int): The number of columns ``C``.
        feature_names_in_ (numpy.ndarray): The names of the columns, if all are strings.

    Example:
        >>> from masked_tensor.sklearn import MaskedStandardScaler
        >>> table = [[1.0, None], [3.0, 10.0], [None, 30.0]]
        >>> MaskedStandardScaler().fit_transform(table)
        masked_tensor([[-1.0000,      --],
                       [ 1.0000, -1.0000],
                       [     --,  1.0000]], valid=4/6)
        >>> MaskedStandardScaler(fill=0.0, indicator=True).fit_transform(table)
        array([[-1.,  0.,  0.,  1.],
               [ 1., -1.,  0.,  0.],
               [ 0.,  1.,  1.,  0.]], dtype=float32)

    References:
        ``sklearn.preprocessing.StandardScaler``, ``sklearn.impute.SimpleImputer``.
    """

    def __init__(self, *, fill: float | None = None, indicator: bool = False, dtype: torch.dtype | None = None) -> None:
        self.fill = fill
        self.indicator = indicator
        self.dtype = dtype

    def fit(self, X: Any, y: object = None, sample_weight: Any = None) -> "MaskedStandardScaler":
        """Compute the statistics of ``X``, and return the scaler.

        Args:
            X (Any): A table ``(N, C)`` of real numbers: a pandas or polars frame, an array, a list or a tensor.
            y (object, optional): Not used.
            sample_weight (array, optional): How often each row counts: ``(N,)``, nonnegative.

        Returns:
            MaskedStandardScaler: The scaler itself.

        Raises:
            ValueError: ``X`` does not have two dimensions.
            ValueError: ``sample_weight`` is not one number for each row.
            TypeError: A column is not real.
        """
        for name in ("_statistics", "n_features_in_", "feature_names_in_"):
            self.__dict__.pop(name, None)
        return self.partial_fit(X, sample_weight=sample_weight)

    def partial_fit(self, X: Any, y: object = None, sample_weight: Any = None) -> "MaskedStandardScaler":
        """Add a batch of rows to the statistics, and return the scaler.

        Args:
            X (Any): A table ``(N, C)``, as in :meth:`fit`.
            y (object, optional): Not used.
            sample_weight (array, optional): How often each row counts: ``(N,)``, nonnegative.

        Returns:
            MaskedStandardScaler: The scaler itself.

        Raises:
            ValueError: ``X`` does not have two dimensions, or has other columns than before.
            ValueError: ``sample_weight`` is not one number for each row.
            TypeError: A column is not real.
        """
        first = not hasattr(self, "_statistics")
        x = self._read(X, first)
        weight = None if sample_weight is None else _weights(sample_weight, len(x))
        if first:
            self._statistics = RunningStatistics(x.shape[1], correction=0)
        self._statistics.update(x, weight)
        deviation = filled(self._statistics.std, 0)
        self.mean_ = filled(self._statistics.mean, 0).numpy()
        self.scale_ = deviation.masked_fill(deviation == 0, 1).numpy()
        self.count_ = self._statistics.count.numpy()
        return self

    def transform(self, X: Any) -> Any:
        """The standardized ``X``: ``(X - mean_) / scale_``.

        Args:
            X (Any): A table ``(N, C)``, as in :meth:`fit`.

        Returns:
            MaskedTensor or numpy.ndarray: ``(N, C)``, or ``(N, 2 * C)`` with indicators; an array if ``fill`` is given.

        Raises:
            NotFittedError: The scaler is not fitted.
            ValueError: ``X`` has other columns.
        """
        check_is_fitted(self)
        x = self._read(X, False)
        dtype = self.dtype or torch.get_default_dtype()
        z = ((x - torch.as_tensor(self.mean_)) / torch.as_tensor(self.scale_)).to(dtype)
        missing = (~z.mask).to(dtype)
        if self.fill is None:
            return torch.cat([z, missing], 1) if self.indicator else z
        array = z.filled(self.fill)
        return (torch.cat([array, missing], 1) if self.indicator else array).numpy()

    def inverse_transform(self, X: Any) -> Any:
        """The original values of a result of :meth:`transform`: ``X * scale_ + mean_``.

        Args:
            X (MaskedTensor or numpy.ndarray): ``(N, C)``, or more columns, of which the indicators are dropped.

        Returns:
            MaskedTensor or numpy.ndarray: ``(N, C)``, of the type of ``X``.

        Raises:
            ValueError: ``X`` is not an array or tensor with ``C`` columns.
            NotFittedError: The scaler is not fitted.
        """
        check_is_fitted(self)
        if not hasattr(X, "dtype") or X.ndim != 2 or X.shape[1] < self.n_features_in_:
            shown = f"of shape {tuple(X.shape)}" if hasattr(X, "shape") else type(X).__name__
            raise ValueError(
                f"inverse_transform() expects what transform() returned, (N, {self.n_features_in_}), got {shown}"
            )
        z = X[:, : self.n_features_in_]
        if isinstance(z, Tensor):
            return z * torch.as_tensor(self.scale_, dtype=z.dtype) + torch.as_tensor(self.mean_, dtype=z.dtype)
        back = z * self.scale_ + self.mean_
        return back.astype(z.dtype) if getattr(z.dtype, "kind", "") == "f" else back  # as scikit-learn's scalers do

    def get_feature_names_out(self, input_features: Any = None) -> Any:
        """The names of the columns of the result.

        Args:
            input_features (list of str, optional): The names of the columns, if the scaler was fitted without names.

        Returns:
            numpy.ndarray: Strings: the names, then ``missing_`` and the name for each indicator.

        Raises:
            NotFittedError: The scaler is not fitted.
        """
        check_is_fitted(self)
        names = getattr(self, "feature_names_in_", input_features)
        if names is None:
            names = [f"x{i}" for i in range(self.n_features_in_)]
        return np.array([*names, *(f"missing_{name}" for name in names if self.indicator)], dtype=object)

    def __sklearn_is_fitted__(self) -> bool:
        """Whether the scaler is fitted."""
        return hasattr(self, "_statistics")

    def __sklearn_tags__(self) -> Any:
        """scikit-learn's tags, with missing values allowed."""
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    def _read(self, X: Any, first: bool) -> MaskedTensor:
        """A table as float64 columns; their names and number are those of the first, or are kept."""
        names = [str(name) for name in getattr(X, "columns", ())]
        if not first and names and hasattr(self, "feature_names_in_"):
            known = list(vars(self)["feature_names_in_"])
            if sorted(names) != sorted(known):
                raise ValueError(f"the columns are {names}, and were {known} when the scaler was fitted")
            X = X[known]
        x = masked_invalid(X).to(torch.float64)
        if x.dim() != 2:
            raise ValueError(f"a table has rows and columns, got the shape {tuple(x.shape)}")
        if first:
            self.n_features_in_ = x.shape[1]
            if names:
                self.feature_names_in_ = np.array(names, dtype=object)
        elif x.shape[1] != self.n_features_in_:
            raise ValueError(f"the table has {x.shape[1]} columns, and had {self.n_features_in_} when it was fitted")
        return x


def _weights(given: Any, rows: int) -> Tensor:
    """``(rows, 1)``, or one number for all."""
    weight = masked_tensor(given, dtype=torch.float64)
    if weight.dim() > 1 or (weight.dim() and len(weight) != rows):
        raise ValueError(f"sample_weight has one number for each of {rows} rows, got the shape {tuple(weight.shape)}")
    return weight.expand(rows)[:, None]

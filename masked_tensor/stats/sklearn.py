"""A transformer of scikit-learn: a table with missing values as a standardised masked tensor, or as a filled array.

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
    """A scaler whose columns have mean 0 and deviation 1 over the entries that are there.

    ``z = (x - mean_) / scale_``. A column without an entry gets mean 0; one that is constant, or has no entry, scale 1.
    NaN, None and masked entries are missing, in ``fit`` and in ``transform``, and stay missing.

    Args:
        fill (float, optional): What missing entries are filled with; the result is an array then, for estimators of
            scikit-learn. 0 is the mean of the column. By default the result is a masked tensor, for models of torch.
        indicator (bool, optional): Append a column for each, which is 1 where the entry was missing.
        dtype (torch.dtype, optional): Of the result. By default torch's default dtype.

    Attributes:
        mean_ (numpy.ndarray): ``(C,)``, float64.
        scale_ (numpy.ndarray): ``(C,)``, float64: the deviations, of which 0 became 1.
        count_ (numpy.ndarray): ``(C,)``: how many entries of each column were there.
        n_features_in_ (int): ``C``.
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
        ``sklearn.preprocessing.StandardScaler``, which has no result where an entry is missing, and
        ``sklearn.impute.SimpleImputer``.
    """

    def __init__(self, *, fill: float | None = None, indicator: bool = False, dtype: torch.dtype | None = None) -> None:
        self.fill = fill
        self.indicator = indicator
        self.dtype = dtype

    def fit(self, X: Any, y: object = None, sample_weight: Any = None) -> "MaskedStandardScaler":
        """Takes the statistics of ``X``, and returns itself.

        Args:
            X (Any): A table ``(N, C)`` of real numbers: a frame of pandas or polars, an array, a list, a tensor.
            y (object, optional): Not used.
            sample_weight (array, optional): ``(N,)``, not negative: how often each row counts.

        Returns:
            MaskedStandardScaler: Itself.

        Raises:
            ValueError: ``X`` has not two dimensions, or ``sample_weight`` not one number for each row.
            TypeError: A column holds no real numbers.
        """
        for name in ("_statistics", "n_features_in_", "feature_names_in_"):
            self.__dict__.pop(name, None)
        return self.partial_fit(X, sample_weight=sample_weight)

    def partial_fit(self, X: Any, y: object = None, sample_weight: Any = None) -> "MaskedStandardScaler":
        """Adds a batch of rows, and returns itself.

        Args:
            X (Any): A table ``(N, C)``, as :meth:`fit` takes it.
            y (object, optional): Not used.
            sample_weight (array, optional): ``(N,)``, not negative: how often each row counts.

        Returns:
            MaskedStandardScaler: Itself.

        Raises:
            ValueError: ``X`` has not two dimensions, or other columns than before, or ``sample_weight`` not one number
                for each row.
            TypeError: A column holds no real numbers.
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
        """``X`` standardised.

        Args:
            X (Any): A table ``(N, C)``, as :meth:`fit` takes it.

        Returns:
            MaskedTensor or numpy.ndarray: ``(N, C)``, or ``(N, 2 * C)`` with the indicators: a masked tensor, or an
            array if ``fill`` is given.

        Raises:
            NotFittedError: Nothing was fitted.
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
        """``X * scale_ + mean_``, of what :meth:`transform` gave.

        Args:
            X (MaskedTensor or numpy.ndarray): ``(N, C)``; indicators behind the columns are left out.

        Returns:
            MaskedTensor or numpy.ndarray: ``(N, C)``, as ``X`` is.

        Raises:
            ValueError: ``X`` is not an array or tensor of so many columns.
            NotFittedError: Nothing was fitted.
        """
        check_is_fitted(self)
        if not hasattr(X, "dtype") or X.ndim != 2 or X.shape[1] < self.n_features_in_:
            shown = f"of shape {tuple(X.shape)}" if hasattr(X, "shape") else type(X).__name__
            raise ValueError(
                f"inverse_transform() takes what transform() gave, (N, {self.n_features_in_}), got {shown}"
            )
        z = X[:, : self.n_features_in_]
        if isinstance(z, Tensor):
            return z * torch.as_tensor(self.scale_, dtype=z.dtype) + torch.as_tensor(self.mean_, dtype=z.dtype)
        back = z * self.scale_ + self.mean_
        return back.astype(z.dtype) if getattr(z.dtype, "kind", "") == "f" else back  # as scikit-learn's scalers do

    def get_feature_names_out(self, input_features: Any = None) -> Any:
        """The names of the columns of the result.

        Args:
            input_features (list of str, optional): The names of the columns, if they were fitted without.

        Returns:
            numpy.ndarray: Of strings: the names, then ``missing_`` and the name for each indicator.

        Raises:
            NotFittedError: Nothing was fitted.
        """
        check_is_fitted(self)
        names = getattr(self, "feature_names_in_", input_features)
        if names is None:
            names = [f"x{i}" for i in range(self.n_features_in_)]
        return np.array([*names, *(f"missing_{name}" for name in names if self.indicator)], dtype=object)

    def __sklearn_is_fitted__(self) -> bool:
        """Whether statistics were taken."""
        return hasattr(self, "_statistics")

    def __sklearn_tags__(self) -> Any:
        """It takes what is missing."""
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

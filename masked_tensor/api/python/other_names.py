"""Names of other libraries that are not offered here: an AttributeError names the line to write."""

from typing import Any, NoReturn

from torch import Tensor

from ...engine.tensor import add_members

_BY_GROUP = "masked_tensor.RunningStatistics(x.shape[1]).update(x, group=groups).mean"
_BY_COLUMN = "torch.stack([function(column) for column in x.T])"

_FRAME = "pandas.DataFrame(x.to_numpy_ma(), columns=names)"

_OF_A_TABLE = ", since dimension 0 is time in a table (time, columns); for a batch of sequences pass dim=1 and lengths="

#: What to write for each; ``x`` is a masked tensor.
LINES: dict[str, str] = {
    # pandas
    "fillna": "x.filled(0)",
    "dropna": "x.compressed()",
    "isna": "~x.mask",
    "is_valid": "x.mask",
    "valid": "x.mask",
    "percentile": "x.quantile(0.5, dim=0)",
    "average": "masked_tensor.average(x, weights=x.mask)",
    "pack": "x.packed()",
    "isnan": "torch.isnan(x)",
    "isnull": "~x.mask",
    "notna": "x.mask",
    "notnull": "x.mask",
    "combine_first": "torch.where(x.mask, x, y)",
    "coalesce": "torch.where(x.mask, x, y)",
    "group_by": _BY_GROUP,
    "groupby": _BY_GROUP,
    "resample": _BY_GROUP,
    "expanding": "masked_tensor.rolling(x, len(x), 0, min_periods=1).mean()",
    "pct_change": "x / masked_tensor.shift(x, 1, 0) - 1",
    "ffill": f"masked_tensor.ffill(x, 0){_OF_A_TABLE}",
    "forward_fill": f"masked_tensor.ffill(x, 0){_OF_A_TABLE}",
    "bfill": f"masked_tensor.bfill(x, 0){_OF_A_TABLE}",
    "backward_fill": f"masked_tensor.bfill(x, 0){_OF_A_TABLE}",
    "interpolate": f"masked_tensor.interpolate(x, 0){_OF_A_TABLE}",
    "rolling": f"masked_tensor.rolling(x, 2, 0).mean(){_OF_A_TABLE}",
    "shift": f"masked_tensor.shift(x, 1, 0){_OF_A_TABLE}",
    "impute": "x.filled(0)",
    "unmask": "x.filled(0)",
    "skew": "((x - x.mean(0)) / x.std(0, correction=0)).pow(3).mean(0)",
    "kurt": "((x - x.mean(0)) / x.std(0, correction=0)).pow(4).mean(0) - 3",
    "ewm": "decay @ x.filled(0) / (decay @ x.mask.float()), since at step t, step s <= t weighs "
    "decay[t, s] = (1 - alpha) ** (t - s)",
    "describe": "masked_tensor.RunningStatistics(x.shape[1], sketch=True).update(x).to_pandas()",
    "to_pandas": _FRAME,
    "to_frame": _FRAME,
    "to_dataframe": _FRAME,
    "to_polars": "polars.DataFrame(masked_tensor.to_arrow(x, names))",
    "nunique": "[len(column.compressed().unique()) for column in x.T]",
    "value_counts": "masked_tensor.unique(x, return_counts=True)",
    "rank": "masked_tensor.rankdata(x, dim=0)",
    "standardize": "(x - x.mean(0)) / x.std(0)",
    "corr": "x.T.corrcoef()",
    "columns": "x[:, names.index('a')], since columns have no names here",
    "loc": "x[:, names.index('a')], since columns have no names here",
    "iloc": "x[:, 0]",
    "head": "x[:5]",
    "apply": _BY_COLUMN,
    "agg": "torch.stack([x.mean(0), x.std(0)])",
    "sort_values": "x[x[:, 0].filled(float('inf')).argsort()]",
    "autocorr": "torch.stack([x[:, 0], masked_tensor.shift(x[:, 0], 1, 0)]).corrcoef()[0, 1]",
    # numpy.ma
    "masked_less": "masked_tensor.masked_where(x < 0, x)",
    "masked_greater": "masked_tensor.masked_where(x > 0, x)",
    "masked_inside": "masked_tensor.masked_where((x >= 0) & (x <= 1), x)",
    "masked_outside": "masked_tensor.masked_where((x < 0) | (x > 1), x)",
    "masked_values": "masked_tensor.masked_where(torch.isclose(x, x.new_tensor(0.0)), x)",
    "masked_mean": "masked_tensor.mean(data, mask=mask)",
    "masked_sum": "masked_tensor.sum(data, mask=mask)",
    "masked_softmax": "masked_tensor.softmax(data, -1, mask=mask)",
    "masked_array": "masked_tensor.masked_tensor(data, mask)",
    "getmask": "~x.mask",
    "getmaskarray": "~x.mask",
    "getdata": "x.get_data()",
    "fill_value": "x.filled(0)",
    "anom": "x - x.mean(0)",
    # makers
    "from_dataframe": "masked_tensor.masked_invalid(frame)",
    "from_mask": "masked_tensor.masked_tensor(data, mask)",
    "from_pandas": "masked_tensor.masked_invalid(frame)",
    "from_numpy": "masked_tensor.masked_tensor(array)",
    "from_list": "masked_tensor.masked_tensor([1.0, None])",
    "from_padded": "masked_tensor.from_lengths(data, lengths)",
    "nested_tensor": "masked_tensor.from_sequences([torch.ones(2), torch.ones(1)])",
    "from_scipy": "masked_tensor.masked_tensor(matrix)",
    "tensor": "masked_tensor.masked_tensor([1.0, None])",
    "array": "masked_tensor.masked_tensor([1.0, None])",
    "where": "torch.where(x > 0, x, y)",
    "cat": "torch.cat([x, x])",
    "concat": "torch.cat([x, x])",
    "stack": "torch.stack([x, x])",
    "load": "masked_tensor.load_file(filename)",
    "save": "masked_tensor.save_file({'x': x}, filename)",
}


def message(owner: str, name: str) -> str:
    """What an AttributeError says: Python's own words, and the line."""
    return f"{owner} has no attribute {name!r}; write {LINES[name]}"


class Elsewhere:
    """In the place of an attribute that the class does not have."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __get__(self, x: Any, kind: Any = None) -> NoReturn:
        raise AttributeError(message("a masked tensor", self.name))


#: Of what torch's own tensors have, nothing is hidden.
add_members(**{name: Elsewhere(name) for name in LINES if not hasattr(Tensor, name)})

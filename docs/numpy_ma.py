"""Every public name of numpy.ma, and what one writes here: a page is made of it, and each line is run and compared.

A line is ``name | with numpy.ma | here | what differs``.  The names ``x y v k l c`` stand for masked tensors (floats of
two dimensions, of one, integers, and a plain condition), and ``a b w i j d`` for the same as arrays.
"""

from pathlib import Path

ROWS = """
MAError | | mt.MaskedValueError | a ValueError
MaskError | | mt.MaskedWriteError |
MaskType | | torch.bool |
MaskedArray | | mt.MaskedTensor |
abs | np.ma.abs(a) | x.abs() |
absolute | np.ma.absolute(a) | x.abs() |
add | np.ma.add(a, b) | x + y |
all | np.ma.all(a > 0) | (x > 0).all() |
allclose | np.ma.allclose(a, a) | torch.isclose(x, x).all() | torch.allclose(x, y) also requires equal masks
allequal | np.ma.allequal(a, a) | (x == x).all() |
alltrue | np.ma.alltrue(a > 0) | (x > 0).all(0) |
amax | np.ma.amax(a, 0) | x.amax(0) |
amin | np.ma.amin(a, 0) | x.amin(0) |
angle | np.ma.angle(a) | x.angle() |
anom | np.ma.anom(a) | x - x.mean() |
anomalies | np.ma.anomalies(a) | x - x.mean() |
any | np.ma.any(a > 1) | (x > 1).any() |
append | np.ma.append(w, w) | torch.cat([v, v]) |
apply_along_axis | | torch.stack([row.sum() for row in x]) | most functions take dim= instead
apply_over_axes | np.ma.apply_over_axes(np.ma.sum, a, [0, 1]) | x.sum((0, 1), keepdim=True) |
arange | np.ma.arange(4) | torch.arange(4) |
arccos | np.ma.arccos(a) | x.arccos() | outside of the domain the result is NaN, which is a value
arccosh | np.ma.arccosh(a + 1) | (x + 1).arccosh() | as arccos
arcsin | np.ma.arcsin(a) | x.arcsin() | as arccos
arcsinh | np.ma.arcsinh(a) | x.arcsinh() |
arctan | np.ma.arctan(a) | x.arctan() |
arctan2 | np.ma.arctan2(a, b) | torch.arctan2(x, y) |
arctanh | np.ma.arctanh(a) | x.arctanh() | as arccos
argmax | np.ma.argmax(w) | v.argmax() |
argmin | np.ma.argmin(w) | v.argmin() |
argsort | | v.argsort() | masked entries last; their indices are masked or in range, never invented
around | np.ma.around(a, 1) | x.round(decimals=1) |
array | np.ma.array(a) | mt.masked_tensor(a) | with a mask: masked_tensor(data, ~hidden), as True means valid here
asanyarray | np.ma.asanyarray(a) | mt.masked_tensor(a) | as_masked_tensor(data, mask) wraps without a copy
asarray | np.ma.asarray(a) | mt.masked_tensor(a) | as_masked_tensor(data, mask) wraps without a copy
atleast_1d | np.ma.atleast_1d(w) | torch.atleast_1d(v) |
atleast_2d | np.ma.atleast_2d(w) | torch.atleast_2d(v) |
atleast_3d | np.ma.atleast_3d(a) | torch.atleast_3d(x) |
average | np.ma.average(a, 1, [1, 2, 3, 4]) | mt.average(x, 1, torch.arange(1.0, 5.0).double()) |
bitwise_and | np.ma.bitwise_and(i, j) | k & l |
bitwise_or | np.ma.bitwise_or(i, j) | k \\| l |
bitwise_xor | np.ma.bitwise_xor(i, j) | k ^ l |
bool_ | | x.bool() |
ceil | np.ma.ceil(a) | x.ceil() |
choose | np.ma.choose(d.astype(int), [b, a]) | torch.where(c, x, y) | for more than two: torch.stack(choices).gather(0, index)
clip | np.ma.clip(a, 0.3, 0.6) | x.clip(0.3, 0.6) |
clump_masked | | (~v.mask).int().diff().nonzero() | where the runs begin and end
clump_unmasked | | v.mask.int().diff().nonzero() | where the runs begin and end
column_stack | np.ma.column_stack([w, w]) | torch.column_stack([v, v]) |
common_fill_value | | x.filled(0) | no fill value is kept: say it where you fill
compress | np.ma.compress([True, False, True], a, 0) | x[torch.tensor([True, False, True])] |
compress_cols | np.ma.compress_cols(a) | x[:, x.mask.all(0)].filled() |
compress_nd | np.ma.compress_nd(a, 1) | x[:, x.mask.all(0)].filled() |
compress_rowcols | np.ma.compress_rowcols(a, 0) | x[x.mask.all(1)].filled() |
compress_rows | np.ma.compress_rows(a) | x[x.mask.all(1)].filled() |
compressed | np.ma.compressed(a) | x.compressed() |
concatenate | np.ma.concatenate([a, b]) | torch.cat([x, y]) |
conjugate | np.ma.conjugate(a) | x.conj() |
convolve | | F.conv1d(v.filled()[None, None], torch.ones(1, 1, 2).double()) | on v itself: valid where the whole window is
copy | np.ma.copy(a) | x.clone() |
core | | nothing | a module
corrcoef | | x.corrcoef() | over the columns where both rows are valid
correlate | | F.conv1d(v.filled()[None, None], torch.ones(1, 1, 2).double()) | torch's conv1d is what numpy calls correlate
cos | np.ma.cos(a) | x.cos() |
cosh | np.ma.cosh(a) | x.cosh() |
count | np.ma.count(a, 0) | x.count(0) |
count_masked | np.ma.count_masked(a) | (~x.mask).sum() |
cov | | x.cov() | over the columns where both rows are valid
cumprod | np.ma.cumprod(a, 0) | x.cumprod(0) |
cumsum | np.ma.cumsum(a, 0) | x.cumsum(0) |
default_fill_value | | x.filled(0) | no fill value is kept: say it where you fill
diag | np.ma.diag(a) | x.diag() |
diagflat | | torch.diagflat(v) |
diagonal | np.ma.diagonal(a) | x.diagonal() |
diff | np.ma.diff(w) | v.diff() |
divide | np.ma.divide(a, b) | x / y | division by 0 is inf, a value, and valid
dot | np.ma.dot(a, b.T) | x @ y.T |
dstack | np.ma.dstack([a, b]) | torch.dstack([x, y]) |
ediff1d | np.ma.ediff1d(w) | v.diff() |
empty | | torch.empty(2, 3) | from a masked tensor: x.new_empty(2, 3)
empty_like | | torch.empty_like(x) |
equal | np.ma.equal(a, b) | x == y |
exp | np.ma.exp(a) | x.exp() |
expand_dims | np.ma.expand_dims(a, 0) | x.unsqueeze(0) |
extras | | nothing | a module
fabs | np.ma.fabs(a) | x.abs() |
filled | np.ma.filled(a, 0) | x.filled(0) |
fix_invalid | np.ma.fix_invalid(a) | mt.masked_invalid(x) |
flatnotmasked_contiguous | | v.mask.int().diff().nonzero() | where the runs begin and end
flatnotmasked_edges | np.ma.flatnotmasked_edges(w) | v.mask.nonzero()[[0, -1], 0] |
flatten_mask | | x.mask.flatten() |
flatten_structured_array | | nothing | there are no structured dtypes
floor | np.ma.floor(a) | x.floor() |
floor_divide | np.ma.floor_divide(a, b) | x // y |
fmod | np.ma.fmod(a, b) | torch.fmod(x, y) |
frombuffer | | mt.masked_tensor(torch.frombuffer(bytearray(8), dtype=torch.float32)) |
fromflex | | nothing | there are no structured dtypes
fromfunction | | torch.arange(3)[:, None] + torch.arange(4) | the function, of positions that broadcast
getdata | | x.get_data() | masked-out data may be anything
getmask | ~np.ma.getmask(a) | x.mask | True means valid
getmaskarray | ~np.ma.getmaskarray(a) | x.mask | True means valid
greater | np.ma.greater(a, b) | x > y |
greater_equal | np.ma.greater_equal(a, b) | x >= y |
harden_mask | | x.clone().harden_mask() |
hsplit | | torch.hsplit(x, 2) |
hstack | np.ma.hstack([a, b]) | torch.hstack([x, y]) |
hypot | np.ma.hypot(a, b) | torch.hypot(x, y) |
identity | np.ma.identity(3) | torch.eye(3) |
ids | | nothing | addresses of memory
in1d | | torch.isin(v, torch.tensor([0.5]).double()) |
indices | np.ma.indices((2, 3)) | torch.stack(torch.meshgrid(torch.arange(2), torch.arange(3), indexing="ij")) |
inner | | x @ y.T |
innerproduct | | x @ y.T |
intersect1d | np.ma.intersect1d(w, w).compressed() | v[torch.isin(v, v.compressed())].unique() |
isMA | np.ma.isMA(a) | mt.is_masked_tensor(x) |
isMaskedArray | np.ma.isMaskedArray(a) | mt.is_masked_tensor(x) |
is_mask | | x.mask.dtype is torch.bool |
is_masked | np.ma.is_masked(a) | not x.mask.all() |
isarray | np.ma.isarray(a) | mt.is_masked_tensor(x) |
isin | | torch.isin(v, torch.tensor([0.5]).double()) |
left_shift | np.ma.left_shift(i, 1) | k << 1 |
less | np.ma.less(a, b) | x < y |
less_equal | np.ma.less_equal(a, b) | x <= y |
log | np.ma.log(a) | x.log() | as arccos
log10 | np.ma.log10(a) | x.log10() | as arccos
log2 | np.ma.log2(a) | x.log2() | as arccos
logical_and | np.ma.logical_and(a > 0.5, b > 0.5) | torch.logical_and(x > 0.5, y > 0.5) |
logical_not | np.ma.logical_not(a > 0.5) | torch.logical_not(x > 0.5) |
logical_or | np.ma.logical_or(a > 0.5, b > 0.5) | torch.logical_or(x > 0.5, y > 0.5) |
logical_xor | np.ma.logical_xor(a > 0.5, b > 0.5) | torch.logical_xor(x > 0.5, y > 0.5) |
make_mask | np.ma.make_mask([1, 0]) | torch.tensor([1, 0]).bool() |
make_mask_descr | | nothing | there are no structured dtypes
make_mask_none | | torch.ones(2, 3, dtype=torch.bool) | True means valid
mask_cols | np.ma.mask_cols(a) | mt.as_masked_tensor(x, x.mask.all(0)) |
mask_or | | x.mask & y.mask | True means valid
mask_rowcols | np.ma.mask_rowcols(a, 0) | mt.as_masked_tensor(x, x.mask.all(1, keepdim=True)) |
mask_rows | np.ma.mask_rows(a) | mt.as_masked_tensor(x, x.mask.all(1, keepdim=True)) |
masked | | mt.masked_tensor(0.0, False) | in an assignment and in a list: None
masked_all | np.ma.masked_all((2, 3)) | mt.masked_tensor(torch.zeros(2, 3), False) |
masked_all_like | np.ma.masked_all_like(a) | mt.as_masked_tensor(x, False) |
masked_array | np.ma.masked_array(a) | mt.masked_tensor(a) | with a mask: masked_tensor(data, ~hidden), as True means valid here
masked_equal | np.ma.masked_equal(a, 0.5) | mt.masked_equal(x, 0.5) |
masked_greater | np.ma.masked_greater(a, 0.5) | mt.masked_where(x > 0.5, x) |
masked_greater_equal | np.ma.masked_greater_equal(a, 0.5) | mt.masked_where(x >= 0.5, x) |
masked_inside | np.ma.masked_inside(a, 0.3, 0.6) | mt.masked_where((x >= 0.3) & (x <= 0.6), x) |
masked_invalid | np.ma.masked_invalid(a) | mt.masked_invalid(x) |
masked_less | np.ma.masked_less(a, 0.5) | mt.masked_where(x < 0.5, x) |
masked_less_equal | np.ma.masked_less_equal(a, 0.5) | mt.masked_where(x <= 0.5, x) |
masked_not_equal | np.ma.masked_not_equal(a, 0.5) | mt.masked_where(x != 0.5, x) |
masked_object | | mt.masked_equal(x, 0.5) | from an object array: masked_tensor(array) masks None
masked_outside | np.ma.masked_outside(a, 0.3, 0.6) | mt.masked_where((x < 0.3) \\| (x > 0.6), x) |
masked_print_option | | nothing | a masked entry prints as --
masked_singleton | | mt.masked_tensor(0.0, False) | in an assignment and in a list: None
masked_values | np.ma.masked_values(a, 0.5) | mt.masked_where(torch.isclose(x, torch.tensor(0.5).double()), x) |
masked_where | np.ma.masked_where(d, a) | mt.masked_where(c, x) |
max | np.ma.max(a, 0) | x.amax(0) |
maximum | np.ma.maximum(a, b) | torch.maximum(x, y) |
maximum_fill_value | | x.filled(0) | no fill value is kept: say it where you fill
mean | np.ma.mean(a, 0) | x.mean(0) |
median | np.ma.median(a, 0) | x.quantile(0.5, 0) | x.median(0) is torch's: the lower one of two middle values
min | np.ma.min(a, 0) | x.amin(0) |
minimum | np.ma.minimum(a, b) | torch.minimum(x, y) |
minimum_fill_value | | x.filled(0) | no fill value is kept: say it where you fill
mod | np.ma.mod(a, b) | x % y |
mr_ | np.ma.mr_[w, w] | torch.cat([v, v]) |
multiply | np.ma.multiply(a, b) | x * y |
mvoid | | nothing | there are no structured dtypes
ndenumerate | | list(zip(x.mask.nonzero().tolist(), x.compressed().tolist(), strict=True)) |
ndim | np.ma.ndim(a) | x.ndim |
negative | np.ma.negative(a) | -x |
nomask | | None | no mask argument
nonzero | | x.nonzero() |
not_equal | np.ma.not_equal(a, b) | x != y |
notmasked_contiguous | | v.mask.int().diff().nonzero() | where the runs begin and end
notmasked_edges | np.ma.notmasked_edges(w) | v.mask.nonzero()[[0, -1], 0] |
ones | np.ma.ones((2, 3)) | torch.ones(2, 3) | from a masked tensor: x.new_ones(2, 3)
ones_like | | torch.ones_like(x) |
outer | np.ma.outer(w, w) | torch.outer(v, v) |
outerproduct | np.ma.outerproduct(w, w) | torch.outer(v, v) |
polyfit | np.ma.polyfit(np.arange(5.0), w, 1) | torch.linalg.lstsq(torch.vander(torch.arange(5.0).double()[v.mask], 2), v.compressed()[:, None]).solution[:, 0] |
power | np.ma.power(a, 2) | x**2 |
prod | np.ma.prod(a, 0) | x.prod(0) |
product | np.ma.product(a, 0) | x.prod(0) |
ptp | np.ma.ptp(a, 0) | x.amax(0) - x.amin(0) |
put | | v.clone().put_(torch.tensor([0]), torch.tensor([9.0]).double()) | or v[index] = values
putmask | | x.clone().masked_fill_(c, 0.0) | to make masked entries valid as well: x[c] = 0.0
ravel | np.ma.ravel(a) | x.ravel() |
remainder | np.ma.remainder(a, b) | x % y |
repeat | np.ma.repeat(a, 2, 0) | x.repeat_interleave(2, 0) |
reshape | np.ma.reshape(a, (4, 3)) | x.reshape(4, 3) |
resize | np.ma.resize(a, (4, 3)) | x.reshape(4, 3) | to repeat: x.repeat(...)
right_shift | np.ma.right_shift(i, 1) | k >> 1 |
round | np.ma.round(a, 1) | x.round(decimals=1) |
round_ | np.ma.round_(a, 1) | x.round(decimals=1) |
row_stack | np.ma.vstack([a, b]) | torch.vstack([x, y]) |
set_fill_value | | x.filled(0) | no fill value is kept: say it where you fill
setdiff1d | np.ma.setdiff1d(a[0], b[0]).compressed() | x[0][~torch.isin(x[0], y[0].compressed())].unique() |
setxor1d | np.ma.setxor1d(a[0], b[0]).compressed() | torch.cat([x[0][~torch.isin(x[0], y[0].compressed())], y[0][~torch.isin(y[0], x[0].compressed())]]).unique() |
shape | np.ma.shape(a) | tuple(x.shape) |
sin | np.ma.sin(a) | x.sin() |
sinh | np.ma.sinh(a) | x.sinh() |
size | np.ma.size(a) | x.shape.numel() | x.count() counts the valid entries
soften_mask | | x.clone().soften_mask() |
sometrue | np.ma.sometrue(a > 1) | (x > 1).any(0) |
sort | np.ma.sort(w) | v.sort().values |
sqrt | np.ma.sqrt(a) | x.sqrt() | as arccos
squeeze | np.ma.squeeze(a[None]) | x[None].squeeze() |
stack | np.ma.stack([a, b]) | torch.stack([x, y]) |
std | np.ma.std(a, 0) | x.std(0, correction=0) | torch's default is correction=1
subtract | np.ma.subtract(a, b) | x - y |
sum | np.ma.sum(a, 0) | x.sum(0) |
swapaxes | np.ma.swapaxes(a, 0, 1) | x.swapaxes(0, 1) |
take | np.ma.take(w, [0, 2]) | v.take(torch.tensor([0, 2])) |
tan | np.ma.tan(a) | x.tan() |
tanh | np.ma.tanh(a) | x.tanh() |
trace | np.ma.trace(a) | x.diagonal().sum() |
transpose | np.ma.transpose(a) | x.T |
true_divide | np.ma.true_divide(a, b) | x / y | division by 0 is inf, a value, and valid
union1d | np.ma.union1d(w, w).compressed() | torch.cat([v, v]).unique() |
unique | np.ma.unique(w).compressed() | v.unique() | masked entries are left out
vander | | torch.vander(v, 3) | numpy.ma writes 0 into the rows of masked entries; here they are masked
var | np.ma.var(a, 0) | x.var(0, correction=0) | torch's default is correction=1
vstack | np.ma.vstack([a, b]) | torch.vstack([x, y]) |
where | np.ma.where(d, a, b) | torch.where(c, x, y) |
zeros | np.ma.zeros((2, 3)) | torch.zeros(2, 3) | from a masked tensor: x.new_zeros(2, 3)
zeros_like | | torch.zeros_like(x) |
"""


def rows() -> list[tuple[str, str, str, str]]:
    """(name, with numpy.ma, here, what differs)."""
    bar = "\0"
    lines = [line.replace("\\|", bar) for line in ROWS.strip().splitlines()]
    parts = [tuple(part.strip().replace(bar, "|") for part in line.split("|", 3)) for line in lines]
    return [(name, theirs, ours, note) for name, theirs, ours, note in parts]


def page() -> str:
    """The page of the documentation."""
    lines = [
        "```{index} ! numpy.ma, ! masked array\n```",
        "# Every name of numpy.ma",
        "`x`, `y` are masked tensors of two dimensions, `v` of one, `k`, `l` of integers; `c` is a condition. Each line "
        "is run by the tests, and compared with numpy.ma where both mean the same.",
        "| numpy.ma | here | |\n|---|---|---|",
    ]
    table = []
    for name, _, ours, note in rows():
        code = "nothing" if ours == "nothing" else "`" + ours.replace("|", "\\|") + "`"
        table.append(f"| `{name}` | {code} | {note.replace('|', chr(92) + '|')} |")
    return "\n\n".join(lines) + "\n" + "\n".join(table) + "\n"


def write(path: Path) -> None:
    """Writes the page."""
    path.write_text(page())

"""Matrix products by definition: Python loops that add up the products of valid factors."""

import itertools
from typing import Any

import torch

from ..helpers.harness import Masked


def masked(x: Any) -> Masked:
    return x if isinstance(x, Masked) else Masked(x, torch.ones(x.shape, dtype=torch.bool))


def contract(equation: str, *operands: Any) -> Masked:
    """einsum without ellipsis: for every output, the sum over the index tuples at which all factors are valid."""
    inputs, output = equation.split("->")
    terms = inputs.split(",")
    values = [masked(x) for x in operands]
    sizes: dict[str, int] = {}
    for term, x in zip(terms, values, strict=True):
        for letter, size in zip(term, x.data.shape, strict=True):
            sizes[letter] = max(sizes.get(letter, 1), size) if size != 0 else 0
    summed = [letter for letter in sizes if letter not in output]
    dtype = values[0].data.dtype
    data = torch.zeros([sizes[c] for c in output], dtype=dtype)
    valid = torch.zeros(data.shape, dtype=torch.bool)
    known = [_entries(x) for x in values]
    for place in itertools.product(*(range(sizes[c]) for c in output)):
        at = dict(zip(output, place, strict=True))
        total, pairs = 0, 0
        for rest in itertools.product(*(range(sizes[c]) for c in summed)):
            at.update(zip(summed, rest, strict=True))
            indices = [
                tuple(at[c] if size > 1 else 0 for c, size in zip(term, x.data.shape, strict=True))
                for term, x in zip(terms, values, strict=True)
            ]
            factors = [entries.get(index) for entries, index in zip(known, indices, strict=True)]
            if None not in factors:
                pairs += 1
                term_value = 1
                for factor in factors:
                    term_value = term_value * factor
                total = total + term_value
        data[place], valid[place] = total, pairs > 0 or 0 in (sizes[c] for c in summed)
    return Masked(data, valid)


def _entries(x: Masked) -> dict[tuple[int, ...], Any]:
    """The valid entries as Python numbers by index."""
    return {tuple(i): x.data[tuple(i)].item() for i in x.mask.nonzero().tolist()}


def add(summand: Any, product: Masked, beta: float = 1, alpha: float = 1) -> Masked:
    """``beta * summand + alpha * product``; with beta = 0 the summand takes no part."""
    if beta == 0:
        return Masked(alpha * product.data, product.mask)
    summand = masked(summand)
    return Masked(beta * summand.data + alpha * product.data, product.mask & summand.mask)


def _matmul(op: Any, a: Any, b: Any) -> Masked:
    a, b = masked(a), masked(b)
    if a.data.dim() == 1 and b.data.dim() == 1:
        return contract("k,k->", a, b)
    if a.data.dim() == 1:
        letters = "abcd"[: b.data.dim() - 2]
        return contract(f"k,{letters}km->{letters}m", a, b)
    if b.data.dim() == 1:
        letters = "abcd"[: a.data.dim() - 2]
        return contract(f"{letters}nk,k->{letters}n", a, b)
    ranks = a.data.dim() - 2, b.data.dim() - 2
    letters = "abcd"[: max(ranks)]
    left, right = (letters[len(letters) - rank :] for rank in ranks)
    return contract(f"{left}nk,{right}km->{letters}nm", a, b)


def linear(op: Any, x: Any, weight: Any, bias: Any = None) -> Masked:
    letters = "abcd"[: masked(x).data.dim() - 1]
    m = "m" if masked(weight).data.dim() == 2 else ""  # one feature
    product = contract(f"{letters}k,{m}k->{letters}{m}", x, weight)
    return product if bias is None else add(bias, product)


def _bilinear(op: Any, x: Any, y: Any, weight: Any, bias: Any = None) -> Masked:
    letters = "abcd"[: masked(x).data.dim() - 1]
    product = contract(f"{letters}i,oij,{letters}j->{letters}o", x, weight, y)
    return product if bias is None else add(bias, product)


def _einsum(op: Any, operands: Any, *rest: Any) -> Masked:
    equation = rest[0] if rest and isinstance(rest[0], str) else operands
    operands = operands if isinstance(operands, (list, tuple)) else rest
    terms = equation.replace(" ", "")
    if "..." in terms:
        inputs = terms.split("->")[0].split(",")
        missing = [masked(x).data.dim() - len(t.replace("...", "")) for t, x in zip(inputs, operands, strict=True)]
        stars = "WXYZ"[: max(missing)]
        inputs = [t.replace("...", stars[len(stars) - n :]) for t, n in zip(inputs, missing, strict=True)]
        output = terms.split("->")[1].replace("...", stars) if "->" in terms else stars + _implicit(inputs, stars)
        terms = ",".join(inputs) + "->" + output
    elif "->" not in terms:
        terms += "->" + _implicit(terms.split(","), "")
    return contract(terms, *operands)


def _implicit(inputs: list[str], stars: str) -> str:
    joined = "".join(inputs)
    return "".join(sorted(c for c in set(joined) if joined.count(c) == 1 and c not in stars))


def _tensordot(op: Any, a: Any, b: Any, dims: Any = 2) -> Masked:
    ranks = masked(a).data.dim(), masked(b).data.dim()
    if isinstance(dims, int):
        dims = (list(range(ranks[0] - dims, ranks[0])), list(range(dims)))
    left, right = list("abcde"[: ranks[0]]), list("vwxyz"[: ranks[1]])
    for i, j in zip(dims[0], dims[1], strict=True):
        right[j] = left[i]
    summed = {left[i] for i in dims[0]}
    output = "".join(c for c in left if c not in summed) + "".join(c for c in right if c not in summed)
    return contract(f"{''.join(left)},{''.join(right)}->{output}", a, b)


def _inner(op: Any, a: Any, b: Any) -> Masked:
    ranks = masked(a).data.dim(), masked(b).data.dim()
    if 0 in ranks:
        left, right = "abc"[: ranks[0]], "xyz"[: ranks[1]]
        return contract(f"{left},{right}->{left}{right}", a, b)
    left, right = "abc"[: ranks[0] - 1], "xyz"[: ranks[1] - 1]
    return contract(f"{left}k,{right}k->{left}{right}", a, b)


def _kron(op: Any, a: Any, b: Any) -> Masked:
    a, b = masked(a), masked(b)
    rank = max(a.data.dim(), b.data.dim())
    a, b = (Masked(x.data[(None,) * (rank - x.data.dim())], x.mask[(None,) * (rank - x.mask.dim())]) for x in (a, b))
    left, right = "abcd"[:rank], "wxyz"[:rank]
    mixed = "".join(x + y for x, y in zip(left, right, strict=True))
    out = contract(f"{left},{right}->{mixed}", a, b)
    shape = [x * y for x, y in zip(a.data.shape, b.data.shape, strict=True)]
    return Masked(out.data.reshape(shape), out.mask.reshape(shape))


def _multi_dot(op: Any, *matrices: Any) -> Masked:
    if len(matrices) == 1 and isinstance(matrices[0], (list, tuple)):
        matrices = tuple(matrices[0])
    result = masked(matrices[0])
    for matrix in matrices[1:]:
        result = _matmul(op, result, matrix)
    return result


def _vecdot(op: Any, a: Any, b: Any, dim: int = -1) -> Masked:
    a, b = masked(a), masked(b)
    shape = torch.broadcast_shapes(a.data.shape, b.data.shape)
    a, b = (Masked(x.data.expand(shape).movedim(dim, -1), x.mask.expand(shape).movedim(dim, -1)) for x in (a, b))
    letters = "abcd"[: len(shape) - 1]
    return contract(f"{letters}k,{letters}k->{letters}", Masked(a.data.conj(), a.mask), b)


def _affine(equation: str) -> Any:
    def oracle(op: Any, summand: Any, a: Any, b: Any, *, beta: float = 1, alpha: float = 1) -> Masked:
        return add(summand, contract(equation, a, b), beta, alpha)

    return oracle


def _product(equation: str) -> Any:
    return lambda op, a, b: contract(equation, a, b)


ORACLES = {
    "mm": _product("nk,km->nm"),
    "bmm": _product("bnk,bkm->bnm"),
    "mv": _product("nk,k->n"),
    "dot": _product("k,k->"),
    "vdot": lambda op, a, b: contract("k,k->", Masked(masked(a).data.conj(), masked(a).mask), b),
    "outer": _product("n,m->nm"),
    "matmul": _matmul,
    "__rmatmul__": lambda op, a, b: _matmul(op, b, a),
    "linalg.vecdot": _vecdot,
    "linalg.multi_dot": _multi_dot,
    "nn.functional.linear": linear,
    "nn.functional.bilinear": _bilinear,
    "einsum": _einsum,
    "tensordot": _tensordot,
    "inner": _inner,
    "kron": _kron,
    "addmm": _affine("nk,km->nm"),
    "addmm.decomposed": _affine("nk,km->nm"),
    "addmv": _affine("nk,k->n"),
    "addr": _affine("n,m->nm"),
    "addbmm": _affine("bnk,bkm->nm"),
    "baddbmm": _affine("bnk,bkm->bnm"),
}

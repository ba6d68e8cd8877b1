"""A keyword of another library, or a misspelled one, is refused with the name that it has here."""

import inspect
from collections.abc import Callable
from typing import Any

import pytest
import torch

import masked_tensor as mt
from masked_tensor.functional.registry import FORMS
from masked_tensor.shared.keywords import NAMES, TEXTS, hint

X, MASK = torch.ones(2, 3), torch.ones(2, 3) > 0
form: Any = mt
CALLS: dict[str, tuple[Callable[[], object], str]] = {
    "ddof": (lambda: form.std(X, 1, ddof=1), "std() got an unexpected keyword argument 'ddof'; use correction="),
    "skipna": (lambda: form.mean(X, 1, skipna=True), "masked entries are always skipped"),
    "min_periods": (lambda: form.sum(X, 1, min_periods=2), "use min_count="),
    "min_count": (lambda: form.rolling(X, 2, 1, min_count=2), "use min_periods="),
    "where": (lambda: form.mean(X, 1, where=MASK), "use mask="),
    "max_gap": (lambda: form.ffill(X, 1, max_gap=2), "limit= fills at most so many steps of each gap"),
    "n": (lambda: form.shift(X, n=1, dim=1), "use periods="),
    "columns": (lambda: form.to_arrow(X, columns=["a", "b", "c"]), "use names="),
    "fill_value": (lambda: form.filled(form.masked_tensor(X), fill_value=0), "use value="),
    "ignore_index": (lambda: form.mse_loss(X, X, ignore_index=-1), "masked_equal(target, ignore_index)"),
    "key_padding_mask": (
        lambda: form.scaled_dot_product_attention(X, X, X, key_padding_mask=MASK),
        "True where an entry is valid: use key_mask=~key_padding_mask",
    ),
    "a method": (lambda: form.masked_tensor(X).packed(max_tokens=3), "use capacity="),
    "a class": (lambda: form.RunningStatistics(3, ddof=1), "use correction="),
    "misspelled": (lambda: form.cross_entropy(X, X, target_masks=MASK), "did you mean target_mask=?"),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_keyword_of_another_library_has_a_hint(name: str) -> None:
    call, said = CALLS[name]
    with pytest.raises(TypeError) as raised:
        call()
    assert said in str(raised.value)


def test_what_has_no_other_name_says_what_python_says() -> None:
    with pytest.raises(TypeError, match=r"^sum\(\) got an unexpected keyword argument 'zzz'$"):
        form.sum(X, zzz=1)
    with pytest.raises(TypeError, match="input must be a tensor, got int"):
        form.sum(1, min_count=1)


def test_every_hint_names_an_argument_that_some_function_has() -> None:
    everything = [*FORMS.values(), *(getattr(mt, name) for name in mt.__all__)]
    parameters = [list(inspect.signature(f).parameters) for f in everything if inspect.isfunction(f)]
    for keyword, names in NAMES.items():
        for name in names:
            serves = [has for has in parameters if name in has and keyword not in has]
            assert any(hint(keyword, has) == f"use {name}=" for has in serves), (keyword, name)
    for keyword in TEXTS:
        assert hint(keyword, ["input"]) == TEXTS[keyword]

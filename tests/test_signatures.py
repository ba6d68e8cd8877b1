"""Every rule takes the full list of arguments of every overload that it serves: signatures against schemas, no call."""

import inspect
from collections.abc import Iterator
from typing import Any

import pytest

from masked_tensor.engine.table import ENTRIES, Entry


def calls(entry: Entry) -> Iterator[tuple[list[str], list[str]]]:
    """What the dispatcher may hand on, by position and by keyword: all arguments, or those that have no default.

    Trailing arguments that have their default may be left out one by one.
    """
    arguments = [a for a in entry.overload._schema.arguments if a.name not in entry.outs]
    places = [a for a in arguments if not a.kwarg_only]
    keywords = [a.name for a in arguments if a.kwarg_only]
    wanted = [a.name for a in arguments if a.kwarg_only and not a.has_default_value()]
    least = max((i + 1 for i, a in enumerate(places) if not a.has_default_value()), default=0)
    for given in range(least, len(places) + 1):
        for named in (keywords, wanted):
            yield [a.name for a in places[:given]], named


# Gathered once: other tests and the docs' examples register ops of their own while the suite runs.
FAMILIES: dict[str, list[Entry]] = {}
for known in ENTRIES.values():
    FAMILIES.setdefault(known.op.rule.__module__.rpartition(".")[2], []).append(known)


@pytest.mark.parametrize("family", sorted(FAMILIES))
def test_a_rule_takes_what_its_operators_take(family: str, record_property: Any) -> None:
    checked, wrong = 0, []
    for entry in FAMILIES[family]:
        signature = inspect.signature(entry.rule)
        for places, named in calls(entry):
            checked += 1
            try:
                signature.bind(*places, **dict.fromkeys(named))
            except TypeError as error:
                wrong.append(f"{entry.overload.name()} with {places} and {named}: {error}")
    record_property("law", ("signatures", family, checked))
    assert checked
    assert not wrong, "\n".join(wrong)

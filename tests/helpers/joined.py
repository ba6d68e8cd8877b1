"""One test over many things."""

from collections.abc import Callable, Iterable
from itertools import product
from typing import Any


def over(*values: Iterable[Any]) -> Callable[[Callable[..., None]], Callable[[], None]]:
    """A test that looks at each of the values (with several: at all combinations), and lists those that fail.

    Of a look that takes less than a test costs by itself: to collect, to send to a worker and to report.
    """
    cases = list(product(*values))

    def decorate(test: Callable[..., None]) -> Callable[[], None]:
        def looks() -> None:
            faults = []
            for case in cases:
                try:
                    test(*case)
                except Exception as error:
                    faults.append(f"{', '.join(map(str, case))}: {type(error).__name__}: {error}")
            assert not faults, "\n\n".join(faults)

        looks.__name__, looks.__doc__, looks.__module__ = test.__name__, test.__doc__, test.__module__
        return looks

    return decorate

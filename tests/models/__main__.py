"""``python -m tests.models [names] [--KIND] [--seconds N] [--again] [--page]``.

A full sweep takes about an hour on one core.  It may be cut into pieces: what was found stays in ``docs/models.json``,
and the next call goes on from there (``--again``: from the start).  No model type takes more than a minute of
processor time.

``--signals`` goes over the models of waves and spectrograms, and keeps what it finds in ``docs/models_signals.json``;
``--signals --left`` adds those that are exact with the padding in front;
``--labels`` over encoder-decoders with labels (``docs/models_labels.json``).
``--packed`` gives the same batches as packed tensors; what it finds stays in ``docs/models_packed.json``, with the ops
that spread, and must be what the padded batches give.

``--timm`` sweeps over image models, by the modules of timm (about ten minutes); ``docs/models_timm.json`` keeps it.
``--series`` sweeps over the time series of transformers, ``--vision`` over its image types (ten minutes), ``--left``
over its text models with the padding in front, and in ``meaning(product="all")`` (ten minutes), ``--flat`` over its
text models on flat tokens, in evaluation and training, padded on either side (six minutes).

``--heads`` sweeps over the heads of its text models and speech recognisers, with loss and side losses, padded behind,
in front, and packed (ten minutes); ``docs/models_heads.json`` keeps it.
"""

import argparse
import gc
import json
import os
import signal
import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import masked_tensor as mt

from . import flat, heads, image_page, labels, left, left_signals, other_page, others, page, signals, text
from .judge import Verdict

FOUND = Path(__file__).parent.parent.parent / "docs" / "models.json"
PACKED = FOUND.with_stem("models_packed")
LATE = "more than a minute of processor time"
Said = TypeVar("Said")
SIGNALS, LABELS = FOUND.with_stem("models_signals"), FOUND.with_stem("models_labels")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.models", description=__doc__)
    parser.add_argument("names", nargs="*", help="model types; left out, all")
    parser.add_argument("--signals", action="store_true", help="models of waves and spectrograms")
    parser.add_argument("--labels", action="store_true", help="encoder-decoders with labels")
    parser.add_argument("--packed", action="store_true", help="with packed batches")
    parser.add_argument("--timm", action="store_true", help="image models; names are those of modules of timm")
    parser.add_argument("--series", action="store_true", help="time series; names are those of classes")
    parser.add_argument("--vision", action="store_true", help="image types")
    parser.add_argument("--left", action="store_true", help="text models with the padding in front")
    parser.add_argument("--flat", action="store_true", help="text models on flat tokens")
    parser.add_argument("--heads", action="store_true", help="heads with labels, losses and side losses")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="stop after so many")
    parser.add_argument("--again", action="store_true", help="judge what is known, too")
    parser.add_argument("--page", action="store_true", help="only write docs/models.md")
    options = parser.parse_args()
    os.environ["TRANSFORMERS_VERBOSITY"] = "error"
    warnings.simplefilter("ignore")
    again = options.again or bool(options.names)
    if options.timm and not options.page:
        image_page.sweep(options.names, options.seconds, again)
    elif options.heads and not options.page:
        _heads(options.names, options.seconds, again)
    elif options.signals and options.left and not options.page:
        _left_signals(options.names, options.seconds, again)
    elif (options.series or options.vision or options.left or options.flat) and not options.page:
        kind = next(name for name in ("series", "vision", "left", "flat") if getattr(options, name))
        _checks(kind, options.names, options.seconds, again)
    elif not options.page:
        kind = signals if options.signals else labels if options.labels else text
        path = {signals: SIGNALS, labels: LABELS, text: PACKED if options.packed else FOUND}[kind]
        _sweep(options.names or kind.types(), path, options.seconds, again)
    page.write(*map(_known, (FOUND, PACKED, SIGNALS, LABELS)), FOUND.with_suffix(".md"))


def _known(path: Path) -> dict[str, dict[str, Any]]:
    known: dict[str, dict[str, Any]] = json.loads(path.read_text()) if path.exists() else {}
    return known


def _sweep(names: list[str], path: Path, seconds: float, again: bool) -> None:
    found = _known(path)
    end = time.monotonic() + seconds
    for name in names:
        if time.monotonic() > end:
            return
        for variant in text.VARIANTS:
            if again or variant not in found.setdefault(name, {}):
                with mt.extend.packing_report() as spread:
                    verdict = _in_time(partial(_verdict, name, variant, path), Verdict("not built", LATE))
                said = [verdict.outcome, verdict.detail, *([sorted(spread)] if path == PACKED else [])]
                found.setdefault(name, {})[variant] = said
                print(f"{name:32} {variant:8} {verdict.outcome:12} {verdict.detail} {said[2:] or ''}", flush=True)
        path.write_text(json.dumps(dict(sorted(found.items())), indent=0) + "\n")


def _checks(kind: str, names: list[str], seconds: float, again: bool) -> None:
    """Sweeps over what is judged by checks of whole batches."""
    found = other_page.known(kind)
    end = time.monotonic() + seconds
    of_text = {"left": left, "flat": flat}.get(kind)
    said = of_text.verdicts if of_text else partial(others.verdicts, kind=kind)
    checks = of_text.CHECKS if of_text else others.CHECKS[kind]
    for name in names or (text.types() if of_text else others.names(kind)):
        if time.monotonic() > end:
            return
        before = {} if again else {k: v for k, v in found.get(name, {}).items() if k in checks}
        missing = [check for check in checks if check not in before]
        if missing:
            judged = _in_time(partial(said, name, checks=missing), {check: ["not built", LATE] for check in missing})
            found[name] = {check: (before | judged)[check] for check in checks}
            other_page.keep(kind, found)
            print(f"{name:32} {'; '.join(' '.join(v).strip() for v in found[name].values())}", flush=True)


def _left_signals(names: list[str], seconds: float, again: bool) -> None:
    """Sweeps over the signal types that are exact, with the padding in front."""
    found = _known(SIGNALS)
    end = time.monotonic() + seconds
    for name in names or [name for name, verdicts in found.items() if verdicts["eager"][0] == "exact"]:
        if time.monotonic() > end:
            return
        if again or "left" not in found[name]:
            verdict = _in_time(partial(left_signals.found, name), Verdict("not built", LATE))
            found[name]["left"] = [verdict.outcome, verdict.detail]
            print(f"{name:32} {verdict.outcome:12} {verdict.detail}", flush=True)
            SIGNALS.write_text(json.dumps(found, indent=0) + "\n")


def _heads(names: list[str], seconds: float, again: bool) -> None:
    """Sweeps over the heads of each type."""
    found = other_page.known("heads")
    end = time.monotonic() + seconds
    for name in names or heads.types():
        if time.monotonic() > end:
            return
        for kind in heads.kinds(name):
            if again or f"{kind}, {heads.FORMS[0]}" not in found.get(name, {}):
                late = {form: ["not built", LATE] for form in heads.FORMS}
                said = _in_time(partial(heads.verdicts, name, kind), late)
                found.setdefault(name, {}).update({f"{kind}, {form}": verdict for form, verdict in said.items()})
                print(f"{name:28} {kind:9} {'; '.join(' '.join(v).strip() for v in said.values())}", flush=True)
        other_page.keep("heads", found)


class _Late(BaseException):
    """A type has had its minute: no error of its own."""


def _in_time(judged: Callable[[], Said], otherwise: Said) -> Said:
    def late(*_: Any) -> None:
        raise _Late

    signal.signal(signal.SIGPROF, late)
    signal.setitimer(signal.ITIMER_PROF, 60)
    try:
        return judged()
    except _Late:
        return otherwise
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        gc.collect()


def _verdict(name: str, variant: str, path: Path) -> Verdict:
    if path in (SIGNALS, LABELS):
        return (signals if path == SIGNALS else labels).found(name, variant)
    return text.verdict(name, variant, packed=path == PACKED)


if __name__ == "__main__":
    main()

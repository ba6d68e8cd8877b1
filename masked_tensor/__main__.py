"""``python -m masked_tensor``: versions and the op table; ``python -m masked_tensor softmax``: what an op means."""

import argparse
import os
import platform
import sys
import textwrap

import torch

from . import __version__
from .api.display.explain import explain, families
from .engine import table

PARSER = argparse.ArgumentParser(
    "python -m masked_tensor",
    description="What operators mean on masked tensors. Without arguments: versions for a report, and all operators.",
)
PARSER.add_argument(
    "operators", nargs="*", metavar="OPERATOR", help="what you call it: softmax, nn.Conv1d, F.mse_loss, @"
)
PARSER.add_argument("--version", action="version", version=f"masked_tensor {__version__}")


def main(arguments: list[str]) -> None:
    """Prints an op's meaning for each argument, or else versions and the table."""
    operators = PARSER.parse_args(arguments).operators
    if operators:
        print("\n\n".join(explain(op) for op in operators))
        return
    print(f"masked_tensor {__version__}, torch {torch.__version__}, Python {platform.python_version()}")
    print(f"{platform.platform()}, CUDA {torch.version.cuda or 'not built in'}, threads: {torch.get_num_threads()}")
    groups = families()
    count = sum(len(names) for names in groups.values())
    print(f"{count} operators, {len(table.ENTRIES)} overloads with in-place and out= variants\n")
    for family, names in groups.items():
        print(f"{family} ({len(names)})")
        print(textwrap.fill(" ".join(names), 110, initial_indent="    ", subsequent_indent="    "))


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
        sys.stdout.flush()
    except BrokenPipeError:  # "| head" has read enough; the interpreter must not try to flush the rest
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except KeyError as unknown:
        sys.exit(str(unknown.args[0]))

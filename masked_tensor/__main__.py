"""``python -m masked_tensor``: versions and the op table; ``python -m masked_tensor softmax``: what an op means."""

import platform
import sys
import textwrap
from importlib.metadata import version

import torch

from .api.inspect import explain, families
from .engine import table


def main(arguments: list[str]) -> None:
    """Prints an op's meaning for each argument, or else versions and the table."""
    if arguments:
        print("\n\n".join(explain(op) for op in arguments))
        return
    print(f"masked_tensor {version('masked_tensor')}, torch {torch.__version__}, Python {platform.python_version()}")
    print(f"CUDA {torch.version.cuda or 'not built in'}, {torch.get_num_threads()} threads")
    groups = families()
    operators = sum(len(names) for names in groups.values())
    print(f"{operators} operators, {len(table.ENTRIES)} overloads with in-place and out= twins\n")
    for family, names in groups.items():
        print(f"{family} ({len(names)})")
        print(textwrap.fill(" ".join(names), 110, initial_indent="    ", subsequent_indent="    "))


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except KeyError as unknown:
        sys.exit(str(unknown.args[0]))

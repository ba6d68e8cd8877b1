"""``python -m tests.alone [files]``: runs each test file alone, in a process of its own, and lists those that fail.

A file that passes only after others have run stands on what they left behind: a warning that torch gives once, a
generator's state, a registered op.
"""

import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).parent


def main(names: list[str]) -> int:
    """The number of files that fail alone."""
    files = [Path(name) for name in names] or sorted(FOLDER.glob("test_*.py"))
    failed = [file for file in files if not passes(file)]
    print(f"{len(files) - len(failed)} of {len(files)} files pass alone", *failed, sep="\n    ")
    return len(failed)


def passes(file: Path) -> bool:
    """Whether the file passes in a fresh process; prints the end of what it said if it does not."""
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", str(file)]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    good = run.returncode in (0, 5)  # 5: nothing to run here, such as a file of tests that need a GPU
    print(f"{'passes' if good else 'FAILS '} {file.name}", flush=True)
    if not good:
        print("\n".join(run.stdout.splitlines()[-15:]), flush=True)
    return good


if __name__ == "__main__":
    sys.exit(min(main(sys.argv[1:]), 1))

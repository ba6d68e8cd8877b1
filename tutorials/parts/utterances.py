"""For 14_utterances.py: the data set Japanese Vowels.

utterances.csv.gz has one line per frame: twelve cepstrum coefficients of 640 utterances
of nine speakers.  Each utterance has 7 to 29 frames.
"""

import csv
import gzip
from itertools import groupby
from pathlib import Path

import torch
from torch import Tensor

Sample = tuple[Tensor, int]  # (frames, 12) and the speaker, 0 to 8


def read() -> tuple[list[Sample], list[Sample]]:
    """The utterances to learn from, and those to test with."""
    with gzip.open(Path(__file__).with_name("utterances.csv.gz"), "rt") as file:
        frames = list(csv.DictReader(file))
    parts: dict[str, list[Sample]] = {"train": [], "test": []}
    for _, group in groupby(frames, lambda frame: frame["utterance"]):
        lines = list(group)
        values = [[float(line[f"c{i}"]) for i in range(1, 13)] for line in lines]
        sample = torch.tensor(values), int(lines[0]["speaker"]) - 1
        parts[lines[0]["part"]].append(sample)
    return parts["train"], parts["test"]

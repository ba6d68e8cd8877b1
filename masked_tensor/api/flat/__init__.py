"""Flat: modules that run on plain tokens, one sequence after the other, with the mask at their ends."""

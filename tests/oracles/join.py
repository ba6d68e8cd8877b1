"""Joins: the parts' entries are numbered and joined; plain parts are valid."""

from .shape import moved

JOINS = "cat stack hstack vstack dstack column_stack block_diag cartesian_prod combinations _chunk_cat"
ORACLES = dict.fromkeys(JOINS.split(), moved)

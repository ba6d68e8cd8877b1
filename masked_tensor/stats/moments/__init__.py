"""Moments that merge: of columns, of columns by group, of every two columns."""

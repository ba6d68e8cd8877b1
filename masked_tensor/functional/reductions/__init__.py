"""Functional reductions: a number, or a few, of the valid entries of each slice."""

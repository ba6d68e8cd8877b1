"""Functional reductions: one or more numbers for the valid entries of each slice."""

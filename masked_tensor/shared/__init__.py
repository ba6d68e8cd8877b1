"""Arithmetic that several families use: it knows no op and no layout."""

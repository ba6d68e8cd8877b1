"""Rows of a padded batch: where they begin and end, what exists of them, their gaps, and their steps gathered."""

"""Rows of a padded batch: where they begin and end, which steps exist, their gaps, and their gathered steps."""

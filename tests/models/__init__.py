"""Models of other packages, unmodified: is a padded batch what its rows are, each alone?

``python -m tests.models`` sweeps over them and keeps what it found in ``docs/models.json``; ``--page`` writes
``docs/models.md`` from it.  Weights are random: nothing is downloaded.
"""

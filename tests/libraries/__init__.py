"""Classes of other packages, unmodified: what does a masked batch give?

``python -m tests.libraries`` runs the cases of the packages that are installed, and writes ``docs/libraries.md``.
Each package has a file of cases here, which can be read without the package.
"""

"""A shadow: each torch call of a test file is made again on masked tensors, and must give what it gave.

``python -m tests.shadow FILE [pytest args]`` runs a test file.  Each call of plain tensors is repeated on copies: as
it was, and with masked tensors in which nothing is masked, for all of its tensors, the first or the second.  Values,
dtype, shape, strides, identity, exceptions, in-place writes, random draws and gradients must be the same.

``python -m tests.shadow --garbage FILE [pytest args]`` masks entries at random.  What a call gives must not depend on
the data under the mask: NaN, inf, 1e30, out-of-range integers.

``--record NAME`` writes the counts of a run into ``tests/shadow/score.md``, in the line of NAME.
"""

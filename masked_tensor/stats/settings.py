"""Sizes that were measured: they decide how fast, and never what comes out."""

#: Per step over rows: what a step uses stays in cache. Half of it costs 1.2 to 1.4 times as much.
CHUNK = 1 << 18
#: As many entries of a batch are sorted at once for a sketch of quantiles; a run is at least as long as what waits.  On
#: 64 columns: longer runs need fewer levels, and shorter ones less memory; the time is the same from 1 << 20 on.
SORTED = 1 << 22

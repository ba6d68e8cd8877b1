"""Time series with gaps, under pandas' names: filling, shifting, interpolating, moving windows."""

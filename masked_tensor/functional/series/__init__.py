"""Time series with gaps, under pandas' names: filling, shifting, interpolating, windows that move."""

"""What a compiled graph takes from a masked tensor, and what its cache entry depends on."""

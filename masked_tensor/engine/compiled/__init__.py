"""What a compiled graph takes of a masked tensor, and what its entry in a cache depends on."""

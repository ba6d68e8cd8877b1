"""What Python and its libraries ask of a masked tensor, and what torch asks beside its ops."""

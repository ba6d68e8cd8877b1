"""Context managers: the settings in force, as blocks and as decorators."""

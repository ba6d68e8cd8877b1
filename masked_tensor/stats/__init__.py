"""Running statistics: what they are of, their state, and the class."""

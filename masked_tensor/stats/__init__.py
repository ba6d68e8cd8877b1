"""Running statistics: their options, their state, and the class."""

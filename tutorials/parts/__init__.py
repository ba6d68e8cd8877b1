"""What tutorials import, so that they can speak of one thing at a time."""

"""What is shown of a tensor or of an op: text, notebook tables, pictures, and what an op means."""

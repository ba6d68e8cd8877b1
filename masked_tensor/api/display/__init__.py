"""What is shown for a tensor or an op: text, notebook tables, pictures, and what an op means."""

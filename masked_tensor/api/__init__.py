"""What users call, and what Python calls for them: making, leaving, copying, printing, comparing, asking."""

"""What users hand in: lists, ragged sequences, tables, containers and masked tensors, read as data and mask."""

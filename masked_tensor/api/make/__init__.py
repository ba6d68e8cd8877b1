"""Making masked tensors: of data and a mask, of values that count as missing, in factories of torch."""

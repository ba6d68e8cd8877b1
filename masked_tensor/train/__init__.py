"""For training loops: means over ranks and micro-batches, sums of losses, batches of equal numbers of tokens."""

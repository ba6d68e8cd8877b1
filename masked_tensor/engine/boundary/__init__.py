"""The boundary between masked tensors and the plain tensors that rules work on, and what autograd asks there."""

"""Kernels of GPUs, in Triton: one pass where a formula takes several; imported when the first CUDA tensor asks.

``layout`` says how a kernel walks over its tensors, ``tiles`` is what kernels share, ``entries`` lists them by op.
Every file of kernels has ``serves``, ``forward`` and ``backward``, as the table (``kernels/table.py``) asks for them.
What is masked is never read.  Nothing is added up by atomics: the same bits come out from run to run.
"""

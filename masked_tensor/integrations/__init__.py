"""Other libraries count the entries of a tensor in Python: their functions are given what is valid.

A wrapped function looks at the types of its arguments, and calls the library's own function with plain ones.  Nothing
is imported: each is wrapped when its module is imported, or at once.
"""

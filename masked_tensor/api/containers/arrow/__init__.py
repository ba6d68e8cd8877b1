"""The Arrow C data interface: tables and columns of any library that speaks it, and no library imported.

``reading`` takes what an object hands out (``__arrow_c_array__``, ``__arrow_c_stream__``), ``writing`` hands out a
masked tensor; ``abi`` is the layout in memory that both agree on, and ``formats`` the names of its types.
The interface: https://arrow.apache.org/docs/format/CDataInterface.html.
"""

"""The Arrow C data interface: tables and columns of any library that speaks it, and no library imported.

``reading`` takes what an object hands out (``__arrow_c_array__``, ``__arrow_c_stream__``), ``writing`` hands out a
masked tensor. In ``library`` nanoarrow or pyarrow knows the layout in memory, and ``formats`` has the names of types.
The interface: https://arrow.apache.org/docs/format/CDataInterface.html.
"""

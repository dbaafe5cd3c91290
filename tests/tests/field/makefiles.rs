//! Options of xlc, xlC and xlf in the makefiles of real programs, and the names of their drivers.

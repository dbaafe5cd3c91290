/* The wrappers as a library in C++, to be linked first or preloaded. */
#include "wrappers.h"

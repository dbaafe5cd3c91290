/* The wrappers as a library, to be linked first or preloaded. */
#include "wrappers.h"

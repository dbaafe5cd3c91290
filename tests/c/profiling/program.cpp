/* As C++: the wrappers keep C's names. */
#include "program.h"

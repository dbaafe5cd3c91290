/* As C. */
#include "program.h"

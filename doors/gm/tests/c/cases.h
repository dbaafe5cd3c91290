/* The cases, of which each is a statement about GM. */
#ifndef CASES_H
#define CASES_H

#include "desk.h"

/* Each with how many tasks it has, and the seconds of LAPI_GM_TIMEOUT, which are few where a case
 * awaits that they pass. Those with 0 tasks are started in a way of their own. */
#define CASES(EACH)                                                                                \
    EACH(open, 2, 60) EACH(message, 2, 60) EACH(order, 2, 60) EACH(wait, 2, 60) EACH(turns, 3, 60) \
    EACH(resume, 2, 3) EACH(drop, 2, 3) EACH(rejected, 2, 60) EACH(closed, 2, 8) EACH(left, 3, 3)  \
    EACH(reopened, 2, 60) EACH(moved, 3, 60) EACH(death, 0, 0) EACH(put, 2, 60) EACH(check, 0, 0) EACH(absurd, 2, 60) \
    EACH(sent, 2, 60) EACH(long, 2, 60) EACH(datagram, 2, 60) EACH(tokens, 1, 60) EACH(alarm, 1, 60) \
    EACH(blocking, 2, 60) EACH(threads, 1, 60) EACH(busy, 2, 60) EACH(names, 2, 60) EACH(signals, 2, 60) EACH(forked, 2, 60) EACH(gone, 3, 60) EACH(helpers, 0, 0) \
    EACH(abort, 0, 0)

#define DECLARED(name, tasks, timeout) void case_##name(void);
CASES(DECLARED)
#undef DECLARED

#endif

/*
 * lapi_checkpoint.h: a task that leaves its job for a checkpoint, and comes back.
 *
 * SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * Two hooks, of OpenLAPI and not of the manual, around a checkpoint of one task: the others go on.
 * lapi_checkpoint(7) describes them.
 *
 *     lapi_checkpoint_before(hndl);     nothing is under way any more between this task and others
 *     save_my_data();                   or an outside checkpointer saves the process
 *     lapi_checkpoint_after(hndl);      the same process goes on
 *
 * Or the process ends after it has saved its data, and another one that is started in its place
 * reads the data after LAPI_Init.
 */
#ifndef LAPI_CHECKPOINT_H
#define LAPI_CHECKPOINT_H

#include <string.h>

#include <lapi.h>

/* Requests of LAPI_Util. They have no parameters. */
#define LAPI_CHECKPOINT_BEFORE ((lapi_util_type_t)32)
#define LAPI_CHECKPOINT_AFTER ((lapi_util_type_t)33)

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Waits until all that this task has sent and all that others have sent to it is complete, handlers
 * included, and parts from all other tasks. What they send from then on waits for this task.
 * Returns LAPI_SUCCESS; LAPI_ERR_CKPT if the task has parted already, or if a handler calls;
 * LAPI_ERR_HNDL_INVALID; LAPI_ERR_UTIL_CMD if the library has no checkpoints.
 */
static inline int lapi_checkpoint_before(lapi_handle_t hndl)
{
    lapi_util_t request;

    memset(&request, 0, sizeof request);
    request.Util_type = LAPI_CHECKPOINT_BEFORE;
    return LAPI_Util(hndl, &request);
}

/*
 * Lets all tasks rejoin from which this one has parted, in the process that has called
 * lapi_checkpoint_before. Returns at once: LAPI_SUCCESS; LAPI_ERR_CKPT if the task has not parted;
 * LAPI_ERR_SHM_SETUP if a resource of the system lacks, when it may be called again;
 * LAPI_ERR_HNDL_INVALID; LAPI_ERR_UTIL_CMD.
 */
static inline int lapi_checkpoint_after(lapi_handle_t hndl)
{
    lapi_util_t request;

    memset(&request, 0, sizeof request);
    request.Util_type = LAPI_CHECKPOINT_AFTER;
    return LAPI_Util(hndl, &request);
}

#ifdef __cplusplus
}
#endif
#endif

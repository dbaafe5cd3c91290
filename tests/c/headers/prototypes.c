/*
 * The type of every call, as its man page gives it. Compiles, without a warning, only if lapi.h
 * says the same for LAPI_X and for PLAPI_X: a pointer to a function converts to no other.
 */
#include <lapi.h>

#define CALL(name, arguments) \
  int(*lapi_##name) arguments = LAPI_##name; \
  int(*plapi_##name) arguments = PLAPI_##name;

CALL(Init, (lapi_handle_t *, lapi_info_t *))
CALL(Term, (lapi_handle_t))
CALL(Qenv, (lapi_handle_t, lapi_query_t, int *))
CALL(Senv, (lapi_handle_t, lapi_query_t, int))
CALL(Msg_string, (int, void *))
CALL(Addr_set, (lapi_handle_t, void *, int))
CALL(Addr_get, (lapi_handle_t, void **, int))
CALL(Address, (void *, ulong *))
CALL(Address_init, (lapi_handle_t, void *, void **))
CALL(Address_init64, (lapi_handle_t, lapi_long_t, lapi_long_t *))
CALL(Put, (lapi_handle_t, uint, ulong, void *, void *, lapi_cntr_t *, lapi_cntr_t *, lapi_cntr_t *))
CALL(Get, (lapi_handle_t, uint, ulong, void *, void *, lapi_cntr_t *, lapi_cntr_t *))
CALL(Amsend, (lapi_handle_t, uint, void *, void *, uint, void *, ulong, lapi_cntr_t *, lapi_cntr_t *,
      lapi_cntr_t *))
CALL(Rmw, (lapi_handle_t, RMW_ops_t, uint, int *, int *, int *, lapi_cntr_t *))
CALL(Rmw64, (lapi_handle_t, RMW_ops_t, uint, long long *, long long *, long long *, lapi_cntr_t *))
CALL(Xfer, (lapi_handle_t, lapi_xfer_t *))
CALL(Util, (lapi_handle_t, lapi_util_t *))
CALL(Getcntr, (lapi_handle_t, lapi_cntr_t *, int *))
CALL(Setcntr, (lapi_handle_t, lapi_cntr_t *, int))
CALL(Waitcntr, (lapi_handle_t, lapi_cntr_t *, int, int *))
CALL(Probe, (lapi_handle_t))
CALL(Msgpoll, (lapi_handle_t, uint, lapi_msg_info_t *))
CALL(Fence, (lapi_handle_t))
CALL(Gfence, (lapi_handle_t))
CALL(Amsendv, (lapi_handle_t, uint, void *, void *, uint, lapi_vec_t *, lapi_cntr_t *, lapi_cntr_t *,
      lapi_cntr_t *))
CALL(Putv, (lapi_handle_t, uint, lapi_vec_t *, lapi_vec_t *, lapi_cntr_t *, lapi_cntr_t *,
      lapi_cntr_t *))
CALL(Getv, (lapi_handle_t, uint, lapi_vec_t *, lapi_vec_t *, lapi_cntr_t *, lapi_cntr_t *))
CALL(Nopoll_wait, (lapi_handle_t, lapi_cntr_t *, int, int *))
CALL(Purge_totask, (lapi_handle_t, uint))
CALL(Resume_totask, (lapi_handle_t, uint))
CALL(Setcntr_wstatus, (lapi_handle_t, lapi_cntr_t *, int, uint *, int *))

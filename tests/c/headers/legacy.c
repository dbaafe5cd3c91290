/*
 * A program in the manner of those written for LAPI between 1997 and 2008. It is compiled and not
 * run: what counts is that every one of its habits passes.
 */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include "lapi.h"

/* Macros distinguish the levels of LAPI. */
#ifdef LAPI_ERR_BAD_NINTH_PARM
#define BAD_ORG_CNTR LAPI_ERR_BAD_NINTH_PARM
#else
#error LAPI_ERR_BAD_NINTH_PARM is no macro
#endif

#ifdef LAPI_DGSM_COPY_SIZE
#define HAVE_DGSP 1
#else
#error LAPI_DGSM_COPY_SIZE is no macro
#endif

#ifdef __64BIT__
#define WORD 8
#else
#define WORD 4
#endif

#define MAX_TASK 64
#define CHECK(call) \
  do { \
    int rc_ = (call); \
    if (rc_ != LAPI_SUCCESS) { \
      char text_[LAPI_MAX_ERR_STRING]; \
      LAPI_Msg_string(rc_, text_); \
      fprintf(stderr, "%s\n", text_); \
      exit(rc_); \
    } \
  } while (0)

typedef struct {
  int kind;
  ulong offset;
} header_t;

lapi_handle_t t_hndl;
lapi_cntr_t counters[1024];
static lapi_cntr_t done = {0}, arrived;
static char space[65536];
static void *addresses[MAX_TASK];
static lapi_long_t long_addresses[MAX_TASK];

void
on_error(hndl, error_code, err_type, task_id, src)
lapi_handle_t *hndl;
int *error_code, *task_id, *src;
lapi_err_t *err_type;
{
  if (*err_type == TMR_ERR || *error_code == LAPI_ERR_PURGED_TASK)
    return;
  fprintf(stderr, "%d: error %d (%d) from %d\n", *task_id, *error_code, (int)*err_type, *src);
  LAPI_Term(*hndl);
  exit(1);
}

void
on_complete(hndl, param)
lapi_handle_t *hndl;
void *param;
{
  int left;
  LAPI_Setcntr(*hndl, &done, 1);
  LAPI_Waitcntr(*hndl, &done, 1, &left);
  ((header_t *)param)->kind = left;
}

/* The first header handlers had msg_len as a number. */
void *
on_header(hndl, uhdr, uhdr_len, msg_len, comp_h, uinfo)
lapi_handle_t *hndl;
void *uhdr;
uint *uhdr_len;
ulong *msg_len;
compl_hndlr_t **comp_h;
void **uinfo;
{
  *comp_h = (compl_hndlr_t *)on_complete;
  *uinfo = uhdr;
  return *msg_len > sizeof(space) ? NULL : (void *)(space + ((header_t *)uhdr)->offset);
}

/* The later ones have it as a structure. */
void *on_small(lapi_handle_t *hndl, void *uhdr, uint *uhdr_len, lapi_return_info_t *info, compl_hndlr_t **comp_h,
               void **uinfo)
{
  *comp_h = NULL;
  if (info->udata_one_pkt_ptr != NULL) {
    memcpy(space, info->udata_one_pkt_ptr, info->msg_len);
    info->ret_flags = LAPI_LOCAL_STATE | LAPI_SEND_REPLY;
    info->ctl_flags = LAPI_BURY_MSG;
  }
  info->dgsp_handle = LAPI_BYTE;
  info->bytes = info->msg_len;
  return info->src == 0 ? space : NULL;
}

lapi_vec_t *on_vector(lapi_handle_t *hndl, void *uhdr, uint *uhdr_len, ulong *len_vec, compl_hndlr_t **comp_h,
                      void **uinfo)
{
  static lapi_vec_t target;
  static void *info[3];
  target.vec_type = LAPI_GEN_STRIDED_XFER;
  target.num_vecs = 4;
  target.info = info;
  target.info[0] = space;
  target.info[1] = (void *)16;
  target.info[2] = (void *)64;
  target.len = NULL;
  *comp_h = 0;
  return &target;
}

void on_sent(lapi_handle_t *hndl, void *param, lapi_sh_info_t *info)
{
  if (info->reason != LAPI_SUCCESS)
    fprintf(stderr, "not sent to %u\n", info->src);
}

int udp_addresses(lapi_handle_t *hndl, lapi_udp_t *local, lapi_udp_t *list, lapi_udpinfo_t *info)
{
  uint i;
  for (i = 0; i < info->num_tasks; i++) {
    list[i].ip_addr = htonl(0x7f000001);
    list[i].port_no = 4000 + i;
  }
  return 0;
}

long add_ints(void *in, void *inout, long bytes, int operand, int operation)
{
  long i;
  for (i = 0; i < bytes / (long)sizeof(int); i++)
    ((int *)inout)[i] += ((int *)in)[i];
  return bytes;
}

static void start()
{
  lapi_info_t info;
  lapi_extend_t extend;
  com_thread_info_t threads;
  lapi_query_t query = TASK_ID;
  int me, tasks;

  bzero(&info, sizeof(lapi_info_t));
  bzero(&extend, sizeof(extend));
  bzero(&threads, sizeof(threads));
  info.lib_vers = LAST_LIB;
  info.err_hndlr = (LAPI_err_hndlr *)on_error;
  extend.udp_hndlr = (udp_init_hndlr *)udp_addresses;
  info.add_info = &extend;
  info.lapi_thread_attr = &threads;
  CHECK(LAPI_Init(&t_hndl, &info));
  CHECK(LAPI_Qenv(t_hndl, query, &me));
  CHECK(LAPI_Qenv(t_hndl, NUM_TASKS, &tasks));
  CHECK(LAPI_Senv(t_hndl, ERROR_CHK, 0));
  CHECK(LAPI_Senv(t_hndl, INTERRUPT_SET, 1));
  CHECK(LAPI_Addr_set(t_hndl, (void *)on_header, 1));
  CHECK(LAPI_Address_init(t_hndl, space, addresses));
  CHECK(LAPI_Address_init64(t_hndl, (lapi_long_t)(ulong)space, long_addresses));
}

static void transfers(int tgt)
{
  lapi_xfer_t xfer;
  header_t header;
  int in = 1, prev, value, left;
  long long in64 = 1;

  header.kind = 0;
  header.offset = 0;
  CHECK(LAPI_Put(t_hndl, tgt, 64, addresses[tgt], space, NULL, &counters[0], &counters[1]));
  CHECK(LAPI_Get(t_hndl, tgt, 64, addresses[tgt], space, LAPI_ADDR_NULL, &counters[2]));
  CHECK(LAPI_Amsend(t_hndl, tgt, (void *)on_header, &header, sizeof(header), space, 64, &arrived, &counters[3], 0));
  CHECK(LAPI_Amsend(t_hndl, tgt, (void *)1, NULL, 0, NULL, 0, NULL, NULL, NULL));
  CHECK(LAPI_Rmw(t_hndl, FETCH_AND_ADD, tgt, (int *)addresses[tgt], &in, &prev, &counters[4]));
  CHECK(LAPI_Rmw64(t_hndl, COMPARE_AND_SWAP, tgt, (long long *)addresses[tgt], &in64, NULL, NULL));

  memset(&xfer, 0, sizeof(xfer));
  xfer.Xfer_type = LAPI_AM_XFER;
  xfer.Am.flags = LAPI_USE_BULK_XFER | BUFFER_BOTH_CONTIGUOUS;
  xfer.Am.tgt = tgt;
  xfer.Am.hdr_hdl = (lapi_long_t)(ulong)(hdr_hndlr_t *)on_small;
  xfer.Am.uhdr = &header;
  xfer.Am.uhdr_len = (sizeof(header) + WORD - 1) / WORD * WORD;
  xfer.Am.udata = space;
  xfer.Am.udata_len = 64;
  xfer.Am.shdlr = (scompl_hndlr_t *)on_sent;
  xfer.Am.sinfo = NULL;
  CHECK(LAPI_Xfer(t_hndl, &xfer));

  while (counters[0].cntr == 0)
    CHECK(LAPI_Probe(t_hndl));
  CHECK(LAPI_Getcntr(t_hndl, &arrived, &value));
  CHECK(LAPI_Waitcntr(t_hndl, &counters[1], 1, &left));
  CHECK(LAPI_Waitcntr(t_hndl, &counters[3], 1, NULL));
  if (left != 0 || value < 0)
    exit(BAD_ORG_CNTR);
}

static void programs(void)
{
#if HAVE_DGSP
  int code[LAPI_DGSM_COPY_SIZE + LAPI_DGSM_MCOPY_SIZE + 3 * LAPI_DGSM_MCOPY_BLOCK_SIZE + LAPI_DGSM_GOSUB_SIZE +
           LAPI_DGSM_ITERATE_SIZE + LAPI_DGSM_CONTROL_SIZE];
  lapi_dgsp_descr_t dgsp;
  lapi_dgsm_copy_t *copy = (lapi_dgsm_copy_t *)code;
  lapi_dgsm_iterate_t *iterate = (lapi_dgsm_iterate_t *)&code[LAPI_DGSM_COPY_SIZE];
  lapi_reg_dgsp_t reg;
  lapi_util_t util;
  lapi_reg_ddm_t ddm;
  lapi_pack_dgsp_t pack;
  lapi_unpack_dgsp_t unpack;
  lapi_statistics_t stats;

  copy->opcode = LAPI_DGSM_COPY;
  copy->bytes = 4;
  copy->offset = 0;
  iterate->opcode = LAPI_DGSM_ITERATE;
  iterate->iter_loc = -LAPI_DGSM_COPY_SIZE;
  dgsp.code = &code[0];
  dgsp.code_size = LAPI_DGSM_COPY_SIZE + LAPI_DGSM_ITERATE_SIZE;
  dgsp.depth = 1;
  dgsp.density = LAPI_DGSM_SPARSE;
  dgsp.size = 4;
  dgsp.extent = 8;
  dgsp.lext = 0;
  dgsp.rext = 4;
  dgsp.atom_size = 0;
  reg.Util_type = LAPI_REGISTER_DGSP;
  reg.idgsp = &dgsp;
  CHECK(LAPI_Util(t_hndl, (lapi_util_t *)&reg));
  if (reg.dgsp_handle->size != dgsp.size)
    exit(1);

  pack.Util_type = LAPI_DGSP_PACK;
  pack.dgsp_handle = reg.dgsp_handle;
  pack.in_buf = space;
  pack.out_buf = space;
  pack.out_size = pack.bytes = 16;
  pack.position = 0;
  CHECK(LAPI_Util(t_hndl, (lapi_util_t *)&pack));
  unpack.Util_type = LAPI_DGSP_UNPACK;
  unpack.dgsp = pack.dgsp;
  unpack.buf = unpack.out_buf = space;
  unpack.in_size = unpack.bytes = 16;
  unpack.position = 0;
  CHECK(LAPI_Util(t_hndl, (lapi_util_t *)&unpack));

  ddm.Util_type = LAPI_REG_DDM_FUNC;
  ddm.ddm_func = (ddm_func_t *)add_ints;
  util.DdmFunc = ddm;
  CHECK(LAPI_Util(t_hndl, &util));

  CHECK(LAPI_Qenv(t_hndl, QUERY_STATISTICS, (int *)&stats));
  if (stats.Tot_pkt_recv_cnt != stats.Tot_pkt_rcv_cnt || stats.Tot_data_recv != stats.Tot_data_rcv)
    exit(1);
#endif
}

static void locked()
{
  lapi_util_t util;
  lapi_thread_func_t lock;
  lapi_cond_t cond;
  pthread_t owner;

  util.Util_type = LAPI_GET_THREAD_FUNC;
  CHECK(LAPI_Util(t_hndl, &util));
  lock = util.ThreadFunc;
  (*lock.cond_init)(t_hndl, &cond);
  (*lock.mutex_lock)(t_hndl);
  lock.mutex_getowner(t_hndl, &owner);
  if (!pthread_equal(owner, pthread_self()) || owner == LAPI_NULL_THREAD_ID)
    exit(1);
  lock.cond_signal(t_hndl, &cond);
  lock.mutex_unlock(t_hndl);
}

int main(int argc, char **argv)
{
  lapi_msg_info_t polled;
  lapi_vec_t vec;
  uint dest[1] = {0};
  int status[1];
  vhdr_hndlr_t *vector_handler = on_vector;

  start();
  transfers(0);
  programs();
  locked();
  bzero(&vec, sizeof(vec));
  CHECK(LAPI_Amsendv(t_hndl, 0, (void *)vector_handler, NULL, 0, &vec, NULL, NULL, NULL));
  CHECK(LAPI_Putv(t_hndl, 0, &vec, &vec, NULL, NULL, NULL));
  CHECK(LAPI_Getv(t_hndl, 0, &vec, &vec, NULL, NULL));
  CHECK(LAPI_Msgpoll(t_hndl, 100, &polled));
  if ((polled.status & LAPI_BOTH_COMPLETE) == LAPI_BOTH_COMPLETE || polled.status & LAPI_DISP_CNTR)
    CHECK(LAPI_Fence(t_hndl));
  CHECK(LAPI_Setcntr_wstatus(t_hndl, &done, 1, dest, status));
  CHECK(LAPI_Nopoll_wait(t_hndl, &done, 1, NULL));
  if (status[0] == LAPI_MSG_PURGED)
    CHECK(LAPI_Resume_totask(t_hndl, dest[0]));
  CHECK(PLAPI_Gfence(t_hndl));
  CHECK(LAPI_Term(t_hndl));
  t_hndl = LAPI_VOID_HANDLE;
  return 0;
}

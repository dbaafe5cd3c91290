/*
 * lapi.h: LAPI, the low-level application programming interface.
 * SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * Generated from the Rust sources and from capi/prelude.h, so change those and not this. To regenerate:
 *   UPDATE_HEADER=1 cargo test -p openlapi-capi --test header
 */

#ifndef LAPI_H
#define LAPI_H

/* AIX's name for 64-bit programs. */
#if defined(__LP64__) && !defined(__64BIT__)
#define __64BIT__ 1
#endif

#include <string.h>
#include <strings.h>
#include <sys/types.h>
#include <pthread.h>
#include <css_shared.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Handles and numbers
 */

typedef unsigned int lapi_handle_t;
typedef unsigned long long lapi_long_t; /* wide enough for an address of any task */
typedef unsigned int lapi_status_t;
typedef unsigned long lapi_msglen_t;
typedef unsigned int lapi_user_cxt_t;
typedef unsigned long long lapi_user_pvo_t;
typedef unsigned short lapi_rdma_tag_t;

#define LAPI_VOID_HANDLE ((lapi_handle_t)-1)
#define LAPI_NULL_THREAD_ID ((pthread_t)-1)
#define LAPI_ADDR_NULL ((void *)0)
#define LAPI_MAX_ERR_STRING 160
#ifdef __64BIT__
#define LAPI_MAX_MSG_SZ 0x7fffffffffffffffLL
#else
#define LAPI_MAX_MSG_SZ 0x7fffffff
#endif

/*
 * Enumerations
 */

/* The attributes of LAPI_Qenv and LAPI_Senv */
typedef enum {
  TASK_ID = 0,
  NUM_TASKS = 1,
  MAX_UHDR_SZ = 2,
  MAX_DATA_SZ = 3,
  ERROR_CHK = 4,
  TIMEOUT = 5,
  MIN_TIMEOUT = 6,
  MAX_TIMEOUT = 7,
  INTERRUPT_SET = 8,
  MAX_PORTS = 9,
  MAX_PKT_SZ = 10,
  NUM_REX_BUFS = 11,
  REX_BUF_SZ = 12,
  LOC_ADDRTBL_SZ = 13,
  EPOCH_NUM = 14,     /* has no meaning any more */
  USE_THRESH = 15,    /* has no meaning any more */
  RCV_FIFO_SIZE = 16, /* has no meaning any more */
  MAX_ATOM_SIZE = 17,
  BUF_CP_SIZE = 18,
  MAX_PKTS_OUT = 19,
  ACK_THRESHOLD = 20,
  QUERY_SHM_ENABLED = 21,
  QUERY_SHM_NUM_TASKS = 22,
  QUERY_SHM_TASKS = 23,  /* into an array of QUERY_SHM_NUM_TASKS ints */
  QUERY_STATISTICS = 24, /* into a lapi_statistics_t */
  PRINT_STATISTICS = 25,
  QUERY_SHM_STATISTICS = 26,        /* into a lapi_statistics_t */
  QUERY_LOCAL_SEND_STATISTICS = 27, /* into a lapi_statistics_t */
  BULK_XFER = 28,
  BULK_MIN_MSG_SIZE = 29,
  LAST_QUERY = 30
} lapi_query_t;

/* The operations of LAPI_Rmw and LAPI_Rmw64 */
typedef enum { FETCH_AND_ADD = 0, FETCH_AND_OR = 1, SWAP = 2, COMPARE_AND_SWAP = 3 } RMW_ops_t;

/* The kind of operation that has failed, as error handlers get it */
typedef enum { GET_ERR = 0, PUT_ERR = 1, RMW_ERR = 2, AM_ERR = 3, INT_ERR = 4, TMR_ERR = 5 } lapi_err_t;

/* The level of the library a program is written for */
typedef enum { L1_LIB = 0, L2_LIB = 1, L3_LIB = 2, L4_LIB = 3, LAST_LIB = 4 } lapi_lib_t;

typedef enum { LAPI_GEN_IOVECTOR = 0, LAPI_GEN_STRIDED_XFER = 1, LAPI_GEN_GENERIC = 2 } lapi_vectype_t;

typedef enum {
  LAPI_GET_XFER = 0,
  LAPI_AM_XFER = 1,
  LAPI_PUT_XFER = 2,
  LAPI_GETV_XFER = 3,
  LAPI_PUTV_XFER = 4,
  LAPI_AMV_XFER = 5,
  LAPI_RMW_XFER = 6,
  LAPI_DGSP_XFER = 7,
  LAPI_RDMA_XFER = 8,
  LAPI_AM_LW_XFER = 9,
  LAPI_AMX_XFER = 10,
  LAPI_MC_XFER = 11
} lapi_xfer_type_t;

typedef enum {
  LAPI_REGISTER_DGSP = 0,
  LAPI_RESERVE_DGSP = 1,
  LAPI_UNRESERVE_DGSP = 2,
  LAPI_REG_DDM_FUNC = 3,
  LAPI_DGSP_PACK = 4,
  LAPI_DGSP_UNPACK = 5,
  LAPI_ADD_UDP_DEST_PORT = 6,
  LAPI_GET_THREAD_FUNC = 7,
  LAPI_REMOTE_RCXT = 8,
  LAPI_XLATE_ADDRESS = 9,
  LAPI_REGISTER_NOTIFICATION = 10,
  LAPI_TRIGGER_ADD = 11,
  LAPI_TRIGGER_REMOVE = 12,
  LAPI_ADD_UDP_DEST_EXT = 13,
  LAPI_STAT_SAVE = 14
} lapi_util_type_t;

/* For debugging only */
typedef enum {
  LAPI_NORMAL_CALL = 0,
  LAPI_SEND_COMPL_HNDLR = 1,
  LAPI_RECV_INLINE_HNDLR = 2
} lapi_usr_fcall_t;

typedef enum {
  LAPI_DGSM_COPY = 0,
  LAPI_DGSM_MCOPY = 1,
  LAPI_DGSM_GOSUB = 2,
  LAPI_DGSM_ITERATE = 3,
  LAPI_DGSM_CONTROL = 4
} lapi_dgsm_opcode_t;

typedef enum { LAPI_DGSM_SPARSE = 0, LAPI_DGSM_CONTIG = 1, LAPI_DGSM_UNIT = 2 } lapi_dgsp_density_t;

/* What to do with an arriving message */
typedef enum { LAPI_DELIVER_MSG = 0, LAPI_BURY_MSG = 1, LAPI_DROP_PKT = 2 } lapi_ctl_flags_t;

/* An error here: enums have fewer bytes than the library's (-qenum=small, -fshort-enums). */
typedef char lapi_needs_enums_of_4_bytes[sizeof(lapi_ctl_flags_t) == 4 ? 1 : -1];

/*
 * Sets of bits
 */

/* lapi_return_info_t.ret_flags: how a completion handler is to be run */
typedef int lapi_ret_flags_t;
#define LAPI_NORMAL 0
#define LAPI_LOCAL_STATE 1
#define LAPI_SEND_REPLY 2

/* lapi_msg_info_t.status: what LAPI_Msgpoll saw happen */
typedef unsigned int lapi_msg_state_t;
#define LAPI_SEND_COMPLETE 1
#define LAPI_RECV_COMPLETE 2
#define LAPI_BOTH_COMPLETE (LAPI_SEND_COMPLETE | LAPI_RECV_COMPLETE)
#define LAPI_POLLING_NET 4
#define LAPI_DISP_CNTR 8

/* flags of the LAPI_Xfer structures */
#define USE_TGT_VEC_TYPE 0x02
#define LAPI_USE_LAZY_ACKS 0x04
#define BUFFER_BOTH_CONTIGUOUS 0x10
#define LAPI_NOT_USE_BULK_XFER 0x20
#define LAPI_USE_BULK_XFER 0x40
#define LAPI_NOT_STRIPE 0x80
#define LAPI_NO_LOCAL_COPY 0x100

/* lapi_info_t.protocol on entry */
#define LAPI_SHARE_PROTOCOL 0x80000000
#define LAPI_PSS_GPFS 0x40000000
#define LAPI_INTERRUPT_OFF 0x20000000

/* lapi_remote_cxt_t.operation, lapi_get_pvo_t.operation; then lapi_hwxfer_t.op */
#define LAPI_RDMA_ACQUIRE 0
#define LAPI_RDMA_RELEASE 1
#define LAPI_RDMA_GET 1
#define LAPI_RDMA_PUT 2
#define LAPI_RCALLBACK 4
#define LAPI_RCNTR_UPDATE 8

/* dest_status of LAPI_Setcntr_wstatus: not bits, one of these */
#define LAPI_MSG_INITIAL 0
#define LAPI_MSG_RECVD 1
#define LAPI_MSG_PURGED 2
#define LAPI_MSG_PURGED_RCVD 3
#define LAPI_MSG_INVALID 4

/*
 * Data gather/scatter programs: lengths of the instructions in ints
 */

#define LAPI_DGSM_COPY_SIZE ((int)(sizeof(lapi_dgsm_copy_t) / sizeof(int)))
#define LAPI_DGSM_MCOPY_SIZE ((int)(sizeof(lapi_dgsm_mcopy_t) / sizeof(int)))
#define LAPI_DGSM_MCOPY_BLOCK_SIZE ((int)(sizeof(lapi_dgsm_block_t) / sizeof(int)))
#define LAPI_DGSM_BLOCK_SIZE LAPI_DGSM_MCOPY_BLOCK_SIZE
#define LAPI_DGSM_GOSUB_SIZE ((int)(sizeof(lapi_dgsm_gosub_t) / sizeof(int)))
#define LAPI_DGSM_ITERATE_SIZE ((int)(sizeof(lapi_dgsm_iterate_t) / sizeof(int)))
#define LAPI_DGSM_CONTROL_SIZE ((int)(sizeof(lapi_dgsm_control_t) / sizeof(int)))
#define LAPI_DGSM_NO_CTL (-1) /* the operation of a CONTROL that ends control mode */

/* A registered program; may be read through. */
struct lapi_dgsp_descr_t;
typedef struct lapi_dgsp_descr_t *lapi_dg_handle_t;
typedef lapi_dg_handle_t lapi_dgsp_handle_t;

/* Contiguous bytes, registered from the start. */
extern const lapi_dg_handle_t LAPI_BYTE;

/*
 * Function types: fields and arguments hold pointers to them.
 */

struct lapi_vec_t;
struct lapi_sh_info_t;
struct lapi_udp_t;
struct lapi_udpinfo_t;
struct timespec;
struct sockaddr_storage; /* of <sys/socket.h>, whose functions a program may have under the same names */
union lapi_cond_t;

/* Completion handler: all data of a message has arrived. */
typedef void(compl_hndlr_t)(lapi_handle_t *hndl, void *completion_param);

/*
 * Header handler: the first packet of an active message is there. Returns where the data shall go.
 * msg_len points at the first field of a lapi_return_info_t.
 */
typedef void *(hdr_hndlr_t)(lapi_handle_t *hndl, void *uhdr, uint *uhdr_len, ulong *msg_len,
                            compl_hndlr_t **comp_h, void **uinfo);

/* The same for a vector. */
typedef struct lapi_vec_t *(vhdr_hndlr_t)(lapi_handle_t *hndl, void *uhdr, uint *uhdr_len, ulong *len_vec,
                                          compl_hndlr_t **comp_h, void **uinfo);

/* Send completion handler: the origin data may be changed again. */
typedef void(scompl_hndlr_t)(lapi_handle_t *hndl, void *completion_param, struct lapi_sh_info_t *info);

/* Error handler: errors that no call can return. task_id is the task it runs in, src
 * the other one. */
typedef void(LAPI_err_hndlr)(lapi_handle_t *hndl, int *error_code, lapi_err_t *err_type, int *task_id,
                             int *src);

/* Combines arriving data with what is at its place; returns the number of bytes processed. */
typedef long(ddm_func_t)(void *in, void *inout, long bytes, int operand, int operation);

/* Passes the UDP addresses of the tasks to LAPI_Init; returns 0 for success. */
typedef int(udp_init_hndlr)(lapi_handle_t *hndl, struct lapi_udp_t *local_addr, struct lapi_udp_t *addr_list,
                            struct lapi_udpinfo_t *info);
typedef int(udp_init_ext_hndlr)(lapi_handle_t *hndl, struct sockaddr_storage *local_addr,
                                struct sockaddr_storage *addr_list, struct lapi_udpinfo_t *info);

/* What LAPI_GET_THREAD_FUNC returns: pointers, each to a function that returns 0 or an
 * errno value. */
typedef int (*lapi_mutex_lock_t)(lapi_handle_t hndl);
typedef int (*lapi_mutex_unlock_t)(lapi_handle_t hndl);
typedef int (*lapi_mutex_trylock_t)(lapi_handle_t hndl);
typedef int (*lapi_mutex_getowner_t)(lapi_handle_t hndl, pthread_t *tid);
typedef int (*lapi_cond_wait_t)(lapi_handle_t hndl, union lapi_cond_t *cond);
typedef int (*lapi_cond_timedwait_t)(lapi_handle_t hndl, union lapi_cond_t *cond, struct timespec *timeout);
typedef int (*lapi_cond_signal_t)(lapi_handle_t hndl, union lapi_cond_t *cond);
typedef int (*lapi_cond_init_t)(lapi_handle_t hndl, union lapi_cond_t *cond);
typedef int (*lapi_cond_destroy_t)(lapi_handle_t hndl, union lapi_cond_t *cond);

/*
 * Structures with two names for one field. Unnamed unions are no part of C99, but every
 * compiler has them.
 */

#if defined(__GNUC__)
#define LAPI_EITHER __extension__ union
#else
#define LAPI_EITHER union
#endif

/* Counts since LAPI_Init */
typedef struct lapi_statistics_t {
  lapi_long_t Tot_dup_pkt_cnt;     /* packets received twice */
  lapi_long_t Tot_retrans_pkt_cnt; /* packets sent again */
  lapi_long_t Tot_gho_pkt_cnt;     /* packets from no task of the job */
  lapi_long_t Tot_pkt_sent_cnt;
  LAPI_EITHER {
    lapi_long_t Tot_pkt_rcv_cnt;
    lapi_long_t Tot_pkt_recv_cnt;
  };
  lapi_long_t Tot_data_sent; /* bytes */
  LAPI_EITHER {
    lapi_long_t Tot_data_rcv; /* bytes */
    lapi_long_t Tot_data_recv;
  };
  lapi_long_t Tot_ack_send_cnt;
  lapi_long_t Tot_ack_recv_cnt;
} lapi_statistics_t;

/* LAPI_DGSP_PACK: gathers into a buffer. */
typedef struct lapi_pack_dgsp_t {
  lapi_util_type_t Util_type;
  LAPI_EITHER {
    lapi_dg_handle_t dgsp; /* the layout of in_buf */
    lapi_dg_handle_t dgsp_handle;
  };
  void *in_buf;
  ulong bytes;    /* how many to move */
  void *out_buf;  /* the buffer */
  ulong out_size; /* its size in bytes */
  ulong position; /* in and out: how far it is filled */
  lapi_usr_fcall_t in_usr_func;
  lapi_status_t status;
} lapi_pack_dgsp_t;

/* LAPI_DGSP_UNPACK: scatters from a buffer. */
typedef struct lapi_unpack_dgsp_t {
  lapi_util_type_t Util_type;
  LAPI_EITHER {
    lapi_dg_handle_t dgsp; /* the layout of out_buf */
    lapi_dg_handle_t dgsp_handle;
  };
  LAPI_EITHER {
    void *in_buf; /* the buffer */
    void *buf;
  };
  ulong in_size; /* its size in bytes */
  void *out_buf;
  ulong bytes;    /* how many to move */
  ulong position; /* in and out: how far the buffer is read */
  lapi_usr_fcall_t in_usr_func;
  lapi_status_t status;
} lapi_unpack_dgsp_t;

#undef LAPI_EITHER

#ifdef __cplusplus
}
#endif

/*
 * From here on generated from the Rust sources: error codes, structures, calls.
 */

#define LAPI_SUCCESS 0
#define LAPI_ERR_UNKNOWN 400
#define LAPI_ERR_ALL_HNDL_IN_USE 401
#define LAPI_ERR_BOTH_NETSTR_SET 402
#define LAPI_ERR_CKPT_LOAD_FAILED 403
#define LAPI_ERR_CSS_LOAD_FAILED 404
#define LAPI_ERR_INFO_NULL 405
#define LAPI_ERR_MSG_API 406
#define LAPI_ERR_NO_NETSTR_SET 407
#define LAPI_ERR_NO_UDP_HNDLR 408
#define LAPI_ERR_HDR_HNDLR_NULL 409
#define LAPI_ERR_PSS_NON_ROOT 410
#define LAPI_WARN_PARM_NULL 411
#define LAPI_ERR_SHM_KE_NOT_LOADED 412
#define LAPI_ERR_TIMEOUT 413
#define LAPI_ERR_REG_TIMER 414
#define LAPI_ERR_UDP_PKT_SZ 415
#define LAPI_ERR_USER_UDP_HNDLR_FAIL 416
#define LAPI_ERR_HNDL_INVALID 417
#define LAPI_ERR_RET_PTR_NULL 418
#define LAPI_ERR_ADDR_HNDL_RANGE 419
#define LAPI_ERR_ADDR_TBL_NULL 420
#define LAPI_ERR_TGT_PURGED 421
#define LAPI_ERR_MULTIPLE_WAITERS 422
#define LAPI_ERR_MEMORY_EXHAUSTED 423
#define LAPI_ERR_INFO_NONZERO 424
#define LAPI_ERR_ORG_ADDR_NULL 425
#define LAPI_ERR_TGT_ADDR_NULL 426
#define LAPI_ERR_DATA_LEN 427
#define LAPI_ERR_TGT 428
#define LAPI_ERR_UHDR_NULL 429
#define LAPI_ERR_UHDR_LEN 430
#define LAPI_ERR_HDR_LEN 431
#define LAPI_ERR_ORG_EXTENT 432
#define LAPI_ERR_ORG_STRIDE 433
#define LAPI_ERR_NO_CONNECTIVITY 434
#define LAPI_ERR_ADAPTERS_DOWN 435
#define LAPI_ERR_RECV_INCOMP 436
#define LAPI_ERR_SEND_INCOMP 437
#define LAPI_ERR_SEND_TIMEOUT 438
#define LAPI_ERR_SHM_SETUP 439
#define LAPI_ERR_ORG_VEC_ADDR 440
#define LAPI_ERR_ORG_VEC_LEN 441
#define LAPI_ERR_ORG_VEC_NULL 442
#define LAPI_ERR_ORG_VEC_TYPE 443
#define LAPI_ERR_STRIDE_ORG_VEC_ADDR_NULL 444
#define LAPI_ERR_STRIDE_TGT_VEC_ADDR_NULL 445
#define LAPI_ERR_TGT_EXTENT 446
#define LAPI_ERR_TGT_STRIDE 447
#define LAPI_ERR_TGT_VEC_ADDR 448
#define LAPI_ERR_TGT_VEC_LEN 449
#define LAPI_ERR_CKPT 450
#define LAPI_ERR_TGT_VEC_NULL 451
#define LAPI_ERR_TGT_VEC_TYPE 452
#define LAPI_ERR_VEC_NUM_DIFF 453
#define LAPI_ERR_VEC_TYPE_DIFF 454
#define LAPI_ERR_VEC_LEN_DIFF 455
#define LAPI_ERR_MSG_INFO_NULL 456
#define LAPI_ERR_POLLING_NET 457
#define LAPI_ERR_CNTR_NULL 458
#define LAPI_ERR_CNTR_VAL 459
#define LAPI_ERR_QUERY_TYPE 460
#define LAPI_ERR_IN_VAL_NULL 461
#define LAPI_ERR_RMW_OP 462
#define LAPI_ERR_TGT_VAR_NULL 463
#define LAPI_ERR_SET_VAL 464
#define LAPI_ERR_DGSP 465
#define LAPI_ERR_DGSP_ATOM 466
#define LAPI_ERR_DGSP_BRANCH 467
#define LAPI_ERR_DGSP_CTL 468
#define LAPI_ERR_DGSP_COPY_SZ 469
#define LAPI_ERR_DGSP_FREE 470
#define LAPI_ERR_DGSP_OPC 471
#define LAPI_ERR_DGSP_REPS 472
#define LAPI_ERR_DGSP_STACK 473
#define LAPI_ERR_OP_SZ 474
#define LAPI_ERR_UDP_PORT_INFO 475
#define LAPI_ERR_XFER_CMD 476
#define LAPI_ERR_UTIL_CMD 477
#define LAPI_ERR_CATALOG_FAIL 478
#define LAPI_ERR_PACK_SZ 479
#define LAPI_ERR_DGSP_OTHER 480
#define LAPI_ERR_UDP_SOCKET 481
#define LAPI_ERR_COLLECTIVE_PSS 482
#define LAPI_ERR_TGT_CONTEXT 492
#define LAPI_ERR_SRC_CONTEXT 493
#define LAPI_ERR_TGT_BUFHNDL 494
#define LAPI_ERR_SRC_BUFHNDL 495
#define LAPI_ERR_TGT_OFFSET 496
#define LAPI_ERR_SRC_OFFSET 497
#define LAPI_ERR_NO_RDMA_RESOURCE 498
#define LAPI_ERR_NO_ENV_VAR 510
#define LAPI_ERR_CODE_UNKNOWN 511
#define LAPI_ERR_XLATE_FAILED 513
#define LAPI_ERR_RDMA_RESOURCES 514
#define LAPI_ERR_LW_DATA_LEN 515
#define LAPI_ERR_NO_HNDLR_SET 516
#define LAPI_ERR_OFFSET_LEN 517
#define LAPI_ERR_INIT_FAILED LAPI_ERR_CSS_LOAD_FAILED
#define LAPI_ERR_BAD_PARAMETER LAPI_ERR_PSS_NON_ROOT
#define LAPI_WAIT_INTERRUPTED LAPI_ERR_ADDR_TBL_NULL
#define LAPI_ERR_PURGED_TASK LAPI_ERR_TGT_PURGED
#define LAPI_ERR_EXHAUSTED_MEMORY LAPI_ERR_MEMORY_EXHAUSTED
#define LAPI_ERR_NONZERO_INFO LAPI_ERR_INFO_NONZERO
#define LAPI_ERR_BAD_FIRST_PARM LAPI_ERR_ORG_ADDR_NULL
#define LAPI_ERR_BAD_SECOND_PARM LAPI_ERR_TGT_ADDR_NULL
#define LAPI_ERR_BAD_THIRD_PARM LAPI_ERR_DATA_LEN
#define LAPI_ERR_BAD_FOURTH_PARM LAPI_ERR_TGT
#define LAPI_ERR_BAD_FIFTH_PARM LAPI_ERR_UHDR_NULL
#define LAPI_ERR_BAD_SIXTH_PARM LAPI_ERR_UHDR_LEN
#define LAPI_ERR_BAD_SEVENTH_PARM LAPI_ERR_HDR_LEN
#define LAPI_ERR_BAD_EIGHTH_PARM LAPI_ERR_ORG_EXTENT
#define LAPI_ERR_BAD_NINTH_PARM LAPI_ERR_ORG_STRIDE

/* The UDP address of a task. */
typedef struct lapi_udp_t {
  /* In network order, as inet_addr gives it. */
  unsigned int ip_addr;
  /* In host order. */
  unsigned short port_no;
} lapi_udp_t;

/* How the tasks find each other by UDP where no launcher says it. */
typedef struct lapi_extend_t {
  /* A function that fills in the addresses, or null. */
  udp_init_hndlr *udp_hndlr;
  /* The addresses of all tasks, or null; read when udp_hndlr is null. */
  struct lapi_udp_t *add_udp_addrs;
  /* The length of add_udp_addrs or add_udp_ext_addrs. With udp_ext_hndlr the number of tasks. */
  unsigned int num_udp_addr;
  /* Keeps the next field 8-aligned. */
  unsigned int pad;
  /* Returns addresses of any family; read when both of the former are null, and num_udp_addr is
     not less than the number of tasks. */
  udp_init_ext_hndlr *udp_ext_hndlr;
  /* Addresses of any family; read when both of the former are null. */
  struct sockaddr_storage *add_udp_ext_addrs;
  /* Not used. */
  unsigned long reserve[8];
} lapi_extend_t;

/* The argument of LAPI_Init; to be zeroed before it is filled in. */
typedef struct lapi_info_t {
  /* Out: the device in use. In: LAPI_SHARE_PROTOCOL and the like, or 0. */
  lapi_dev_t protocol;
  /* In: the level of the library that the program is written for. */
  lapi_lib_t lib_vers;
  /* Not used. */
  unsigned int epoch_num;
  /* In: how many threads run completion handlers; 0 for the default. */
  int num_compl_hndlr_thr;
  /* In: the instance, 1 to 16; 0 for the next free one. */
  unsigned int instance_no;
  /* Must be 0. */
  int info6;
  /* In: the error handler, or null. */
  LAPI_err_hndlr *err_hndlr;
  /* In: how to start threads, or null. */
  com_thread_info_t *lapi_thread_attr;
  /* In: the name of an adapter, or null. */
  void *adapter_name;
  /* In: addresses for UDP, or null. */
  struct lapi_extend_t *add_info;
} lapi_info_t;

/* The inside of a counter from L2_LIB on. Addresses are 64 bits wide in 32-bit programs too. */
typedef struct lapi_cntr_record_t {
  /* The value. */
  int cntr;
  /* The library's own marks. */
  unsigned int flags;
  /* The thread that waits for the counter, 0 for none. */
  lapi_long_t waiter;
  /* The length of dest_list and dest_status. */
  int num_dest;
  /* Keeps the next field 8-aligned. */
  unsigned int pad;
  /* The address of LAPI_Setcntr_wstatus's dest_list, 0 for none. */
  lapi_long_t dest_list;
  /* The address of LAPI_Setcntr_wstatus's dest_status, 0 for none. */
  lapi_long_t dest_status;
  /* Not used. */
  lapi_long_t reserve[17];
} lapi_cntr_record_t;

/* A counter. A zeroed one is ready for use; cntr is its value.
   With L1_LIB only the first four bytes belong to LAPI: such programs may have allocated no more. */
typedef union lapi_cntr_t {
  /* The value. Programs read it without a call; LAPI changes it atomically. */
  int cntr;
  /* The whole counter, from L2_LIB on. */
  struct lapi_cntr_record_t record;
} lapi_cntr_t;

/* LAPI_Get, with a completion handler at the origin. */
typedef struct lapi_get_t {
  /* LAPI_GET_XFER */
  lapi_xfer_type_t Xfer_type;
  /* Bits such as LAPI_USE_BULK_XFER, or 0. */
  int flags;
  /* The target task. */
  unsigned int tgt;
  /* Keeps the next field 8-aligned. */
  unsigned int pad;
  /* The address at the target. */
  lapi_long_t tgt_addr;
  /* The address at the origin. */
  void *org_addr;
  /* The length in bytes. */
  unsigned long len;
  /* The address of the target's counter, or 0. */
  lapi_long_t tgt_cntr;
  /* The origin counter, or null. */
  union lapi_cntr_t *org_cntr;
  /* Called when all data has arrived, or null. */
  compl_hndlr_t *chndlr;
  /* The second argument of chndlr. */
  void *cinfo;
} lapi_get_t;

/* LAPI_Amsend, with a send completion handler. */
typedef struct lapi_am_t {
  /* LAPI_AM_XFER or LAPI_AM_LW_XFER */
  lapi_xfer_type_t Xfer_type;
  /* Bits such as LAPI_USE_BULK_XFER, or 0. */
  int flags;
  /* The target task. */
  unsigned int tgt;
  /* Keeps the next field 8-aligned. */
  unsigned int pad;
  /* The header handler: an index of LAPI_Addr_set, or an address at the target. */
  lapi_long_t hdr_hdl;
  /* The length of the user header in bytes. */
  unsigned int uhdr_len;
  /* Keeps the next field 8-aligned. */
  unsigned int pad2;
  /* The user header. */
  void *uhdr;
  /* The data. */
  void *udata;
  /* The length of the data in bytes. */
  unsigned long udata_len;
  /* Called when the origin data may be changed, or null. */
  scompl_hndlr_t *shdlr;
  /* The second argument of shdlr. */
  void *sinfo;
  /* The address of the target's counter, or 0. */
  lapi_long_t tgt_cntr;
  /* The origin counter, or null. */
  union lapi_cntr_t *org_cntr;
  /* The completion counter, or null. */
  union lapi_cntr_t *cmpl_cntr;
} lapi_am_t;

/* LAPI_Rmw or LAPI_Rmw64, with a send completion handler. */
typedef struct lapi_rmw_t {
  /* LAPI_RMW_XFER */
  lapi_xfer_type_t Xfer_type;
  /* The operation. */
  RMW_ops_t op;
  /* The target task. */
  unsigned int tgt;
  /* 32 or 64. */
  unsigned int size;
  /* The address of the variable at the target. */
  lapi_long_t tgt_var;
  /* What the operation takes; two values for COMPARE_AND_SWAP. */
  void *in_val;
  /* Where the former value goes, or null. */
  void *prev_tgt_val;
  /* The origin counter, or null. */
  union lapi_cntr_t *org_cntr;
  /* Called when the origin data may be changed, or null. */
  scompl_hndlr_t *shdlr;
  /* The second argument of shdlr. */
  void *sinfo;
} lapi_rmw_t;

/* LAPI_Put, with a send completion handler. */
typedef struct lapi_put_t {
  /* LAPI_PUT_XFER */
  lapi_xfer_type_t Xfer_type;
  /* Bits such as LAPI_USE_BULK_XFER, or 0. */
  int flags;
  /* The target task. */
  unsigned int tgt;
  /* Keeps the next field 8-aligned. */
  unsigned int pad;
  /* The address at the target. */
  lapi_long_t tgt_addr;
  /* The address at the origin. */
  void *org_addr;
  /* The length in bytes. */
  unsigned long len;
  /* Called when the origin data may be changed, or null. */
  scompl_hndlr_t *shdlr;
  /* The second argument of shdlr. */
  void *sinfo;
  /* The address of the target's counter, or 0. */
  lapi_long_t tgt_cntr;
  /* The origin counter, or null. */
  union lapi_cntr_t *org_cntr;
  /* The completion counter, or null. */
  union lapi_cntr_t *cmpl_cntr;
} lapi_put_t;

/* A list of buffers, or a strided one. */
typedef struct lapi_vec_t {
  /* The shape. */
  lapi_vectype_t vec_type;
  /* How many buffers, or how many blocks. */
  unsigned int num_vecs;
  /* The addresses; of a strided vector: base, block size, stride. */
  void **info;
  /* The lengths in bytes; not read of a strided vector. */
  unsigned long *len;
} lapi_vec_t;

/* LAPI_Getv, with a completion handler at the origin. */
typedef struct lapi_getv_t {
  /* LAPI_GETV_XFER */
  lapi_xfer_type_t Xfer_type;
  /* Bits such as LAPI_USE_BULK_XFER, or 0. */
  int flags;
  /* The target task. */
  unsigned int tgt;
  /* Keeps the next field 8-aligned. */
  unsigned int pad;
  /* The vector at the origin. */
  struct lapi_vec_t *org_vec;
  /* The target's vector: a lapi_vec_t with USE_TGT_VEC_TYPE, else a lapi_lvec_t. */
  void *tgt_vec;
  /* The address of the target's counter, or 0. */
  lapi_long_t tgt_cntr;
  /* The origin counter, or null. */
  union lapi_cntr_t *org_cntr;
  /* Called when all data has arrived, or null. */
  compl_hndlr_t *chndlr;
  /* The second argument of chndlr. */
  void *cinfo;
} lapi_getv_t;

/* LAPI_Putv, with a send completion handler. */
typedef struct lapi_putv_t {
  /* LAPI_PUTV_XFER */
  lapi_xfer_type_t Xfer_type;
  /* Bits such as LAPI_USE_BULK_XFER, or 0. */
  int flags;
  /* The target task. */
  unsigned int tgt;
  /* Keeps the next field 8-aligned. */
  unsigned int pad;
  /* Called when the origin data may be changed, or null. */
  scompl_hndlr_t *shdlr;
  /* The second argument of shdlr. */
  void *sinfo;
  /* The vector at the origin. */
  struct lapi_vec_t *org_vec;
  /* The target's vector: a lapi_vec_t with USE_TGT_VEC_TYPE, else a lapi_lvec_t. */
  void *tgt_vec;
  /* The address of the target's counter, or 0. */
  lapi_long_t tgt_cntr;
  /* The origin counter, or null. */
  union lapi_cntr_t *org_cntr;
  /* The completion counter, or null. */
  union lapi_cntr_t *cmpl_cntr;
} lapi_putv_t;

/* LAPI_Amsendv, with a send completion handler. */
typedef struct lapi_amv_t {
  /* LAPI_AMV_XFER */
  lapi_xfer_type_t Xfer_type;
  /* Bits such as LAPI_USE_BULK_XFER, or 0. */
  int flags;
  /* The target task. */
  unsigned int tgt;
  /* Keeps the next field 8-aligned. */
  unsigned int pad;
  /* The header handler: an index of LAPI_Addr_set, or an address at the target. */
  lapi_long_t hdr_hdl;
  /* The length of the user header in bytes. */
  unsigned int uhdr_len;
  /* Keeps the next field 8-aligned. */
  unsigned int pad2;
  /* The user header. */
  void *uhdr;
  /* Called when the origin data may be changed, or null. */
  scompl_hndlr_t *shdlr;
  /* The second argument of shdlr. */
  void *sinfo;
  /* The vector at the origin. */
  struct lapi_vec_t *org_vec;
  /* The address of the target's counter, or 0. */
  lapi_long_t tgt_cntr;
  /* The origin counter, or null. */
  union lapi_cntr_t *org_cntr;
  /* The completion counter, or null. */
  union lapi_cntr_t *cmpl_cntr;
} lapi_amv_t;

/* An active message whose data is gathered by a DGSP. */
typedef struct lapi_amdgsp_t {
  /* LAPI_DGSP_XFER */
  lapi_xfer_type_t Xfer_type;
  /* Bits such as LAPI_USE_BULK_XFER, or 0. */
  int flags;
  /* The target task. */
  unsigned int tgt;
  /* Keeps the next field 8-aligned. */
  unsigned int pad;
  /* The header handler: an index of LAPI_Addr_set, or an address at the target. */
  lapi_long_t hdr_hdl;
  /* The length of the user header in bytes. */
  unsigned int uhdr_len;
  /* Keeps the next field 8-aligned. */
  unsigned int pad2;
  /* The user header. */
  void *uhdr;
  /* The data. */
  void *udata;
  /* The length of the data in bytes. */
  unsigned long udata_len;
  /* Called when the origin data may be changed, or null. */
  scompl_hndlr_t *shdlr;
  /* The second argument of shdlr. */
  void *sinfo;
  /* The address of the target's counter, or 0. */
  lapi_long_t tgt_cntr;
  /* The origin counter, or null. */
  union lapi_cntr_t *org_cntr;
  /* The completion counter, or null. */
  union lapi_cntr_t *cmpl_cntr;
  /* The layout of the data. */
  lapi_dg_handle_t dgsp;
  /* Not used. */
  lapi_status_t status;
} lapi_amdgsp_t;

/* A direct transfer between registered memory; later level. */
typedef struct lapi_hwxfer_t {
  /* LAPI_RDMA_XFER */
  lapi_xfer_type_t Xfer_type;
  /* The target task. */
  unsigned int tgt;
  /* Bits such as LAPI_RDMA_GET. */
  unsigned short op;
  /* The program's own mark. */
  lapi_rdma_tag_t rdma_tag;
  /* The context at the target. */
  lapi_user_cxt_t remote_cxt;
  /* The memory at the origin. */
  lapi_user_pvo_t src_pvo;
  /* The memory at the target. */
  lapi_user_pvo_t tgt_pvo;
  /* Bytes into src_pvo. */
  unsigned int src_offset;
  /* Bytes into tgt_pvo. */
  unsigned int tgt_offset;
  /* The length in bytes. */
  unsigned long len;
  /* The origin counter, or null. */
  union lapi_cntr_t *org_cntr;
  /* Called when the transfer is complete, or null. */
  scompl_hndlr_t *shdlr;
  /* The second argument of shdlr. */
  void *sinfo;
} lapi_hwxfer_t;

/* A later form of the active message, of which only the size is kept. */
typedef struct lapi_amx_t {
  /* LAPI_AMX_XFER */
  lapi_xfer_type_t Xfer_type;
  /* Bits such as LAPI_USE_BULK_XFER, or 0. */
  int flags;
  /* The target task. */
  unsigned int tgt;
  /* Keeps the next field 8-aligned. */
  unsigned int pad;
  /* The header handler: an index of LAPI_Addr_set, or an address at the target. */
  lapi_long_t hdr_hdl;
  /* The length of the user header in bytes. */
  unsigned int uhdr_len;
  /* Keeps the next field 8-aligned. */
  unsigned int pad2;
  /* The user header. */
  void *uhdr;
  /* The data. */
  void *udata;
  /* The length of the data in bytes. */
  unsigned long udata_len;
  /* Called when the origin data may be changed, or null. */
  scompl_hndlr_t *shdlr;
  /* The second argument of shdlr. */
  void *sinfo;
  /* The address of the target's counter, or 0. */
  lapi_long_t tgt_cntr;
  /* The origin counter, or null. */
  union lapi_cntr_t *org_cntr;
  /* The completion counter, or null. */
  union lapi_cntr_t *cmpl_cntr;
  /* Not used. */
  lapi_long_t reserve[3];
} lapi_amx_t;

/* One transfer; Xfer_type says which member it is. */
typedef union lapi_xfer_t {
  /* The first field of every member. */
  lapi_xfer_type_t Xfer_type;
  /* LAPI_GET_XFER */
  struct lapi_get_t Get;
  /* LAPI_AM_XFER, LAPI_AM_LW_XFER */
  struct lapi_am_t Am;
  /* LAPI_RMW_XFER */
  struct lapi_rmw_t Rmw;
  /* LAPI_PUT_XFER */
  struct lapi_put_t Put;
  /* LAPI_GETV_XFER */
  struct lapi_getv_t Getv;
  /* LAPI_PUTV_XFER */
  struct lapi_putv_t Putv;
  /* LAPI_AMV_XFER */
  struct lapi_amv_t Amv;
  /* LAPI_DGSP_XFER */
  struct lapi_amdgsp_t Dgsp;
  /* LAPI_RDMA_XFER */
  struct lapi_hwxfer_t HwXfer;
  /* LAPI_AMX_XFER */
  struct lapi_amx_t Amx;
} lapi_xfer_t;

/* A program and what LAPI must know of it. */
typedef struct lapi_dgsp_descr_t {
  /* The program. */
  int *code;
  /* The program's length in ints. */
  int code_size;
  /* How deep GOSUBs nest, the main program included. */
  int depth;
  /* Where the layout has gaps. */
  lapi_dgsp_density_t density;
  /* How many bytes one run moves. */
  long size;
  /* The distance in bytes from one run to the next. */
  long extent;
  /* The offset of the lowest byte. */
  long lext;
  /* The offset behind the highest byte. */
  long rext;
  /* A packet holds a multiple of this many bytes; 0 for any. */
  int atom_size;
} lapi_dgsp_descr_t;

/* Registers a DGSP. */
typedef struct lapi_reg_dgsp_t {
  /* LAPI_REGISTER_DGSP */
  lapi_util_type_t Util_type;
  /* In: the program; LAPI makes a copy. */
  struct lapi_dgsp_descr_t *idgsp;
  /* Out: its handle. */
  lapi_dg_handle_t dgsp_handle;
  /* For debugging only. */
  lapi_usr_fcall_t in_usr_func;
  /* Not used. */
  lapi_status_t status;
} lapi_reg_dgsp_t;

/* Takes a reference to a registered DGSP away. */
typedef struct lapi_dref_dgsp_t {
  /* LAPI_UNRESERVE_DGSP */
  lapi_util_type_t Util_type;
  /* In: the handle. */
  lapi_dg_handle_t dgsp_handle;
  /* For debugging only. */
  lapi_usr_fcall_t in_usr_func;
  /* Not used. */
  lapi_status_t status;
} lapi_dref_dgsp_t;

/* Adds a reference to a registered DGSP. */
typedef struct lapi_resv_dgsp_t {
  /* LAPI_RESERVE_DGSP */
  lapi_util_type_t Util_type;
  /* In: the handle. */
  lapi_dg_handle_t dgsp_handle;
  /* For debugging only. */
  lapi_usr_fcall_t in_usr_func;
  /* Not used. */
  lapi_status_t status;
} lapi_resv_dgsp_t;

/* Sets the function for CONTROL instructions. */
typedef struct lapi_reg_ddm_t {
  /* LAPI_REG_DDM_FUNC */
  lapi_util_type_t Util_type;
  /* In: the function, or null. */
  ddm_func_t *ddm_func;
  /* For debugging only. */
  lapi_usr_fcall_t in_usr_func;
  /* Not used. */
  lapi_status_t status;
} lapi_reg_ddm_t;

/* Gives a task a new UDP address. */
typedef struct lapi_add_udp_port_t {
  /* LAPI_ADD_UDP_DEST_PORT or LAPI_ADD_UDP_DEST_EXT */
  lapi_util_type_t Util_type;
  /* In: the task. */
  unsigned int tgt;
  /* In: its address; with LAPI_ADD_UDP_DEST_EXT a struct sockaddr_storage. */
  struct lapi_udp_t *udp_port;
  /* In: the instance. */
  unsigned int instance_no;
  /* For debugging only. */
  lapi_usr_fcall_t in_usr_func;
  /* Not used. */
  lapi_status_t status;
} lapi_add_udp_port_t;

/* Out: the functions of the context's lock. */
typedef struct lapi_thread_func_t {
  /* LAPI_GET_THREAD_FUNC */
  lapi_util_type_t Util_type;
  /* Takes the lock. */
  lapi_mutex_lock_t mutex_lock;
  /* Releases the lock. */
  lapi_mutex_unlock_t mutex_unlock;
  /* Takes the lock if it is free. */
  lapi_mutex_trylock_t mutex_trylock;
  /* Says who holds the lock. */
  lapi_mutex_getowner_t mutex_getowner;
  /* Waits for a condition. */
  lapi_cond_wait_t cond_wait;
  /* Waits for a condition until a time. */
  lapi_cond_timedwait_t cond_timedwait;
  /* Wakes one thread that waits. */
  lapi_cond_signal_t cond_signal;
  /* Sets up a condition. */
  lapi_cond_init_t cond_init;
  /* Takes down a condition. */
  lapi_cond_destroy_t cond_destroy;
} lapi_thread_func_t;

/* Registers memory for RDMA; later level. */
typedef struct lapi_get_pvo_t {
  /* LAPI_XLATE_ADDRESS */
  lapi_util_type_t Util_type;
  /* In: bytes. */
  unsigned int length;
  /* In or out: the registered memory. */
  lapi_user_pvo_t usr_pvo;
  /* In: its address. */
  void *address;
  /* In: LAPI_RDMA_ACQUIRE or LAPI_RDMA_RELEASE. */
  unsigned int operation;
} lapi_get_pvo_t;

/* Takes an RDMA context of another task; later level. */
typedef struct lapi_remote_cxt_t {
  /* LAPI_REMOTE_RCXT */
  lapi_util_type_t Util_type;
  /* In: LAPI_RDMA_ACQUIRE or LAPI_RDMA_RELEASE. */
  unsigned int operation;
  /* In: the task. */
  int dest;
  /* In or out: the context. */
  lapi_user_cxt_t usr_rcxt;
} lapi_remote_cxt_t;

/* One request; Util_type says which member it is. */
typedef union lapi_util_t {
  /* The first field of every member. */
  lapi_util_type_t Util_type;
  /* LAPI_REGISTER_DGSP */
  struct lapi_reg_dgsp_t RegDgsp;
  /* LAPI_UNRESERVE_DGSP */
  struct lapi_dref_dgsp_t DrefDgsp;
  /* LAPI_RESERVE_DGSP */
  struct lapi_resv_dgsp_t ResvDgsp;
  /* LAPI_REG_DDM_FUNC */
  struct lapi_reg_ddm_t DdmFunc;
  /* LAPI_ADD_UDP_DEST_PORT */
  struct lapi_add_udp_port_t Udp;
  /* LAPI_DGSP_PACK */
  lapi_pack_dgsp_t PackDgsp;
  /* LAPI_DGSP_UNPACK */
  lapi_unpack_dgsp_t UnpackDgsp;
  /* LAPI_GET_THREAD_FUNC */
  struct lapi_thread_func_t ThreadFunc;
  /* LAPI_XLATE_ADDRESS */
  struct lapi_get_pvo_t Xlate;
  /* LAPI_REMOTE_RCXT */
  struct lapi_remote_cxt_t RemoteCxt;
} lapi_util_t;

/* What LAPI_Msgpoll returns. */
typedef struct lapi_msg_info_t {
  /* What has happened. */
  lapi_msg_state_t status;
  /* Not used. */
  unsigned long reserve[10];
} lapi_msg_info_t;

/* A vector whose addresses have 64 bits in 32-bit programs too. */
typedef struct lapi_lvec_t {
  /* The shape. */
  lapi_vectype_t vec_type;
  /* How many buffers, or how many blocks. */
  unsigned int num_vecs;
  /* The addresses; of a strided vector: base, block size, stride. */
  lapi_long_t *info;
  /* The lengths in bytes; not read of a strided vector. */
  unsigned long *len;
} lapi_lvec_t;

/* What msg_len of a header handler points at (the manual's chapter 11, enhanced header
   handler interface). */
typedef struct lapi_return_info_t {
  /* In: the length of the message in bytes. */
  unsigned long msg_len;
  /* Marks a whole structure; not to be changed. */
  int MAGIC;
  /* Out: how to run the completion handler. */
  lapi_ret_flags_t ret_flags;
  /* Out: what to do with the message. */
  lapi_ctl_flags_t ctl_flags;
  /* Out: the layout of the buffer, or null for contiguous. */
  lapi_dg_handle_t dgsp_handle;
  /* Out: how many bytes to deliver when dgsp_handle is set. */
  unsigned long bytes;
  /* In: the task that has sent the message. */
  int src;
  /* In: the data, if it has come in one packet; null otherwise. */
  void *udata_one_pkt_ptr;
  /* Out: how many bytes of the layout to leave out at its start. */
  unsigned long recv_offset_dgsp_bytes;
} lapi_return_info_t;

/* What a send completion handler gets. */
typedef struct lapi_sh_info_t {
  /* The target of the message. */
  unsigned int src;
  /* LAPI_SUCCESS or what went wrong. */
  unsigned int reason;
  /* Not used. */
  unsigned long reserve[6];
} lapi_sh_info_t;

/* What a udp_init_hndlr gets about the job. */
typedef struct lapi_udpinfo_t {
  /* The task that asks. */
  unsigned int task_id;
  /* The number of tasks in the job. */
  unsigned int tot_num_tasks;
  /* The number of tasks whose addresses are asked for. */
  unsigned int num_tasks;
  /* The instance, from 1. */
  unsigned int instance_no;
  /* Not used. */
  unsigned long reserve[10];
} lapi_udpinfo_t;

/* Moves one run of bytes. */
typedef struct lapi_dgsm_copy_t {
  /* LAPI_DGSM_COPY */
  lapi_dgsm_opcode_t opcode;
  /* How many bytes. */
  long bytes;
  /* From where. */
  long offset;
} lapi_dgsm_copy_t;

/* One run of an MCOPY. */
typedef struct lapi_dgsm_block_t {
  /* From where. */
  long block_disp;
  /* How many bytes. */
  long block_len;
} lapi_dgsm_block_t;

/* Moves several runs of bytes. */
typedef struct lapi_dgsm_mcopy_t {
  /* LAPI_DGSM_MCOPY */
  lapi_dgsm_opcode_t opcode;
  /* How many blocks follow. */
  int count;
  /* The first of them. */
  struct lapi_dgsm_block_t block[1];
} lapi_dgsm_mcopy_t;

/* Runs a part of the program several times. Places count in ints, from this instruction on. */
typedef struct lapi_dgsm_gosub_t {
  /* LAPI_DGSM_GOSUB */
  lapi_dgsm_opcode_t opcode;
  /* Where the part starts. */
  int to_loc;
  /* Where to go on afterwards. */
  int ret_loc;
  /* How often. */
  long reps;
  /* The base of the first run, in bytes. */
  long offset;
  /* The distance between runs, in bytes. */
  long stride;
} lapi_dgsm_gosub_t;

/* Ends a program or a part of one. */
typedef struct lapi_dgsm_iterate_t {
  /* LAPI_DGSM_ITERATE */
  lapi_dgsm_opcode_t opcode;
  /* Where what it ends has started, in ints from this instruction on. */
  int iter_loc;
} lapi_dgsm_iterate_t;

/* Hands every run that follows to the function of LAPI_REG_DDM_FUNC. */
typedef struct lapi_dgsm_control_t {
  /* LAPI_DGSM_CONTROL */
  lapi_dgsm_opcode_t opcode;
  /* Passed on to the function; LAPI_DGSM_NO_CTL ends the mode. */
  int operation;
  /* Passed on to the function. */
  int operand;
} lapi_dgsm_control_t;

/* A condition to be used with a context's lock (LAPI_GET_THREAD_FUNC); set up by cond_init. */
typedef union lapi_cond_t {
  /* Room for a condition of the thread library. */
  pthread_cond_t cond;
  /* The size, fixed. */
  lapi_long_t reserve[8];
} lapi_cond_t;

#ifdef __cplusplus
extern "C" {
#endif /* __cplusplus */

/* Starts a context and returns its handle in hndl. Sets protocol of lapi_info, which
   may be freed afterwards with everything that it points to. */
int LAPI_Init(lapi_handle_t *hndl, struct lapi_info_t *lapi_info);

/* Ends a context; its handle is invalid afterwards. */
int LAPI_Term(lapi_handle_t hndl);

/* Queries an attribute of the context. What ret_val points to, and how large that is,
   depends on query. */
int LAPI_Qenv(lapi_handle_t hndl, lapi_query_t query, int *ret_val);

/* Sets an attribute of the context. */
int LAPI_Senv(lapi_handle_t hndl, lapi_query_t query, int set_val);

/* Writes the text of an error code into a buffer of LAPI_MAX_ERR_STRING bytes.
   Needs no context. */
int LAPI_Msg_string(int error_code, void *buf);

/* Enters an address in the table under an index; 0 < addr_hndl < LOC_ADDRTBL_SZ. */
int LAPI_Addr_set(lapi_handle_t hndl, void *addr, int addr_hndl);

/* Returns an address of the table. */
int LAPI_Addr_get(lapi_handle_t hndl, void **addr, int addr_hndl);

/* Returns the address of a variable; for Fortran. Needs no context. */
int LAPI_Address(void *my_addr, unsigned long *ret_addr);

/* Collective: every task gives an address and gets those of all, by task. */
int LAPI_Address_init(lapi_handle_t hndl, void *my_addr, void **add_tab);

/* LAPI_Address_init with addresses of 64 bits in 32-bit programs too. */
int LAPI_Address_init64(lapi_handle_t hndl, lapi_long_t my_addr, lapi_long_t *add_tab);

/* Copies len bytes to the memory of the target. Does not wait; the counters
   show its progress. */
int LAPI_Put(lapi_handle_t hndl,
             unsigned int tgt,
             unsigned long len,
             void *tgt_addr,
             void *org_addr,
             union lapi_cntr_t *tgt_cntr,
             union lapi_cntr_t *org_cntr,
             union lapi_cntr_t *cmpl_cntr);

/* Copies len bytes from the memory of the target. Does not wait; the counters
   show its progress. */
int LAPI_Get(lapi_handle_t hndl,
             unsigned int tgt,
             unsigned long len,
             void *tgt_addr,
             void *org_addr,
             union lapi_cntr_t *tgt_cntr,
             union lapi_cntr_t *org_cntr);

/* Sends an active message: the header handler hdr_hdl, an address at the target or an
   index of LAPI_Addr_set, runs there and returns where udata goes. Does not wait. */
int LAPI_Amsend(lapi_handle_t hndl,
                unsigned int tgt,
                void *hdr_hdl,
                void *uhdr,
                unsigned int uhdr_len,
                void *udata,
                unsigned long udata_len,
                union lapi_cntr_t *tgt_cntr,
                union lapi_cntr_t *org_cntr,
                union lapi_cntr_t *cmpl_cntr);

/* Reads, changes and writes an int of the target in one step. Does not wait. */
int LAPI_Rmw(lapi_handle_t hndl,
             RMW_ops_t op,
             unsigned int tgt,
             int *tgt_var,
             int *in_val,
             int *prev_tgt_val,
             union lapi_cntr_t *org_cntr);

/* Reads, changes and writes a long long of the target in one step. Does not wait. */
int LAPI_Rmw64(lapi_handle_t hndl,
               RMW_ops_t op,
               unsigned int tgt,
               long long *tgt_var,
               long long *in_val,
               long long *prev_tgt_val,
               union lapi_cntr_t *org_cntr);

/* Starts the transfer that a structure describes; Xfer_type is its kind.
   Does not wait. */
int LAPI_Xfer(lapi_handle_t hndl, union lapi_xfer_t *xfer_cmd);

/* Registers DGSPs and packs by them, returns the functions of the lock, sets UDP
   addresses; Util_type is the kind. */
int LAPI_Util(lapi_handle_t hndl, union lapi_util_t *util_cmd);

/* Reads a counter. */
int LAPI_Getcntr(lapi_handle_t hndl, union lapi_cntr_t *cntr, int *val);

/* Sets a counter. */
int LAPI_Setcntr(lapi_handle_t hndl, union lapi_cntr_t *cntr, int val);

/* Waits until a counter has reached val and subtracts val from it; cur_cntr_val gets
   the rest and may be null. */
int LAPI_Waitcntr(lapi_handle_t hndl, union lapi_cntr_t *cntr, int val, int *cur_cntr_val);

/* Lets messages make progress. */
int LAPI_Probe(lapi_handle_t hndl);

/* Lets messages make progress, at most cnt times, until one is complete; info shows
   what has completed. */
int LAPI_Msgpoll(lapi_handle_t hndl, unsigned int cnt, struct lapi_msg_info_t *info);

/* Waits until all operations of this task are complete at their targets. */
int LAPI_Fence(lapi_handle_t hndl);

/* Collective: LAPI_Fence in every task, and a barrier. */
int LAPI_Gfence(lapi_handle_t hndl);

/* LAPI_Amsend of a vector. Does not wait. */
int LAPI_Amsendv(lapi_handle_t hndl,
                 unsigned int tgt,
                 void *hdr_hdl,
                 void *uhdr,
                 unsigned int uhdr_len,
                 struct lapi_vec_t *org_vec,
                 union lapi_cntr_t *tgt_cntr,
                 union lapi_cntr_t *org_cntr,
                 union lapi_cntr_t *cmpl_cntr);

/* LAPI_Put of a vector; tgt_vec is in this task and holds addresses of the target.
   Does not wait. */
int LAPI_Putv(lapi_handle_t hndl,
              unsigned int tgt,
              struct lapi_vec_t *tgt_vec,
              struct lapi_vec_t *org_vec,
              union lapi_cntr_t *tgt_cntr,
              union lapi_cntr_t *org_cntr,
              union lapi_cntr_t *cmpl_cntr);

/* LAPI_Get of a vector; tgt_vec is in this task and holds addresses of the target.
   Does not wait. */
int LAPI_Getv(lapi_handle_t hndl,
              unsigned int tgt,
              struct lapi_vec_t *tgt_vec,
              struct lapi_vec_t *org_vec,
              union lapi_cntr_t *tgt_cntr,
              union lapi_cntr_t *org_cntr);

/* Waits for a counter without polling, and subtracts val from it. */
int LAPI_Nopoll_wait(lapi_handle_t hndl, union lapi_cntr_t *cntr_ptr, int val, int *cur_cntr_val);

/* Drops all operations to a task that has failed. */
int LAPI_Purge_totask(lapi_handle_t hndl, unsigned int dest);

/* Allows operations to a task that was purged. */
int LAPI_Resume_totask(lapi_handle_t hndl, unsigned int dest);

/* Sets a counter to 0 and gives it a list of tasks; dest_status shows the state of
   each (LAPI_MSG_INITIAL etc.). */
int LAPI_Setcntr_wstatus(lapi_handle_t hndl,
                         union lapi_cntr_t *cntr,
                         int num_dest,
                         unsigned int *dest_list,
                         int *dest_status);

int PLAPI_Init(lapi_handle_t *hndl, struct lapi_info_t *lapi_info);

int PLAPI_Term(lapi_handle_t hndl);

int PLAPI_Qenv(lapi_handle_t hndl, lapi_query_t query, int *ret_val);

int PLAPI_Senv(lapi_handle_t hndl, lapi_query_t query, int set_val);

int PLAPI_Msg_string(int error_code, void *buf);

int PLAPI_Addr_set(lapi_handle_t hndl, void *addr, int addr_hndl);

int PLAPI_Addr_get(lapi_handle_t hndl, void **addr, int addr_hndl);

int PLAPI_Address(void *my_addr, unsigned long *ret_addr);

int PLAPI_Address_init(lapi_handle_t hndl, void *my_addr, void **add_tab);

int PLAPI_Address_init64(lapi_handle_t hndl, lapi_long_t my_addr, lapi_long_t *add_tab);

int PLAPI_Put(lapi_handle_t hndl,
              unsigned int tgt,
              unsigned long len,
              void *tgt_addr,
              void *org_addr,
              union lapi_cntr_t *tgt_cntr,
              union lapi_cntr_t *org_cntr,
              union lapi_cntr_t *cmpl_cntr);

int PLAPI_Get(lapi_handle_t hndl,
              unsigned int tgt,
              unsigned long len,
              void *tgt_addr,
              void *org_addr,
              union lapi_cntr_t *tgt_cntr,
              union lapi_cntr_t *org_cntr);

int PLAPI_Amsend(lapi_handle_t hndl,
                 unsigned int tgt,
                 void *hdr_hdl,
                 void *uhdr,
                 unsigned int uhdr_len,
                 void *udata,
                 unsigned long udata_len,
                 union lapi_cntr_t *tgt_cntr,
                 union lapi_cntr_t *org_cntr,
                 union lapi_cntr_t *cmpl_cntr);

int PLAPI_Rmw(lapi_handle_t hndl,
              RMW_ops_t op,
              unsigned int tgt,
              int *tgt_var,
              int *in_val,
              int *prev_tgt_val,
              union lapi_cntr_t *org_cntr);

int PLAPI_Rmw64(lapi_handle_t hndl,
                RMW_ops_t op,
                unsigned int tgt,
                long long *tgt_var,
                long long *in_val,
                long long *prev_tgt_val,
                union lapi_cntr_t *org_cntr);

int PLAPI_Xfer(lapi_handle_t hndl, union lapi_xfer_t *xfer_cmd);

int PLAPI_Util(lapi_handle_t hndl, union lapi_util_t *util_cmd);

int PLAPI_Getcntr(lapi_handle_t hndl, union lapi_cntr_t *cntr, int *val);

int PLAPI_Setcntr(lapi_handle_t hndl, union lapi_cntr_t *cntr, int val);

int PLAPI_Waitcntr(lapi_handle_t hndl, union lapi_cntr_t *cntr, int val, int *cur_cntr_val);

int PLAPI_Probe(lapi_handle_t hndl);

int PLAPI_Msgpoll(lapi_handle_t hndl, unsigned int cnt, struct lapi_msg_info_t *info);

int PLAPI_Fence(lapi_handle_t hndl);

int PLAPI_Gfence(lapi_handle_t hndl);

int PLAPI_Amsendv(lapi_handle_t hndl,
                  unsigned int tgt,
                  void *hdr_hdl,
                  void *uhdr,
                  unsigned int uhdr_len,
                  struct lapi_vec_t *org_vec,
                  union lapi_cntr_t *tgt_cntr,
                  union lapi_cntr_t *org_cntr,
                  union lapi_cntr_t *cmpl_cntr);

int PLAPI_Putv(lapi_handle_t hndl,
               unsigned int tgt,
               struct lapi_vec_t *tgt_vec,
               struct lapi_vec_t *org_vec,
               union lapi_cntr_t *tgt_cntr,
               union lapi_cntr_t *org_cntr,
               union lapi_cntr_t *cmpl_cntr);

int PLAPI_Getv(lapi_handle_t hndl,
               unsigned int tgt,
               struct lapi_vec_t *tgt_vec,
               struct lapi_vec_t *org_vec,
               union lapi_cntr_t *tgt_cntr,
               union lapi_cntr_t *org_cntr);

int PLAPI_Nopoll_wait(lapi_handle_t hndl, union lapi_cntr_t *cntr_ptr, int val, int *cur_cntr_val);

int PLAPI_Purge_totask(lapi_handle_t hndl, unsigned int dest);

int PLAPI_Resume_totask(lapi_handle_t hndl, unsigned int dest);

int PLAPI_Setcntr_wstatus(lapi_handle_t hndl,
                          union lapi_cntr_t *cntr,
                          int num_dest,
                          unsigned int *dest_list,
                          int *dest_status);

#ifdef __cplusplus
}  /* extern "C" */
#endif  /* __cplusplus */

#endif  /* LAPI_H */

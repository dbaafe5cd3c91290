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

/* GM 2.0 at source level, on OpenLAPI. See gm(7).
 *
 * Written from a description of what programs need. */
#ifndef OPENLAPI_GM_H
#define OPENLAPI_GM_H

#include <ctype.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Versions of the interface. A program may choose one before it includes this file. */
#define GM_API_VERSION_1_0 0x100
#define GM_API_VERSION_1_1 0x101
#define GM_API_VERSION_1_2 0x102
#define GM_API_VERSION_1_3 0x103
#define GM_API_VERSION_1_4 0x104
#define GM_API_VERSION_1_5 0x105
#define GM_API_VERSION_1_6 0x106
#define GM_API_VERSION_2_0 0x200
#define GM_API_VERSION_2_0_6 0x20006
#define GM_API_VERSION_2_0_12 0x2000c
#define GM_API_VERSION_2_0_16 0x20010
#ifndef GM_API_VERSION
#define GM_API_VERSION GM_API_VERSION_2_0_16
#endif

#define GM_MAX_HOST_NAME_LEN 128
#define GM_MAX_PORT_NAME_LEN 32
#define GM_NO_SUCH_NODE_ID 0
#define GM_ENTRY_POINT
#define GM_NUM_ELEM(array) (sizeof(array) / sizeof(*(array)))
#define GM_POWER_OF_TWO(n) (!((n) & ((n)-1)))

/* 1: the network forms of numbers are structures, so that one cannot forget to convert them. */
#ifndef GM_STRONG_TYPES
#define GM_STRONG_TYPES 1
#endif

#ifdef __cplusplus
extern "C" {
#endif

enum gm_api_version {
    gm_api_version_1_0 = GM_API_VERSION_1_0,
    gm_api_version_1_1 = GM_API_VERSION_1_1,
    gm_api_version_1_2 = GM_API_VERSION_1_2,
    gm_api_version_1_3 = GM_API_VERSION_1_3,
    gm_api_version_1_4 = GM_API_VERSION_1_4,
    gm_api_version_1_5 = GM_API_VERSION_1_5,
    gm_api_version_1_6 = GM_API_VERSION_1_6,
    gm_api_version_2_0 = GM_API_VERSION_2_0,
    gm_api_version_2_0_6 = GM_API_VERSION_2_0_6,
    gm_api_version_2_0_12 = GM_API_VERSION_2_0_12,
    gm_api_version_2_0_16 = GM_API_VERSION_2_0_16
};

typedef uint8_t gm_u8_t;
typedef uint16_t gm_u16_t;
typedef uint32_t gm_u32_t;
typedef uint64_t gm_u64_t;
typedef int8_t gm_s8_t;
typedef int16_t gm_s16_t;
typedef int32_t gm_s32_t;
typedef int64_t gm_s64_t;
typedef unsigned long gm_size_t;
typedef unsigned long gm_offset_t;
typedef uintptr_t gm_up_t;
typedef gm_u64_t gm_remote_ptr_t;

/* The network forms: in the byte order of the machine. */
#if GM_STRONG_TYPES
#define GM_OPENLAPI_NETWORK(type, form) typedef struct { type n; } form
#define GM_OPENLAPI_TO_HOST(value) ((value).n)
#define GM_OPENLAPI_TO_NETWORK(form) form network; network.n = value; return network
#else
#define GM_OPENLAPI_NETWORK(type, form) typedef type form
#define GM_OPENLAPI_TO_HOST(value) (value)
#define GM_OPENLAPI_TO_NETWORK(form) return value
#endif
#define GM_OPENLAPI_FORM(type, name)                                                          \
    GM_OPENLAPI_NETWORK(gm_##type##_t, gm_##type##_n_t);                                      \
    static inline gm_##type##_t gm_ntoh_##name(gm_##type##_n_t value) { return GM_OPENLAPI_TO_HOST(value); } \
    static inline gm_##type##_n_t gm_hton_##name(gm_##type##_t value) { GM_OPENLAPI_TO_NETWORK(gm_##type##_n_t); }

GM_OPENLAPI_FORM(u8, u8)
GM_OPENLAPI_FORM(u16, u16)
GM_OPENLAPI_FORM(u32, u32)
GM_OPENLAPI_FORM(u64, u64)
GM_OPENLAPI_FORM(s8, s8)
GM_OPENLAPI_FORM(s16, s16)
GM_OPENLAPI_FORM(s32, s32)
GM_OPENLAPI_FORM(s64, s64)
GM_OPENLAPI_FORM(size, size)
GM_OPENLAPI_FORM(offset, offset)
GM_OPENLAPI_FORM(up, up)
GM_OPENLAPI_FORM(remote_ptr, remote_ptr)
#undef GM_OPENLAPI_FORM

static inline void *gm_ntohp(gm_up_n_t value) { return (void *)gm_ntoh_up(value); }
static inline gm_up_n_t gm_htonp(const void *value) { return gm_hton_up((gm_up_t)value); }

/* Old names. */
#define gm_ntohc(value) gm_ntoh_u8(value)
#define gm_ntohs(value) gm_ntoh_u16(value)
#define gm_ntohl(value) gm_ntoh_u32(value)
#define gm_ntohll(value) gm_ntoh_u64(value)
#define gm_htonc(value) gm_hton_u8(value)
#define gm_htons(value) gm_hton_u16(value)
#define gm_htonl(value) gm_hton_u32(value)
#define gm_htonll(value) gm_hton_u64(value)

enum gm_priority { GM_LOW_PRIORITY = 0, GM_HIGH_PRIORITY = 1, GM_NUM_PRIORITIES = 2 };

typedef enum gm_status {
    GM_SUCCESS = 0,
    GM_FAILURE = 1,
    GM_INPUT_BUFFER_TOO_SMALL = 2,
    GM_OUTPUT_BUFFER_TOO_SMALL = 3,
    GM_TRY_AGAIN = 4,
    GM_BUSY = 5,
    GM_MEMORY_FAULT = 6,
    GM_INTERRUPTED = 7,
    GM_INVALID_PARAMETER = 8,
    GM_OUT_OF_MEMORY = 9,
    GM_INVALID_COMMAND = 10,
    GM_PERMISSION_DENIED = 11,
    GM_INTERNAL_ERROR = 12,
    GM_UNATTACHED = 13,
    GM_UNSUPPORTED_DEVICE = 14,
    GM_SEND_TIMED_OUT = 15,
    GM_SEND_REJECTED = 16,
    GM_SEND_TARGET_PORT_CLOSED = 17,
    GM_SEND_TARGET_NODE_UNREACHABLE = 18,
    GM_SEND_DROPPED = 19,
    GM_SEND_PORT_CLOSED = 20,
    GM_NODE_ID_NOT_YET_SET = 21,
    GM_STILL_SHUTTING_DOWN = 22,
    GM_CLONE_BUSY = 23,
    GM_NO_SUCH_DEVICE = 24,
    GM_ABORTED = 25,
    GM_INCOMPATIBLE_LIB_AND_DRIVER = 26,
    GM_UNTRANSLATED_SYSTEM_ERROR = 27,
    GM_ACCESS_DENIED = 28,
    GM_TIMED_OUT = 35,
    GM_INVALID_PORT_NUMBER = 42
} gm_status_t;

enum gm_recv_event_type {
    GM_NO_RECV_EVENT = 0,
    GM_ALARM_EVENT = 2,
    GM_SENT_EVENT = 3,
    GM_RECV_EVENT = 11,
    GM_HIGH_RECV_EVENT = 12,
    GM_PEER_RECV_EVENT = 13,
    GM_HIGH_PEER_RECV_EVENT = 14,
    GM_FAST_RECV_EVENT = 15,
    GM_FAST_HIGH_RECV_EVENT = 16,
    GM_FAST_PEER_RECV_EVENT = 17,
    GM_FAST_HIGH_PEER_RECV_EVENT = 18
};

struct gm_port;
typedef struct gm_port gm_port_t;

typedef union gm_recv_event {
    struct {
        gm_up_n_t message;
        gm_up_n_t buffer;
        gm_u32_n_t length;
        gm_u16_n_t sender_node_id;
        gm_u8_n_t tag;
        gm_u8_n_t size;
        gm_u8_n_t sender_port_id;
        gm_u8_n_t type;
        gm_u8_n_t reserved[6];
    } recv;
    struct {
        gm_up_n_t message_list;
        gm_up_n_t reserved;
        gm_u8_n_t more[9];
        gm_u8_n_t type;
        gm_u8_n_t rest[6];
    } sent;
} gm_recv_event_t;

#define GM_RECV_EVENT_TYPE(event) gm_ntoh_u8((event)->recv.type)

typedef void (*gm_send_completion_callback_t)(struct gm_port *port, void *context, gm_status_t status);

typedef struct gm_alarm {
    void (*callback)(void *);
    void *context;
    struct gm_port *port;
    gm_u64_t reserved[5];
} gm_alarm_t;

struct gm_mutex;

extern unsigned long GM_PAGE_LEN;

/* Ports: gm_open(3). */
gm_status_t gm_init(void);
void gm_finalize(void);
gm_status_t gm_open(struct gm_port **port, unsigned int unit, unsigned int number, const char *name,
                    enum gm_api_version version);
void gm_close(struct gm_port *port);
unsigned int gm_get_port_id(struct gm_port *port);
unsigned int gm_num_ports(struct gm_port *port);

/* Nodes: gm_names(3). */
gm_status_t gm_get_node_id(struct gm_port *port, unsigned int *node);
gm_status_t gm_get_host_name(struct gm_port *port, char name[GM_MAX_HOST_NAME_LEN]);
gm_status_t gm_node_id_to_unique_id(struct gm_port *port, unsigned int node, char unique[6]);
gm_status_t gm_unique_id_to_node_id(struct gm_port *port, char unique[6], unsigned int *node);
gm_status_t gm_max_node_id(struct gm_port *port, unsigned int *node);
gm_status_t gm_max_node_id_in_use(struct gm_port *port, unsigned int *node);
gm_status_t gm_global_id_to_node_id(struct gm_port *port, unsigned int global, unsigned int *node);
gm_status_t gm_node_id_to_global_id(struct gm_port *port, unsigned int node, unsigned int *global);
gm_status_t gm_node_id_to_host_name_ex(struct gm_port *port, unsigned int usec, unsigned int node,
                                       char (*name)[GM_MAX_HOST_NAME_LEN + 1]);
gm_status_t gm_host_name_to_node_id_ex(struct gm_port *port, unsigned int usec, const char *name,
                                       unsigned int *node);
unsigned int gm_host_name_to_node_id(struct gm_port *port, char *name);
char *gm_node_id_to_host_name(struct gm_port *port, unsigned int node);

/* Messages: gm_send(3). */
void gm_send_with_callback(struct gm_port *port, void *message, unsigned int size, gm_size_t length,
                           unsigned int priority, unsigned int node, unsigned int target,
                           gm_send_completion_callback_t callback, void *context);
void gm_send_to_peer_with_callback(struct gm_port *port, void *message, unsigned int size, gm_size_t length,
                                   unsigned int priority, unsigned int node,
                                   gm_send_completion_callback_t callback, void *context);
void gm_send(struct gm_port *port, void *message, unsigned int size, gm_size_t length, unsigned int priority,
             unsigned int node, unsigned int target);
void gm_send_to_peer(struct gm_port *port, void *message, unsigned int size, gm_size_t length,
                     unsigned int priority, unsigned int node);
void gm_datagram_send(struct gm_port *port, void *message, unsigned int size, gm_size_t length,
                      unsigned int priority, unsigned int node, unsigned int target,
                      gm_send_completion_callback_t callback, void *context);
void gm_resume_sending(struct gm_port *port, unsigned int priority, unsigned int node, unsigned int target,
                       gm_send_completion_callback_t callback, void *context);
void gm_drop_sends(struct gm_port *port, unsigned int priority, unsigned int node, unsigned int target,
                   gm_send_completion_callback_t callback, void *context);
unsigned int gm_num_send_tokens(struct gm_port *port);
int gm_alloc_send_token(struct gm_port *port, unsigned int priority);
int gm_send_token_available(struct gm_port *port, unsigned int priority);
void gm_free_send_token(struct gm_port *port, unsigned int priority);
void gm_free_send_tokens(struct gm_port *port, unsigned int priority, unsigned int count);
unsigned int gm_mtu(struct gm_port *port);

/* Puts and gets: gm_put(3). */
void gm_put(struct gm_port *port, void *local, gm_remote_ptr_t remote, gm_size_t length, enum gm_priority priority,
            unsigned int node, unsigned int target, gm_send_completion_callback_t callback, void *context);
void gm_directed_send_with_callback(struct gm_port *port, void *local, gm_remote_ptr_t remote, gm_size_t length,
                                    enum gm_priority priority, unsigned int node, unsigned int target,
                                    gm_send_completion_callback_t callback, void *context);
void gm_directed_send(struct gm_port *port, void *local, gm_remote_ptr_t remote, gm_size_t length,
                      enum gm_priority priority, unsigned int node, unsigned int target);
void gm_get(struct gm_port *port, gm_remote_ptr_t remote, void *local, gm_size_t length, enum gm_priority priority,
            unsigned int node, unsigned int target, gm_send_completion_callback_t callback, void *context);
gm_status_t gm_allow_remote_memory_access(struct gm_port *port);

/* Buffers and events: gm_receive(3). */
void gm_provide_receive_buffer(struct gm_port *port, void *buffer, unsigned int size, unsigned int priority);
void gm_provide_receive_buffer_with_tag(struct gm_port *port, void *buffer, unsigned int size,
                                        unsigned int priority, unsigned int tag);
gm_status_t gm_set_acceptable_sizes(struct gm_port *port, enum gm_priority priority, gm_size_t mask);
gm_recv_event_t *gm_receive(struct gm_port *port);
gm_recv_event_t *gm_blocking_receive(struct gm_port *port);
gm_recv_event_t *gm_blocking_receive_no_spin(struct gm_port *port);
void gm_unknown(struct gm_port *port, gm_recv_event_t *event);
int gm_receive_pending(struct gm_port *port);
int gm_next_event_peek(struct gm_port *port, gm_u16_t *sender);
void *gm_memorize_message(void *message, void *buffer, unsigned int length);
unsigned int gm_num_receive_tokens(struct gm_port *port);
unsigned int gm_min_message_size(struct gm_port *port);
unsigned int gm_min_size_for_length(gm_size_t length);
gm_size_t gm_max_length_for_size(unsigned int size);

/* Memory: gm_memory(3). */
gm_status_t gm_register_memory(struct gm_port *port, void *start, gm_size_t length);
gm_status_t gm_deregister_memory(struct gm_port *port, void *start, gm_size_t length);
void *gm_dma_malloc(struct gm_port *port, gm_size_t length);
void *gm_dma_calloc(struct gm_port *port, gm_size_t count, gm_size_t length);
void gm_dma_free(struct gm_port *port, void *memory);
void *gm_alloc_pages(gm_size_t length);
void gm_free_pages(void *memory, gm_size_t length);
void *gm_page_alloc(void);
void gm_page_free(void *page);

/* Alarms and time: gm_alarm(3). */
void gm_initialize_alarm(gm_alarm_t *alarm);
void gm_set_alarm(struct gm_port *port, gm_alarm_t *alarm, gm_u64_t usec, void (*callback)(void *), void *context);
void gm_cancel_alarm(gm_alarm_t *alarm);
void gm_flush_alarm(struct gm_port *port);
gm_u64_t gm_ticks(struct gm_port *port);

/* Helpers: gm_helpers(3). */
char *gm_strerror(gm_status_t status);
void gm_perror(const char *message, gm_status_t status);
void gm_exit(gm_status_t status);
void gm_abort(void);
void gm_on_exit(void (*callback)(gm_status_t status, void *argument), void *argument);
unsigned int gm_rand_mod(unsigned int modulus);
unsigned long gm_log2_roundup(unsigned long number);
unsigned long gm_crc(const void *memory, gm_size_t length);
unsigned long gm_crc_str(const char *string);
void gm_hex_dump(const void *memory, gm_size_t length);
struct gm_mutex *gm_create_mutex(void);
void gm_destroy_mutex(struct gm_mutex *mutex);
void gm_mutex_enter(struct gm_mutex *mutex);
void gm_mutex_exit(struct gm_mutex *mutex);
int gm_rand(void);
void gm_srand(unsigned int seed);
unsigned int gm_sleep(unsigned int seconds);
int gm_getpid(void);
int gm_isprint(int character);
void *gm_malloc(gm_size_t length);
void *gm_calloc(gm_size_t count, gm_size_t length);
void gm_free(void *memory);
void gm_bzero(void *memory, gm_size_t length);
void gm_bcopy(const void *from, void *to, gm_size_t length);
void *gm_memset(void *memory, int value, gm_size_t length);
int gm_memcmp(const void *one, const void *other, gm_size_t length);
gm_size_t gm_strlen(const char *string);
int gm_strcmp(const char *one, const char *other);
int gm_strncmp(const char *one, const char *other, int length);
int gm_strncasecmp(const char *one, const char *other, int length);
char *gm_strncpy(char *to, const char *from, int length);
char *gm_strdup(const char *string);

static inline int gm_printf(const char *format, ...) {
    va_list arguments;
    int written;
    va_start(arguments, format);
    written = vprintf(format, arguments);
    va_end(arguments);
    return written;
}

static inline int gm_eprintf(const char *format, ...) {
    va_list arguments;
    int written;
    va_start(arguments, format);
    written = vfprintf(stderr, format, arguments);
    va_end(arguments);
    return written;
}

#ifdef __cplusplus
}
#endif

#endif

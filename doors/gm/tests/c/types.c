/* Compiled with other versions and without strong types: what must be there, and be so. */
#include "gm.h"

#if GM_API_VERSION < GM_API_VERSION_1_0 || GM_API_VERSION_2_0_16 <= GM_API_VERSION_2_0_12
#error the versions are in order
#endif
#if !defined(EXPECTED) || GM_API_VERSION != EXPECTED
#error a version of the program, or the last one
#endif

#define SAME(name, condition) typedef char name[(condition) ? 1 : -1]
SAME(word, sizeof(gm_u32_n_t) == 4 && sizeof(gm_u64_n_t) == 8 && sizeof(gm_up_n_t) == sizeof(void *));
SAME(event, sizeof(gm_recv_event_t) == 2 * sizeof(void *) + 16);
SAME(statuses, GM_SEND_TIMED_OUT == 15 && GM_ACCESS_DENIED == 28 && GM_TIMED_OUT == 35 && GM_INVALID_PORT_NUMBER == 42);
SAME(events, GM_ALARM_EVENT == 2 && GM_SENT_EVENT == 3 && GM_RECV_EVENT == 11 && GM_FAST_HIGH_PEER_RECV_EVENT == 18);
SAME(sizes, sizeof(gm_size_t) == sizeof(long) && sizeof(gm_remote_ptr_t) == 8);

GM_ENTRY_POINT int main(void) {
    int x = 5;
    gm_u8_t c = gm_ntohc(gm_htonc(200));
    gm_u16_t s = gm_ntohs(gm_htons(60000));
    gm_u32_t l = gm_ntohl(gm_htonl(4000000000U));
    gm_u64_t ll = gm_ntohll(gm_htonll(1ULL << 63));
    gm_s8_t sc = gm_ntoh_s8(gm_hton_s8(-5));
    gm_s16_t ss = gm_ntoh_s16(gm_hton_s16(-500));
    gm_s32_t sl = gm_ntoh_s32(gm_hton_s32(-50000));
    gm_s64_t sll = gm_ntoh_s64(gm_hton_s64(-5000000000LL));
#if !GM_STRONG_TYPES
    gm_u32_n_t plain = 7;
    x += (int)plain - 7;
#endif
    return !(c == 200 && s == 60000 && l == 4000000000U && ll == 1ULL << 63 && sc == -5 && ss == -500 && sl == -50000 &&
             sll == -5000000000LL && gm_ntohp(gm_htonp(&x)) == (void *)&x && x == 5);
}

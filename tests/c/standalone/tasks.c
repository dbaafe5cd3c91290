/*
 * Tasks that no launcher has started, and that know each other's addresses. tasks WAY CASE
 * ADDRESSES [MORE]
 *
 * WAY is how LAPI_Init gets them:
 *
 *   list      add_udp_addrs, with num_udp_addr
 *   unsized   add_udp_addrs alone, as the program of the manual has it
 *   handler   udp_hndlr, which returns them; the list beside it is wrong
 *   exchange  udp_hndlr, which writes where LAPI receives to files in the folder ADDRESSES, and reads those of the others there
 *   short     add_udp_addrs, in a structure that ends behind num_udp_addr, at the end of readable memory
 *   fails     udp_hndlr, which returns 17
 *   neither   lapi_extend_t has neither
 *   ext       add_udp_ext_addrs, with num_udp_addr; "extshort" without it, which does not count as a list
 *   exthandler, extexchange   udp_ext_hndlr, as above
 *   none      there is no lapi_extend_t
 *
 * CASE is what happens then:
 *
 *   all       every task communicates with every other one
 *   again     the same several times, each time with a new context
 *   code N    LAPI_Init returns N
 *   alone     task 0 needs task 1, with which no connection can be made
 *   ahead     the same, after this task has called LAPI_Term and LAPI_Init again
 *   restart A  task 1 is killed, and another process takes its place, at the address A; that one has the word "again" behind, and
 *              sends first
 *   moved A F  the same, but that one sends nothing before it has been sent something; the others know of the death when the file F exists
 *   forked    the same with a second context, while a child of the process lives
 *   util      the return codes of LAPI_ADD_UDP_DEST_PORT and LAPI_ADD_UDP_DEST_EXT
 *
 * An address is 192.0.2.1:7000 or [2001:db8::1]:7000.
 */
#include "../common/ltest.h"

#include <arpa/inet.h>
#include <signal.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/wait.h>

enum { MOST = 16, LARGE = 200000, TIMES = 5 };

static lapi_udp_t addresses[MOST];
static struct sockaddr_storage any[MOST];
static uint listed;
static const char *folder;
static int asked, tasks;

static unsigned char from[LARGE], into[MOST][LARGE];
static lapi_cntr_t arrived[MOST], cmpl, fetched, greeted;
static int number;
static volatile int lost = -1, code;

static lapi_udp_t address(const char *text, size_t length) {
    char copy[32], *port;
    lapi_udp_t found;
    CHECK(length < sizeof copy);
    memcpy(copy, text, length);
    copy[length] = 0;
    port = strchr(copy, ':');
    CHECK(port != NULL);
    *port = 0;
    found.ip_addr = inet_addr(copy);
    found.port_no = (in_port_t)atoi(port + 1);
    return found;
}

static struct sockaddr_storage any_address(const char *text, size_t length) {
    char copy[64], *port;
    struct sockaddr_storage found;
    struct sockaddr_in *four = (struct sockaddr_in *)&found;
    struct sockaddr_in6 *six = (struct sockaddr_in6 *)&found;
    CHECK(length < sizeof copy);
    memcpy(copy, text, length);
    copy[length] = 0;
    bzero(&found, sizeof found);
    port = strrchr(copy, ':');
    CHECK(port != NULL);
    *port++ = 0;
    if (copy[0] == '[') {
        CHECK(port[-2] == ']');
        port[-2] = 0;
        six->sin6_family = AF_INET6;
        six->sin6_port = htons((in_port_t)atoi(port));
        CHECK_EQ(inet_pton(AF_INET6, copy + 1, &six->sin6_addr), 1);
    } else {
        four->sin_family = AF_INET;
        four->sin_port = htons((in_port_t)atoi(port));
        CHECK_EQ(inet_pton(AF_INET, copy, &four->sin_addr), 1);
    }
    return found;
}

static void read_addresses(const char *text) {
    for (listed = 0; *text; listed++) {
        size_t length = strcspn(text, ",");
        CHECK(listed < MOST);
        any[listed] = any_address(text, length);
        if (text[0] != '[') addresses[listed] = address(text, length);
        text += length + (text[length] == ',');
    }
}

static int handler(lapi_handle_t *hndl, lapi_udp_t *local, lapi_udp_t *list, lapi_udpinfo_t *info) {
    uint task;
    CHECK(hndl != NULL && local->ip_addr != 0 && local->port_no != 0);
    CHECK_EQ(info->task_id, atoi(getenv("MP_CHILD")));
    CHECK_EQ(info->tot_num_tasks, tasks);
    CHECK_EQ(info->num_tasks, tasks);
    CHECK_EQ(info->instance_no, 1);
    asked++;
    for (task = 0; task < info->num_tasks; task++) list[task] = addresses[task];
    return 0;
}

static int any_handler(lapi_handle_t *hndl, struct sockaddr_storage *local, struct sockaddr_storage *list,
                       lapi_udpinfo_t *info) {
    uint task;
    CHECK(hndl != NULL && (local->ss_family == AF_INET || local->ss_family == AF_INET6));
    CHECK_EQ(info->task_id, atoi(getenv("MP_CHILD")));
    CHECK_EQ(info->num_tasks, tasks);
    asked++;
    for (task = 0; task < info->num_tasks; task++) list[task] = any[task];
    return 0;
}

static int failing(lapi_handle_t *hndl, lapi_udp_t *local, lapi_udp_t *list, lapi_udpinfo_t *info) {
    (void)hndl, (void)local, (void)list, (void)info;
    return 17;
}

/* Gives this task's address, of `size` bytes, to the others, and gets theirs. */
static void exchange(const void *local, void *list, size_t size, const lapi_udpinfo_t *info) {
    char name[256], temporary[300];
    uint task;
    FILE *file;
    asked++;
    snprintf(name, sizeof name, "%s/task%u", folder, info->task_id);
    snprintf(temporary, sizeof temporary, "%s.new", name);
    file = fopen(temporary, "w");
    CHECK(file != NULL);
    CHECK_EQ(fwrite(local, size, 1, file), 1);
    CHECK_EQ(fclose(file), 0);
    CHECK_EQ(rename(temporary, name), 0);
    for (task = 0; task < info->num_tasks; task++) {
        int waited = 0;
        snprintf(name, sizeof name, "%s/task%u", folder, task);
        while ((file = fopen(name, "r")) == NULL) {
            CHECK_FOR(waited++ < 60000, "task %u has not written %s", task, name);
            usleep(1000);
        }
        CHECK_EQ(fread((char *)list + task * size, size, 1, file), 1);
        fclose(file);
    }
}

static int exchanging(lapi_handle_t *hndl, lapi_udp_t *local, lapi_udp_t *list, lapi_udpinfo_t *info) {
    (void)hndl;
    exchange(local, list, sizeof *local, info);
    return 0;
}

static int any_exchanging(lapi_handle_t *hndl, struct sockaddr_storage *local, struct sockaddr_storage *list,
                          lapi_udpinfo_t *info) {
    (void)hndl;
    exchange(local, list, sizeof *local, info);
    return 0;
}

static void on_error(lapi_handle_t *hndl, int *error, lapi_err_t *type, int *task, int *src) {
    (void)hndl, (void)type, (void)task;
    code = *error;
    lost = *src;
}

/* What the man page says must be cleared is; the structure for addresses is as the
 * program has it. */
static void prepare(const char *way, lapi_info_t *info, lapi_extend_t *room) {
    static lapi_udp_t wrong[MOST];
    bzero(info, sizeof *info);
    info->lib_vers = LAST_LIB;
    info->err_hndlr = on_error;
    info->add_info = room;
    memset(room, 0xa5, sizeof *room);
    room->udp_hndlr = NULL;
    room->add_udp_addrs = addresses;
    room->num_udp_addr = listed;
    if (strcmp(way, "unsized") == 0) {
        room->num_udp_addr = 0;
    } else if (strcmp(way, "handler") == 0) {
        room->udp_hndlr = (udp_init_hndlr *)handler;
        room->add_udp_addrs = wrong;
    } else if (strcmp(way, "exchange") == 0) {
        room->udp_hndlr = (udp_init_hndlr *)exchanging;
        room->add_udp_addrs = NULL;
        room->num_udp_addr = 0;
    } else if (strcmp(way, "fails") == 0) {
        room->udp_hndlr = (udp_init_hndlr *)failing;
    } else if (strcmp(way, "neither") == 0) {
        room->add_udp_addrs = NULL;
        room->num_udp_addr = 0;
    } else if (strncmp(way, "ext", 3) == 0) {
        room->add_udp_addrs = NULL;
        room->num_udp_addr = strcmp(way, "extshort") == 0 ? 0 : strcmp(way, "ext") == 0 ? listed : (uint)tasks;
        room->udp_ext_hndlr = strcmp(way, "exthandler") == 0    ? (udp_init_ext_hndlr *)any_handler
                              : strcmp(way, "extexchange") == 0 ? (udp_init_ext_hndlr *)any_exchanging
                                                                : NULL;
        room->add_udp_ext_addrs = room->udp_ext_hndlr == NULL ? any : NULL;
    } else if (strcmp(way, "none") == 0) {
        info->add_info = NULL;
    } else if (strcmp(way, "short") == 0) {
        size_t length = offsetof(lapi_extend_t, num_udp_addr) + sizeof room->num_udp_addr, page = 4096;
        char *pages = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        CHECK(pages != MAP_FAILED);
        length = (length + 7) / 8 * 8;
        memcpy(pages + page - length, room, length);
        CHECK_EQ(mprotect(pages + page, page, PROT_NONE), 0);
        info->add_info = (lapi_extend_t *)(pages + page - length);
    } else {
        CHECK_EQ(strcmp(way, "list"), 0);
    }
}

/* From each task to each other one: data, and one added to a number there. */
static void everybody(uint64_t seed) {
    int task, one = 1, before;
    for (task = 0; task < t_tasks; task++) {
        if (task == t_me) continue;
        t_fill(from, LARGE, seed * MOST + (uint64_t)t_me);
        OK(LAPI_Put(t_hndl, (uint)task, LARGE, into[t_me], from, &arrived[t_me], NULL, &cmpl));
        t_wait_exact(&cmpl, 1);
        OK(LAPI_Rmw(t_hndl, FETCH_AND_ADD, (uint)task, &number, &one, &before, &fetched));
        t_wait_exact(&fetched, 1);
        CHECK(before >= 0);
    }
    for (task = 0; task < t_tasks; task++) {
        if (task == t_me) continue;
        t_wait_exact(&arrived[task], 1);
        CHECK_FILLED(into[task], LARGE, seed * MOST + (uint64_t)task);
    }
    t_fence();
    CHECK_EQ(number, t_tasks - 1);
    number = 0;
    t_fence();
}

static void util_codes(const char *more) {
    lapi_add_udp_port_t command;
    struct sockaddr_storage strange;
    lapi_udp_t other = address(more, strlen(more)), own = addresses[0];
    bzero(&command, sizeof command);
    command.Util_type = LAPI_ADD_UDP_DEST_PORT;
    command.udp_port = &other;
    command.tgt = (uint)t_tasks;
    RETURNS(LAPI_Util(t_hndl, (lapi_util_t *)&command), LAPI_ERR_TGT);
    command.tgt = (uint)t_me;
    RETURNS(LAPI_Util(t_hndl, (lapi_util_t *)&command), LAPI_ERR_TGT);
    command.tgt = (uint)(1 - t_me);
    command.udp_port = NULL;
    RETURNS(LAPI_Util(t_hndl, (lapi_util_t *)&command), LAPI_ERR_UDP_PORT_INFO);
    other.port_no = 0;
    command.udp_port = &other;
    RETURNS(LAPI_Util(t_hndl, (lapi_util_t *)&command), LAPI_ERR_UDP_PORT_INFO);
    /* Then the two would share a host. */
    other.ip_addr = t_me == 0 ? own.ip_addr : addresses[1].ip_addr;
    other.port_no = 9;
    RETURNS(LAPI_Util(t_hndl, (lapi_util_t *)&command), LAPI_ERR_UDP_PORT_INFO);
    command.Util_type = LAPI_ADD_UDP_DEST_EXT;
    bzero(&strange, sizeof strange);
    command.udp_port = (lapi_udp_t *)&strange;
    RETURNS(LAPI_Util(t_hndl, (lapi_util_t *)&command), LAPI_ERR_UDP_PORT_INFO);
    strange.ss_family = AF_UNIX;
    RETURNS(LAPI_Util(t_hndl, (lapi_util_t *)&command), LAPI_ERR_UDP_PORT_INFO);
    strange = any_address("[2001:db8::1]:9", 15);
    RETURNS(LAPI_Util(t_hndl, (lapi_util_t *)&command), LAPI_ERR_UDP_PORT_INFO);
    command.udp_port = NULL;
    RETURNS(LAPI_Util(t_hndl, (lapi_util_t *)&command), LAPI_ERR_UDP_PORT_INFO);
    strange = any[1 - t_me];
    command.udp_port = (lapi_udp_t *)&strange;
    OK(LAPI_Util(t_hndl, (lapi_util_t *)&command));
    command.Util_type = LAPI_ADD_UDP_DEST_PORT;
    command.udp_port = &other;
    /* A connection that is up stays as it is. */
    t_fence();
    other = addresses[1 - t_me];
    OK(LAPI_Util(t_hndl, (lapi_util_t *)&command));
    RETURNS(LAPI_Util(t_hndl + 100, (lapi_util_t *)&command), LAPI_ERR_HNDL_INVALID);
    t_fence();
}

static void send_to_all(int again) {
    int task;
    for (task = 0; task < t_tasks; task++) {
        if (task == 1) continue;
        t_fill(from, LARGE, (uint64_t)(again + 1));
        OK(LAPI_Put(t_hndl, (uint)task, LARGE, into[1], from, &arrived[1], NULL, &cmpl));
        t_wait_exact(&cmpl, 1);
    }
}

/* Task 1 dies at the end of the first part. */
static void victim(int again, int first) {
    int task;
    if (first) send_to_all(again);
    for (task = 0; task < t_tasks; task++) {
        if (task == 1) continue;
        t_wait_exact(&arrived[task], 1);
        CHECK_FILLED(into[task], LARGE, (uint64_t)(100 * again + task));
    }
    if (!first) send_to_all(again);
    if (!again) {
        t_wait_exact(&greeted, t_tasks - 1);
        kill(getpid(), SIGKILL);
    }
    t_fence();
}

/* Waits until task 1 is known to have died: by what waits for it, or by a file that the
 * test makes. */
static void await_death(const char *file) {
    int waited = 0;
    if (file != NULL) {
        for (; access(file, F_OK) != 0; usleep(1000)) CHECK_FOR(waited++ < 60000, "there is no %s", file);
        return;
    }
    lost = -1;
    while (lost != 1) {
        if (LAPI_Put(t_hndl, 1, LARGE, into[t_me], from, NULL, NULL, NULL) != LAPI_SUCCESS) usleep(1000);
        LAPI_Fence(t_hndl);
    }
    CHECK(code == LAPI_ERR_NO_CONNECTIVITY || code == LAPI_ERR_TIMEOUT);
}

static void survivor(const char *more, const char *file) {
    lapi_add_udp_port_t command;
    struct sockaddr_storage place = any_address(more, strlen(more));
    lapi_udp_t four;
    int again;
    if (more[0] != '[') four = address(more, strlen(more));
    for (again = 0; again <= 1; again++) {
        t_fill(from, LARGE, (uint64_t)(100 * again + t_me));
        OK(LAPI_Put(t_hndl, 1, LARGE, into[t_me], from, &arrived[t_me], NULL, &cmpl));
        t_wait_exact(&cmpl, 1);
        t_wait_exact(&arrived[1], 1);
        CHECK_FILLED(into[1], LARGE, (uint64_t)(again + 1));
        if (again) break;
        OK(LAPI_Put(t_hndl, 1, 0, NULL, NULL, &greeted, NULL, &cmpl));
        t_wait_exact(&cmpl, 1);
        await_death(file);
        OK(LAPI_Purge_totask(t_hndl, 1));
        bzero(&command, sizeof command);
        command.Util_type = more[0] == '[' ? LAPI_ADD_UDP_DEST_EXT : LAPI_ADD_UDP_DEST_PORT;
        command.tgt = 1;
        command.udp_port = more[0] == '[' ? (lapi_udp_t *)&place : &four;
        OK(LAPI_Util(t_hndl, (lapi_util_t *)&command));
        OK(LAPI_Setcntr(t_hndl, &cmpl, 0));
        OK(LAPI_Resume_totask(t_hndl, 1));
    }
    t_fence();
}

int main(int argc, char **argv) {
    lapi_info_t info;
    lapi_extend_t room;
    const char *way, *what, *more;
    int time, again;
    CHECK(argc >= 4);
    way = argv[1];
    what = argv[2];
    more = argc > 4 ? argv[4] : "";
    again = argc > 5 && strcmp(argv[5], "again") == 0;
    tasks = atoi(getenv("MP_PROCS"));
    if (strstr(way, "exchange") != NULL) folder = argv[3];
    else read_addresses(argv[3]);
    prepare(way, &info, &room);
    if (strcmp(what, "code") == 0) {
        RETURNS(LAPI_Init(&t_hndl, &info), atoi(more));
        printf("PASS %s\n", getenv("MP_CHILD"));
        return 0;
    }
    t_init_with(&info);
    CHECK_EQ(t_tasks, tasks);
    CHECK_EQ(asked, strstr(way, "handler") != NULL || strstr(way, "exchange") != NULL);
    /* The program's again, as the man page says. */
    if (strcmp(what, "util") != 0 && strcmp(what, "again") != 0 && strcmp(what, "forked") != 0 &&
        strcmp(what, "ahead") != 0) {
        memset(addresses, 0xee, sizeof addresses);
        memset(any, 0xee, sizeof any);
        memset(&room, 0x77, sizeof room);
    }
    if (strcmp(what, "all") == 0) {
        everybody(1);
    } else if (strcmp(what, "again") == 0) {
        for (time = 0; time < TIMES; time++) {
            /* Tasks that have had no contact when some of them begin again: fences are
             * between others. */
            int next = (t_me + 3) % t_tasks;
            OK(LAPI_Put(t_hndl, (uint)next, 0, NULL, NULL, &greeted, NULL, &cmpl));
            t_wait_exact(&cmpl, 1);
            t_wait_exact(&greeted, 1);
            t_fence();
            if (t_me == time % t_tasks) usleep(100000);
            OK(LAPI_Term(t_hndl));
            prepare(way, &info, &room);
            t_init_with(&info);
        }
        everybody(2);
    } else if (strcmp(what, "forked") == 0) {
        int status;
        pid_t child = fork();
        CHECK(child >= 0);
        if (child == 0) {
            sleep(60);
            _exit(0);
        }
        everybody(1);
        OK(LAPI_Term(t_hndl));
        /* Its port is free. */
        t_init_with(&info);
        everybody(2);
        CHECK_EQ(kill(child, SIGKILL), 0);
        CHECK_EQ(waitpid(child, &status, 0), child);
        CHECK(WIFSIGNALED(status));
    } else if (strcmp(what, "alone") == 0 || strcmp(what, "ahead") == 0) {
        if (strcmp(what, "ahead") == 0) {
            OK(LAPI_Term(t_hndl));
            prepare(way, &info, &room);
            t_init_with(&info);
            puts("AHEAD");
            fflush(stdout);
        }
        OK(LAPI_Put(t_hndl, (uint)(1 - t_me), 0, NULL, NULL, NULL, NULL, &cmpl));
        while (lost < 0) LAPI_Fence(t_hndl);
        CHECK_EQ(lost, 1 - t_me);
        CHECK_EQ(code, LAPI_ERR_NO_CONNECTIVITY);
        OK(LAPI_Term(t_hndl));
        t_pass();
        return 0;
    } else if (strcmp(what, "restart") == 0) {
        if (t_me == 1) victim(again, 1);
        else survivor(more, NULL);
    } else if (strcmp(what, "moved") == 0) {
        if (t_me == 1) victim(again, 0);
        else survivor(more, argv[5]);
    } else {
        CHECK_EQ(strcmp(what, "util"), 0);
        util_codes(more);
    }
    t_done();
    return 0;
}

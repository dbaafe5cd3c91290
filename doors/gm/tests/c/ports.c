/* What a port is by itself: its opening, its events and threads, tokens, alarms, names, and the
 * helpers. */
#include "cases.h"
#include <dirent.h>
#include <sys/wait.h>

/* gm_open: units, numbers, versions, and a port that is taken. */
void case_open(void) {
    struct gm_port *port = NULL, *again = NULL;
    unsigned node, highest;
    CHECK(gm_open(&port, 0, 0, "x", gm_api_version_2_0) == GM_BUSY);
    CHECK(gm_open(&port, 0, 1, "x", gm_api_version_1_0) == GM_BUSY);
    CHECK(gm_open(&port, 0, 3, "x", gm_api_version_1_6) == GM_BUSY);
    CHECK(gm_open(&port, 0, port_of(task), "x", gm_api_version_2_0_12) == GM_BUSY);
    CHECK(gm_open(&port, 1, 7, "x", gm_api_version_2_0_16) == GM_NO_SUCH_DEVICE);
    CHECK(gm_open(&port, 0, 8, "x", gm_api_version_2_0_16) == GM_INVALID_PORT_NUMBER);
    CHECK(gm_open(&port, 0, 7, "x", (enum gm_api_version)5) == GM_INCOMPATIBLE_LIB_AND_DRIVER);
    CHECK(gm_open(NULL, 0, 7, "x", gm_api_version_2_0_16) == GM_INVALID_PARAMETER);
    together();
    gm_max_node_id_in_use(mine.port, &highest);
    if (task == 0) {
        CHECK(gm_open(&port, 0, 7, "x", gm_api_version_2_0_6) == GM_SUCCESS && port);
        CHECK(gm_open(&again, 0, 7, "x", gm_api_version_2_0_6) == GM_BUSY && !again);
    }
    together();
    if (task == 1) {
        /* A node has each port once, whichever process opens it. */
        gm_status_t status = gm_open(&again, 0, 7, "x", gm_api_version_2_0_6);
        CHECK(status == (highest == 1 ? GM_BUSY : GM_SUCCESS));
        if (status == GM_SUCCESS)
            gm_close(again);
    }
    together();
    if (task == 0) {
        gm_close(port);
        CHECK(gm_open(&port, 0, 7, "x", gm_api_version_2_0_6) == GM_SUCCESS);
        gm_close(port);
    }
    CHECK(gm_get_node_id(mine.port, &node) == GM_SUCCESS && node == node_of(&mine, task));
    CHECK(gm_get_node_id(mine.port, NULL) == GM_INVALID_PARAMETER);
    CHECK(gm_num_ports(mine.port) == 8);
    CHECK(gm_init() == GM_SUCCESS);
    gm_finalize();
    together();
}

/* gm_blocking_receive sleeps; gm_next_event_peek and gm_receive_pending take nothing. */
void case_blocking(void) {
    static char text[8] = "text";
    gm_u16_t sender = 0;
    if (task == 0) {
        struct timespec spent[2];
        buffer(6, 6);
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &spent[0]);
        turn(&mine, gm_blocking_receive_no_spin(mine.port));
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &spent[1]);
        CHECK(mine.arrivals == 1);
        /* Half a second of waiting is little work. */
        CHECK(spent[1].tv_sec - spent[0].tv_sec + (spent[1].tv_nsec - spent[0].tv_nsec) / 1e9 < 0.25);
        CHECK(gm_next_event_peek(mine.port, &sender) == GM_NO_RECV_EVENT && !gm_receive_pending(mine.port));
        buffer(6, 6);
        while (!gm_receive_pending(mine.port))
            ;
        CHECK(gm_next_event_peek(mine.port, &sender) == GM_RECV_EVENT && sender == node_of(&mine, 1));
        CHECK(gm_next_event_peek(mine.port, NULL) == GM_RECV_EVENT && gm_receive_pending(mine.port));
        turn(&mine, gm_receive(mine.port));
        CHECK(mine.arrivals == 2);
    } else {
        usleep(500000);
        post(&mine, 0, text, 6, 5, 1);
        post(&mine, 0, text, 6, 5, 2);
        ended(1, 2, GM_SUCCESS);
    }
    together();
}

static void *thread_of_port(void *given) {
    struct desk *desk = (struct desk *)given;
    enum { COUNT = 500 };
    static char text[8];
    unsigned own = gm_get_port_id(desk->port), other = own == 7 ? port_of(task) : 7;
    int i;
    for (i = 0; i < 8; i++)
        gm_provide_receive_buffer(desk->port, gm_malloc(64), 6, GM_LOW_PRIORITY);
    for (i = 0; i < COUNT; i++) {
        gm_send_with_callback(desk->port, text, 6, 8, 0, node_of(desk, task), other, note, (void *)1);
        until(desk, &desk->arrivals, i + 1);
        gm_provide_receive_buffer(desk->port, desk->arrived[i].buffer, 6, GM_LOW_PRIORITY);
    }
    until(desk, &desk->ends, COUNT);
    return NULL;
}

/* Two ports of a process, each with a thread of its own. */
void case_threads(void) {
    static struct desk second;
    pthread_t thread;
    if (task == 0) {
        open_desk(&second, 7);
        CHECK(pthread_create(&thread, NULL, thread_of_port, &second) == 0);
        thread_of_port(&mine);
        CHECK(pthread_join(thread, NULL) == 0);
        gm_close(second.port);
    }
    together();
}

/* The target computes, and calls nothing: what it has buffers for is delivered all the same. */
void case_busy(void) {
    static int number = 7;
    static int *at;
    if (task == 0) {
        together();
        post(&mine, 1, &number, 6, sizeof number, 1);
        ended(0, 1, GM_SUCCESS);
    } else {
        at = (int *)buffer(6, 0);
        *at = 0;
        together();
        while (*(volatile int *)at != number)
            ;
    }
    together();
}

/* The program's signals come to its own threads: those of the library have them blocked. */
void case_signals(void) {
    static const int asynchronous[] = {SIGALRM, SIGINT, SIGTERM, SIGUSR1, SIGCHLD};
    DIR *threads;
    struct dirent *thread;
    int others = 0;
    together();
    CHECK((threads = opendir("/proc/self/task")));
    while ((thread = readdir(threads))) {
        char path[300], line[200];
        unsigned long long blocked = 0;
        unsigned i;
        int known = 0;
        FILE *status;
        if (atoi(thread->d_name) == 0 || atoi(thread->d_name) == (int)getpid())
            continue;
        snprintf(path, sizeof path, "/proc/self/task/%s/status", thread->d_name);
        /* It may just have ended. */
        if (!(status = fopen(path, "r")))
            continue;
        while (!known && fgets(line, sizeof line, status))
            known = sscanf(line, "SigBlk: %llx", &blocked) == 1;
        fclose(status);
        for (i = 0; known && i < GM_NUM_ELEM(asynchronous); i++)
            CHECK(blocked >> (asynchronous[i] - 1) & 1);
        others += known;
    }
    closedir(threads);
    CHECK(others > 0);
    together();
}

/* A forked child has none of its parent's ports, and keeps none of them from others. */
void case_forked(void) {
    if (task == 0) {
        struct gm_port *port = NULL;
        int ready[2], over[2], status;
        char byte = 0;
        pid_t child;
        CHECK(pipe(ready) == 0 && pipe(over) == 0);
        CHECK(gm_open(&port, 0, 7, "forked", gm_api_version_2_0) == GM_SUCCESS);
        CHECK((child = fork()) >= 0);
        if (child == 0) {
            unsigned node;
            alarm(30);
            close(over[1]);
            CHECK(gm_open(&port, 0, 6, "forked", gm_api_version_2_0) == GM_UNATTACHED);
            CHECK(gm_get_node_id(mine.port, &node) == GM_INVALID_PARAMETER);
            CHECK(GM_RECV_EVENT_TYPE(gm_receive(mine.port)) == GM_NO_RECV_EVENT);
            gm_close(mine.port);
            gm_finalize();
            CHECK(write(ready[1], &byte, 1) == 1 && read(over[0], &byte, 1) == 0);
            exit(7);
        }
        close(ready[1]);
        CHECK(read(ready[0], &byte, 1) == 1);
        gm_close(port);
        CHECK(gm_open(&port, 0, 7, "forked", gm_api_version_2_0) == GM_SUCCESS);
        gm_close(port);
        close(over[1]);
        CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 7);
    }
    together();
}

/* Tokens are counted for the program: it has all of them at first. */
void case_tokens(void) {
    unsigned i, half = gm_num_send_tokens(mine.port) / 2;
    CHECK(gm_num_send_tokens(mine.port) == 64 && gm_num_receive_tokens(mine.port) == 256);
    CHECK(!gm_send_token_available(mine.port, GM_LOW_PRIORITY) && !gm_alloc_send_token(mine.port, GM_LOW_PRIORITY));
    gm_free_send_tokens(mine.port, GM_LOW_PRIORITY, half);
    gm_free_send_token(mine.port, GM_HIGH_PRIORITY);
    for (i = 0; i < half; i++) {
        CHECK(gm_send_token_available(mine.port, GM_LOW_PRIORITY));
        CHECK(gm_alloc_send_token(mine.port, GM_LOW_PRIORITY));
    }
    CHECK(!gm_alloc_send_token(mine.port, GM_LOW_PRIORITY) && gm_alloc_send_token(mine.port, GM_HIGH_PRIORITY));
    CHECK(!gm_alloc_send_token(mine.port, 2));
    /* Sizes. */
    CHECK(gm_max_length_for_size(3) == 0 && gm_max_length_for_size(4) == 8 && gm_max_length_for_size(31) == 2147483640);
    CHECK(gm_min_size_for_length(0) == 3 && gm_min_size_for_length(1) == 4 && gm_min_size_for_length(8) == 4);
    CHECK(gm_min_size_for_length(9) == 5 && gm_min_size_for_length(2147483640) == 31);
    CHECK(gm_min_message_size(mine.port) == 3 && gm_mtu(mine.port) == 4096);
}

static int alarms;
static void ring(void *context) { alarms += *(int *)context; }

/* Alarms come as events, in their order, and wake a receive that sleeps. */
void case_alarm(void) {
    static int one = 1, ten = 10;
    static char text[8] = "text";
    gm_u16_t sender = 0;
    int i;
    gm_alarm_t first, second;
    gm_recv_event_t *event;
    gm_u64_t begun = gm_ticks(mine.port);
    gm_initialize_alarm(&first);
    gm_initialize_alarm(&second);
    gm_cancel_alarm(&first);
    gm_set_alarm(mine.port, &first, 60000, ring, &ten);
    gm_set_alarm(mine.port, &second, 20000, ring, &one);
    event = gm_blocking_receive_no_spin(mine.port);
    CHECK(GM_RECV_EVENT_TYPE(event) == GM_ALARM_EVENT);
    gm_unknown(mine.port, event);
    CHECK(alarms == 1 && gm_ticks(mine.port) - begun >= 2 * 20000);
    event = gm_blocking_receive(mine.port);
    CHECK(GM_RECV_EVENT_TYPE(event) == GM_ALARM_EVENT);
    gm_unknown(mine.port, event);
    gm_unknown(mine.port, event);
    CHECK(alarms == 11);
    /* One that is taken back does not come, and one that is set again comes once. */
    gm_set_alarm(mine.port, &first, 1, ring, &ten);
    gm_cancel_alarm(&first);
    gm_set_alarm(mine.port, &first, 1, ring, &ten);
    gm_flush_alarm(mine.port);
    gm_set_alarm(mine.port, &second, 1, ring, &ten);
    gm_set_alarm(mine.port, &second, 3000, ring, &one);
    turn(&mine, gm_blocking_receive(mine.port));
    CHECK(alarms == 12 && gm_receive_pending(mine.port) == 0);
    /* One that was seen and is set again comes when it is due. */
    gm_set_alarm(mine.port, &first, 1, ring, &one);
    while (gm_next_event_peek(mine.port, &sender) != GM_ALARM_EVENT)
        ;
    gm_set_alarm(mine.port, &first, 3600000000, ring, &ten);
    turn(&mine, gm_receive(mine.port));
    CHECK(alarms == 12 && gm_receive_pending(mine.port) == 0);
    gm_cancel_alarm(&first);
    /* What a program has seen is what it receives, though an alarm falls due in between. */
    for (i = 0; i < 200; i++) {
        int seen;
        buffer(6, 6);
        post(&mine, task, text, 6, 5, i);
        while (!gm_receive_pending(mine.port))
            ;
        gm_set_alarm(mine.port, &first, 1, ring, &one);
        usleep(3);
        do {
            seen = gm_next_event_peek(mine.port, &sender);
            event = gm_receive(mine.port);
            CHECK(seen == GM_NO_RECV_EVENT || seen == GM_RECV_EVENT_TYPE(event));
            turn(&mine, event);
        } while (seen != GM_NO_RECV_EVENT || mine.arrivals <= i || mine.ends <= i || alarms <= 12 + i);
    }
}

/* Nodes and their names. */
void case_names(void) {
    char name[GM_MAX_HOST_NAME_LEN], again[GM_MAX_HOST_NAME_LEN + 1], unique[6];
    unsigned node, own = node_of(&mine, task), peer = node_of(&mine, 1 - task);
    CHECK(gm_get_host_name(mine.port, name) == GM_SUCCESS && gm_strlen(name) > 0);
    CHECK(gm_node_id_to_host_name_ex(mine.port, 5000000, peer, &again) == GM_SUCCESS && gm_strlen(again) > 0);
    CHECK(!gm_strcmp(gm_node_id_to_host_name(mine.port, own), name));
    CHECK(gm_node_id_to_host_name(mine.port, 999) == NULL);
    CHECK(gm_node_id_to_host_name_ex(mine.port, 5000000, 999, &again) == GM_INVALID_PARAMETER);
    CHECK(gm_host_name_to_node_id(mine.port, name) >= 1);
    CHECK(gm_host_name_to_node_id(mine.port, (char *)"no such host") == GM_NO_SUCH_NODE_ID);
    CHECK(gm_host_name_to_node_id_ex(mine.port, 5000000, name, &node) == GM_SUCCESS && node >= 1);
    CHECK(gm_host_name_to_node_id_ex(mine.port, 5000000, "no such host", &node) == GM_INVALID_PARAMETER);
    CHECK(gm_node_id_to_unique_id(mine.port, peer, unique) == GM_SUCCESS);
    CHECK(gm_unique_id_to_node_id(mine.port, unique, &node) == GM_SUCCESS && node == peer);
    unique[0]++;
    CHECK(gm_unique_id_to_node_id(mine.port, unique, &node) == GM_INVALID_PARAMETER);
    CHECK(gm_node_id_to_unique_id(mine.port, 0, unique) == GM_INVALID_PARAMETER);
    CHECK(gm_global_id_to_node_id(mine.port, peer, &node) == GM_SUCCESS && node == peer);
    CHECK(gm_node_id_to_global_id(mine.port, peer, &node) == GM_SUCCESS && node == peer);
    CHECK(gm_node_id_to_global_id(mine.port, 999, &node) == GM_INVALID_PARAMETER);
    CHECK(gm_max_node_id(mine.port, &node) == GM_SUCCESS && node == 65535);
    together();
}

static void at_end(gm_status_t status, void *argument) {
    printf("end %d %s\n", (int)status, (char *)argument);
    fflush(stdout);
}

/* The helpers. */
void case_helpers(void) {
    char text[16];
    struct gm_mutex *mutex = gm_create_mutex();
    void *page = gm_page_alloc(), *pages = gm_alloc_pages(10000);
    unsigned i;
    CHECK(!strcmp(gm_strerror(GM_SUCCESS), "success") && strcmp(gm_strerror(GM_BUSY), gm_strerror(GM_FAILURE)));
    CHECK(gm_crc("123456789", 9) == 0xcbf43926 && gm_crc_str("123456789") == 0xcbf43926 && gm_crc_str("") == 0);
    CHECK(gm_log2_roundup(0) == 0 && gm_log2_roundup(1) == 0 && gm_log2_roundup(5) == 3 && gm_log2_roundup(8) == 3);
    for (i = 1; i < 1000; i++)
        CHECK(gm_rand_mod(i) < i);
    CHECK(gm_rand_mod(0) == 0);
    gm_srand(5);
    i = (unsigned)gm_rand();
    gm_srand(5);
    CHECK(i == (unsigned)gm_rand());
    CHECK(page && pages && (uintptr_t)page % GM_PAGE_LEN == 0 && (uintptr_t)pages % GM_PAGE_LEN == 0);
    gm_page_free(page);
    gm_free_pages(pages, 10000);
    gm_mutex_enter(mutex);
    gm_mutex_exit(mutex);
    gm_destroy_mutex(mutex);
    CHECK(gm_strncpy(text, "abcdef", 7) == text && gm_strlen(text) == 6 && !gm_strncmp(text, "abcxxx", 3));
    CHECK(!gm_strncasecmp(text, "ABCDEF", 6) && gm_strcmp(text, "abcdeg") < 0 && gm_memcmp(text, "abd", 3) < 0);
    gm_bcopy(text, text + 1, 6);
    CHECK(!gm_memcmp(text, "aabcdef", 7));
    gm_bzero(text, 2);
    CHECK(text[0] == 0 && text[1] == 0 && text[2] == 'b' && gm_memset(text, 'z', 3) == text && text[2] == 'z');
    CHECK(gm_memorize_message(text, text, 3) == text && gm_memorize_message(text, &i, 4) == (void *)&i);
    CHECK(gm_isprint('a') && !gm_isprint('\n') && !gm_isprint(4000) && gm_getpid() == (int)getpid());
    CHECK(GM_NUM_ELEM(text) == 16 && GM_POWER_OF_TWO(8) && !GM_POWER_OF_TWO(9) && gm_sleep(0) == 0);
    CHECK(GM_RECV_EVENT_TYPE(gm_receive((struct gm_port *)4)) == GM_NO_RECV_EVENT);
    gm_free(gm_strdup("x"));
    gm_free(gm_calloc(3, 5));
    gm_printf("printed %d\n", 5);
    gm_eprintf("error %d\n", 6);
    gm_perror("perror", GM_BUSY);
    gm_hex_dump("OpenLAPI and GM in one line", 27);
    gm_on_exit(at_end, (void *)"first");
    gm_on_exit(at_end, (void *)"second");
    gm_close(mine.port);
    gm_finalize();
    gm_exit(GM_BUSY);
}

/* gm_abort ends the process by SIGABRT, and no function of gm_on_exit runs. */
void case_abort(void) {
    gm_on_exit(at_end, (void *)"never");
    gm_abort();
}

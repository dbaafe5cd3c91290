/*
 * Tasks on several hosts that no launcher has started: each puts its number into all others, over
 * UDP between hosts.
 *
 * The program itself knows where each task receives, from a file with a line for each: IP address
 * and port. LAPI_Init gets that from lapi_extend_t, as a list or from a handler; for IPv6, or
 * either, as a list or from a handler of another type. The number of the task and the number of
 * tasks are in the environment.
 *
 *     cc_r Udp.c -o Udp
 *     MP_CHILD=0 MP_PROCS=2 ./Udp addresses list         on the host of the first line
 *     MP_CHILD=1 MP_PROCS=2 ./Udp addresses list         on the host of the second line
 */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <lapi.h>

static const char *file;

/* Ends the task, with LAPI's own words, when a call has failed. */
static void check(int rc, const char *call)
{
    char text[LAPI_MAX_ERR_STRING];

    if (rc != LAPI_SUCCESS) {
        LAPI_Msg_string(rc, text);
        fprintf(stderr, "%s: %s\n", call, text);
        exit(EXIT_FAILURE);
    }
}

/* An IPv4 address. */
static int set_four(lapi_udp_t *address, const char *ip, unsigned port)
{
    address->port_no = port;                               /* in the order of this host */
    return inet_pton(AF_INET, ip, &address->ip_addr) == 1; /* in network order */
}

/* An address of either family, as sockets have it. */
static int set_any(struct sockaddr_storage *address, const char *ip, unsigned port)
{
    struct sockaddr_in *four = (struct sockaddr_in *)address;
    struct sockaddr_in6 *six = (struct sockaddr_in6 *)address;

    memset(address, 0, sizeof *address);
    if (strchr(ip, ':') != NULL) {
        six->sin6_family = AF_INET6;
        six->sin6_port = htons(port);
        return inet_pton(AF_INET6, ip, &six->sin6_addr) == 1;
    }
    four->sin_family = AF_INET;
    four->sin_port = htons(port);
    return inet_pton(AF_INET, ip, &four->sin_addr) == 1;
}

/* Reads the addresses of the first tasks from the file, into the list that is not null; returns how
 * many there are. */
static unsigned read_addresses(lapi_udp_t *list, struct sockaddr_storage *any, unsigned tasks)
{
    char ip[64];
    unsigned task, port;
    FILE *lines = fopen(file, "r");

    if (lines == NULL) {
        perror(file);
        return 0;
    }
    for (task = 0; task < tasks && fscanf(lines, "%63s %u", ip, &port) == 2; task++) {
        if (!(list != NULL ? set_four(list + task, ip, port) : set_any(any + task, ip, port))) {
            fprintf(stderr, "%s: %s is no address%s\n", file, ip, list != NULL ? " of IPv4" : "");
            break;
        }
    }
    fclose(lines);
    return task;
}

/*
 * LAPI_Init calls it in each task, and takes what it writes into addr_list, which has an entry for
 * each task. In local_addr is an address at which this task can receive: a program that has other
 * ways to distribute it may return that one. Any result but 0 makes LAPI_Init fail.
 */
static int my_udp_hndlr(lapi_handle_t *hndl, lapi_udp_t *local_addr, lapi_udp_t *addr_list, lapi_udpinfo_t *info)
{
    (void)hndl, (void)local_addr;
    return read_addresses(addr_list, NULL, info->num_tasks) == info->num_tasks ? 0 : 1;
}

/* The same for addresses of either family. */
static int my_any_hndlr(lapi_handle_t *hndl, struct sockaddr_storage *local_addr, struct sockaddr_storage *addr_list,
                        lapi_udpinfo_t *info)
{
    (void)hndl, (void)local_addr;
    return read_addresses(NULL, addr_list, info->num_tasks) == info->num_tasks ? 0 : 1;
}

int main(int argc, char **argv)
{
    lapi_handle_t hndl;
    lapi_info_t info;
    lapi_extend_t extend;
    lapi_udp_t *list = NULL;
    struct sockaddr_storage *any = NULL;
    lapi_cntr_t arrived;
    void **places;
    int me, tasks, task, left, sum = 0, *numbers;
    const char *procs = getenv("MP_PROCS");

    if (argc != 3 || procs == NULL) {
        fprintf(stderr, "usage: MP_CHILD=TASK MP_PROCS=TASKS %s FILE list|handler|any-list|any-handler\n", argv[0]);
        return EXIT_FAILURE;
    }
    file = argv[1];
    tasks = atoi(procs); /* LAPI_Qenv does not know it before LAPI_Init */

    memset(&info, 0, sizeof info);
    memset(&extend, 0, sizeof extend);
    info.lib_vers = LAST_LIB;
    info.add_info = &extend;
    if (strcmp(argv[2], "handler") == 0) {
        extend.udp_hndlr = my_udp_hndlr;
    } else if (strcmp(argv[2], "any-handler") == 0) {
        extend.udp_ext_hndlr = my_any_hndlr;
        extend.num_udp_addr = tasks; /* LAPI looks at the fields for either family only then */
    } else {
        list = calloc(tasks, sizeof *list);
        any = calloc(tasks, sizeof *any);
        if (list == NULL || any == NULL) {
            perror("calloc");
            return EXIT_FAILURE;
        }
        if (strcmp(argv[2], "any-list") == 0) {
            extend.add_udp_ext_addrs = any;
            extend.num_udp_addr = read_addresses(NULL, any, tasks);
        } else {
            extend.add_udp_addrs = list;
            extend.num_udp_addr = read_addresses(list, NULL, tasks);
        }
    }
    check(LAPI_Init(&hndl, &info), "LAPI_Init");
    free(list); /* LAPI has a copy */
    free(any);
    check(LAPI_Qenv(hndl, TASK_ID, &me), "LAPI_Qenv");

    numbers = calloc(tasks, sizeof *numbers);
    places = calloc(tasks, sizeof *places);
    if (numbers == NULL || places == NULL) {
        perror("calloc");
        return EXIT_FAILURE;
    }
    check(LAPI_Setcntr(hndl, &arrived, 0), "LAPI_Setcntr");
    check(LAPI_Address_init(hndl, numbers, places), "LAPI_Address_init");
    numbers[me] = me + 1;
    for (task = 0; task < tasks; task++) {
        if (task != me) {
            check(LAPI_Put(hndl, task, sizeof *numbers, (int *)places[task] + me, numbers + me, NULL, NULL, &arrived),
                  "LAPI_Put");
        }
    }
    check(LAPI_Waitcntr(hndl, &arrived, tasks - 1, &left), "LAPI_Waitcntr");
    check(LAPI_Gfence(hndl), "LAPI_Gfence");
    for (task = 0; task < tasks; task++) {
        sum += numbers[task];
    }
    printf("task %d: the numbers of all %d tasks add up to %d\n", me, tasks, sum);
    free(numbers);
    free(places);
    check(LAPI_Term(hndl), "LAPI_Term");
    return sum == tasks * (tasks + 1) / 2 ? EXIT_SUCCESS : EXIT_FAILURE;
}

/* MPI: MPI_Send and MPI_Recv, MPI_Put and MPI_Get with MPI_Win_flush. */
#include "net_bench.h"

#include <mpi.h>

static MPI_Win window;
static int me;

static void must(int code, const char *what)
{
    if (code != MPI_SUCCESS)
        net_die("%s: error %d", what, code);
}

int system_start(int *argc, char ***argv)
{
    int tasks;
    must(MPI_Init(argc, argv), "MPI_Init");
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &tasks);
    if (tasks != 2)
        net_die("two processes are needed, not %d", tasks);
    must(MPI_Win_create(net_target, LARGEST, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window), "MPI_Win_create");
    must(MPI_Win_lock_all(MPI_MODE_NOCHECK, window), "MPI_Win_lock_all");
    return me;
}

void system_meet(void)
{
    MPI_Win_sync(window);
    must(MPI_Barrier(MPI_COMM_WORLD), "MPI_Barrier");
    MPI_Win_sync(window);
}

uint64_t system_share(uint64_t value)
{
    must(MPI_Bcast(&value, 1, MPI_UINT64_T, 0, MPI_COMM_WORLD), "MPI_Bcast");
    return value;
}

void system_end(void)
{
    MPI_Win_unlock_all(window);
    MPI_Win_free(&window);
    MPI_Finalize();
}

static void send(size_t size) { must(MPI_Send(net_source, (int)size, MPI_BYTE, !me, 1, MPI_COMM_WORLD), "MPI_Send"); }

static void receive(size_t size)
{
    must(MPI_Recv(net_target, (int)size, MPI_BYTE, !me, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE), "MPI_Recv");
}

static void message_active(size_t size)
{
    send(size);
    receive(size);
}

static void message_passive(size_t size)
{
    receive(size);
    send(size);
}

static void stream_active(size_t size)
{
    MPI_Request requests[WINDOW];
    MPI_Status statuses[WINDOW];
    size_t messages = net_window(size);
    for (size_t i = 0; i < messages; i++)
        must(MPI_Isend(net_source, (int)size, MPI_BYTE, 1, 1, MPI_COMM_WORLD, &requests[i]), "MPI_Isend");
    must(MPI_Waitall((int)messages, requests, statuses), "MPI_Waitall");
    must(MPI_Recv(NULL, 0, MPI_BYTE, 1, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE), "MPI_Recv");
}

static void stream_passive(size_t size)
{
    MPI_Request requests[WINDOW];
    MPI_Status statuses[WINDOW];
    size_t messages = net_window(size);
    for (size_t i = 0; i < messages; i++)
        must(MPI_Irecv(net_target, (int)size, MPI_BYTE, 0, 1, MPI_COMM_WORLD, &requests[i]), "MPI_Irecv");
    must(MPI_Waitall((int)messages, requests, statuses), "MPI_Waitall");
    must(MPI_Send(NULL, 0, MPI_BYTE, 0, 2, MPI_COMM_WORLD), "MPI_Send");
}

static void put(size_t size)
{
    must(MPI_Put(net_source, (int)size, MPI_BYTE, 1, 0, (int)size, MPI_BYTE, window), "MPI_Put");
}

static void get(size_t size)
{
    must(MPI_Get(net_target, (int)size, MPI_BYTE, 1, 0, (int)size, MPI_BYTE, window), "MPI_Get");
}

static void put_active(size_t size)
{
    put(size);
    must(MPI_Win_flush(1, window), "MPI_Win_flush");
}

static void get_active(size_t size)
{
    get(size);
    must(MPI_Win_flush(1, window), "MPI_Win_flush");
}

static void put_stream_active(size_t size)
{
    for (size_t i = net_window(size); i > 0; i--)
        put(size);
    must(MPI_Win_flush(1, window), "MPI_Win_flush");
}

/* A get reads the memory that the puts have filled. */
const struct pattern system_patterns[] = {
    {"message", message_active, message_passive, 2, 1, 0},
    {"message_stream", stream_active, stream_passive, 0, 1, 0},
    {"put", put_active, NULL, 1, 1, 0},
    {"put_stream", put_stream_active, NULL, 0, 1, 0},
    {"get", get_active, NULL, 1, 2, 0},
    {NULL, NULL, NULL, 0, 0, 0},
};

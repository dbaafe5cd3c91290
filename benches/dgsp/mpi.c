/* The layouts as MPI types, the way a program that knows MPI builds them. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#include "layouts.h"

#ifdef OPEN_MPI
const char *const system_name = "openmpi";
#else
const char *const system_name = "mpich";
#endif

void system_start(int *argc, char ***argv)
{
    MPI_Init(argc, argv);
}

void system_end(void)
{
    MPI_Finalize();
}

static MPI_Datatype basic(long bytes)
{
    switch (bytes) {
    case 1: return MPI_CHAR;
    case 2: return MPI_SHORT;
    case 4: return MPI_INT;
    case 8: return MPI_DOUBLE;
    case 16: return MPI_C_DOUBLE_COMPLEX;
    default: return MPI_DATATYPE_NULL;
    }
}

static MPI_Datatype blocks_of(const struct layout *l)
{
    MPI_Datatype type, element = basic(l->element);
    MPI_Aint *places = malloc(l->blocks * sizeof *places);
    int *lengths = malloc(l->blocks * sizeof *lengths), same = 1;

    for (long i = 0; i < l->blocks; i++) {
        places[i] = l->block[i].offset;
        lengths[i] = l->block[i].len / l->element;
        same &= l->block[i].len == l->block[0].len;
    }
    if (l->blocks == 1) {
        MPI_Type_contiguous(lengths[0], element, &type);
    } else if (l->dims == 0 && l->repeat > 1) { /* a record: each field of its own type */
        MPI_Datatype *types = malloc(l->blocks * sizeof *types);
        for (long i = 0; i < l->blocks; i++) {
            types[i] = basic(l->block[i].len);
            lengths[i] = 1;
        }
        MPI_Type_create_struct(l->blocks, lengths, places, types, &type);
        free(types);
    } else if (same) {
        MPI_Type_create_hindexed_block(l->blocks, lengths[0], places, element, &type);
    } else {
        MPI_Type_create_hindexed(l->blocks, lengths, places, element, &type);
    }
    free(places);
    free(lengths);
    return type;
}

void *system_prepare(const struct layout *l)
{
    MPI_Datatype *type = malloc(sizeof *type), inner = blocks_of(l);

    for (int d = l->dims - 1; d >= 0; d--) {
        MPI_Type_create_hvector(l->count[d], 1, l->stride[d], inner, type);
        MPI_Type_free(&inner);
        inner = *type;
    }
    MPI_Type_create_resized(inner, 0, l->extent, type);
    MPI_Type_free(&inner);
    MPI_Type_commit(type);
    return type;
}

void system_release(void *prepared)
{
    MPI_Type_free(prepared);
    free(prepared);
}

void system_gather(void *prepared, const struct layout *l, const char *memory, char *packed)
{
    int position = 0;

    MPI_Pack(memory, l->repeat, *(MPI_Datatype *)prepared, packed, l->size * l->repeat, &position, MPI_COMM_SELF);
}

void system_scatter(void *prepared, const struct layout *l, char *memory, const char *packed)
{
    int position = 0;

    MPI_Unpack(packed, l->size * l->repeat, &position, memory, l->repeat, *(MPI_Datatype *)prepared, MPI_COMM_SELF);
}

// mpi_ring BYTES ROUNDS: every rank hands a block round in a ring and knows what it must hold. Messages begin and end inside of pages, and
// are large enough that MPI copies them straight from the other process's memory where it may. Rank 0 prints a line for each rank.
#include "check.h"
#include <mpi.h>

enum { PIECE = 3 << 20, SKEW = 24 };

int main(int argc, char **argv) {
    int rank, ranks;
    must(MPI_Init(&argc, &argv) == MPI_SUCCESS);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    size_t bytes = size_arg(argc, argv, 1, 64 * MIB);
    int rounds = argc > 2 ? atoi(argv[2]) : 2;
    char *mine = malloc(bytes), *theirs = malloc(bytes);
    must(mine && theirs);
    fill(mine, bytes, rank);
    int next = (rank + 1) % ranks, last = (rank + ranks - 1) % ranks;
    for (int round = 1; round <= rounds; round++) {
        for (size_t at = SKEW; at < bytes; at += PIECE) {
            int some = bytes - at < PIECE ? bytes - at : PIECE;
            MPI_Sendrecv(mine + at, some, MPI_BYTE, next, round, theirs + at, some, MPI_BYTE, last, round, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        }
        MPI_Sendrecv(mine, SKEW, MPI_BYTE, next, 0, theirs, SKEW, MPI_BYTE, last, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        char *swap = mine;
        mine = theirs, theirs = swap;
        verify(mine, bytes, (rank + ranks * rounds - round) % ranks, "what came round");
    }
    uint64_t sum = 0, all[64];
    for (size_t i = 0; i < bytes / 8; i++) sum = sum * 31 + ((uint64_t *)mine)[i];
    must(ranks <= 64);
    MPI_Gather(&sum, 1, MPI_UINT64_T, all, 1, MPI_UINT64_T, 0, MPI_COMM_WORLD);
    for (int i = 0; rank == 0 && i < ranks; i++) printf("rank %d of %d: %016lx\n", i, ranks, all[i]);
    fflush(stdout);
    MPI_Finalize();
    return 0;
}

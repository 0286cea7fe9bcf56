/* Messages between ranks on one machine, for "nearfar probe": compiled with the user's own mpicc and run by the user's own launcher.
 *
 * Rows: ping-pong latency (0 and 8 bytes), bandwidth (1 and 4 MiB, a window of messages under way), message rate (8 bytes, windowed),
 * all between ranks 0 and 1; allreduce of one double among all ranks. All received data are checked; a row with wrong data says so.
 * Prints one line of JSON per row on standard output of rank 0.
 *
 * Arguments: what ("pairs", "allreduce" or "all"), samples, milliseconds per sample, seconds after which a hang ends itself.
 */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST_SAMPLES = 100, WINDOW = 64, TAG = 7, ACK = 8 };

static int rank, ranks;
static double sample_seconds;
static int samples;

/* What word `index` of message `message` of round `round` holds. */
static uint64_t word(uint64_t round, uint64_t message, uint64_t index) {
    uint64_t x = (round * 1000003 + message) * 0x9e3779b97f4a7c15u + index * 0xbf58476d1ce4e5b9u;
    return x ^ (x >> 29);
}

static void row(const char *what, long bytes, int of, const char *unit, const double *values, long errors) {
    if (rank != 0)
        return;
    printf("{\"what\":\"%s\",\"bytes\":%ld,\"ranks\":%d,\"unit\":\"%s\",\"errors\":%ld,\"samples\":[", what, bytes, of, unit, errors);
    for (int i = 0; i < samples; i++)
        printf("%s%.9g", i ? "," : "", values[i]);
    printf("]}\n");
    fflush(stdout);
}

/* Errors of ranks 0 and 1 together, at rank 0. */
static long errors_of_pair(long own) {
    long other = 0;
    if (rank == 0)
        MPI_Recv(&other, 1, MPI_LONG, 1, ACK, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    else
        MPI_Send(&own, 1, MPI_LONG, 0, ACK, MPI_COMM_WORLD);
    return own + other;
}

/* Rank 0 decides how many rounds make a sample, by doubling, and tells rank 1. */
static long agree(long rounds) {
    if (rank == 0)
        MPI_Send(&rounds, 1, MPI_LONG, 1, ACK, MPI_COMM_WORLD);
    else
        MPI_Recv(&rounds, 1, MPI_LONG, 0, ACK, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return rounds;
}

static void barrier_of_pair(void) {
    char c = 0;
    MPI_Sendrecv_replace(&c, 1, MPI_CHAR, 1 - rank, ACK, 1 - rank, ACK, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

/* Seconds of `rounds` round trips; rank 1 sends back one more than it got. */
static double pingpong(int bytes, long rounds, long *errors) {
    uint64_t value = 0;
    barrier_of_pair();
    double start = MPI_Wtime();
    for (long i = 0; i < rounds; i++) {
        MPI_Status status;
        int count = -1;
        if (rank == 0) {
            uint64_t sent = word(i, 0, 0);
            value = sent;
            MPI_Send(&value, bytes, MPI_BYTE, 1, TAG, MPI_COMM_WORLD);
            value = 0;
            MPI_Recv(&value, bytes, MPI_BYTE, 1, TAG, MPI_COMM_WORLD, &status);
            *errors += bytes == 8 && value != sent + 1;
        } else {
            MPI_Recv(&value, bytes, MPI_BYTE, 0, TAG, MPI_COMM_WORLD, &status);
            *errors += bytes == 8 && value != word(i, 0, 0);
            value++;
            MPI_Send(&value, bytes, MPI_BYTE, 0, TAG, MPI_COMM_WORLD);
        }
        MPI_Get_count(&status, MPI_BYTE, &count);
        *errors += count != bytes;
    }
    return MPI_Wtime() - start;
}

/* Seconds in which rank 0 sends `rounds` windows of messages to rank 1, which answers each window; the last window is checked. */
static double windows(char *memory, long bytes, int window, long rounds, long salt, long *errors) {
    MPI_Request requests[WINDOW];
    uint64_t answer = 0;
    for (int m = 0; m < window; m++) {
        uint64_t *words = (uint64_t *)(memory + m * bytes);
        for (long i = 0; i < bytes / 8; i++)
            words[i] = rank == 0 ? word(salt, m, i) : 0;
    }
    barrier_of_pair();
    double start = MPI_Wtime();
    for (long round = 0; round < rounds; round++) {
        for (int m = 0; m < window; m++) {
            if (rank == 0)
                MPI_Isend(memory + m * bytes, (int)bytes, MPI_BYTE, 1, TAG, MPI_COMM_WORLD, &requests[m]);
            else
                MPI_Irecv(memory + m * bytes, (int)bytes, MPI_BYTE, 0, TAG, MPI_COMM_WORLD, &requests[m]);
        }
        MPI_Waitall(window, requests, MPI_STATUSES_IGNORE);
        if (rank == 0) {
            MPI_Recv(&answer, 8, MPI_BYTE, 1, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            *errors += answer != word(round, 0, 0);
        } else {
            answer = word(round, 0, 0);
            MPI_Send(&answer, 8, MPI_BYTE, 0, TAG, MPI_COMM_WORLD);
        }
    }
    double seconds = MPI_Wtime() - start;
    if (rank == 1)
        for (int m = 0; m < window; m++) {
            uint64_t *words = (uint64_t *)(memory + m * bytes);
            for (long i = 0; i < bytes / 8; i++)
                *errors += words[i] != word(salt, m, i);
        }
    return seconds;
}

static void measure_latency(int bytes) {
    double values[MOST_SAMPLES];
    long errors = 0, rounds = 16;
    for (;;) {
        double seconds = pingpong(bytes, rounds, &errors);
        long next = agree(seconds < sample_seconds && rounds < (1L << 24) ? rounds * 2 : -rounds);
        rounds = labs(next);
        if (next < 0)
            break;
    }
    for (int i = 0; i < samples; i++)
        values[i] = pingpong(bytes, rounds, &errors) / rounds / 2 * 1e9;
    row("ping-pong latency", bytes, 2, "ns", values, errors_of_pair(errors));
}

static void measure_windows(const char *what, char *memory, long bytes, int window) {
    double values[MOST_SAMPLES];
    long errors = 0, rounds = 1;
    for (;;) {
        double seconds = windows(memory, bytes, window, rounds, 0, &errors);
        long next = agree(seconds < sample_seconds && rounds < (1L << 20) ? rounds * 2 : -rounds);
        rounds = labs(next);
        if (next < 0)
            break;
    }
    int is_rate = bytes == 8;
    for (int i = 0; i < samples; i++) {
        double per_second = rounds * (double)window / windows(memory, bytes, window, rounds, i + 1, &errors);
        values[i] = is_rate ? per_second : per_second * bytes;
    }
    row(what, bytes, 2, is_rate ? "messages/s" : "bytes/s", values, errors_of_pair(errors));
}

static double allreduce(long rounds, long *errors) {
    double others = ranks * (ranks - 1.0) / 2;
    MPI_Barrier(MPI_COMM_WORLD);
    double start = MPI_Wtime();
    for (long i = 0; i < rounds; i++) {
        double own = (double)rank + (double)i, sum = -1;
        MPI_Allreduce(&own, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        *errors += !(sum == others + (double)ranks * (double)i);
    }
    return MPI_Wtime() - start;
}

static void measure_allreduce(void) {
    double values[MOST_SAMPLES];
    long errors = 0, all_errors = 0, rounds = 8;
    for (;;) {
        double seconds = allreduce(rounds, &errors);
        long next = seconds < sample_seconds && rounds < (1L << 22) ? rounds * 2 : -rounds;
        MPI_Bcast(&next, 1, MPI_LONG, 0, MPI_COMM_WORLD);
        rounds = labs(next);
        if (next < 0)
            break;
    }
    for (int i = 0; i < samples; i++)
        values[i] = allreduce(rounds, &errors) / rounds * 1e9;
    MPI_Reduce(&errors, &all_errors, 1, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
    row("allreduce", 8, ranks, "ns", values, all_errors);
}

/* All ranks must be on one machine, or the figures are of a network. */
static int on_one_machine(void) {
    char own[MPI_MAX_PROCESSOR_NAME] = "", first[MPI_MAX_PROCESSOR_NAME];
    int len = 0, same, all_same = 0;
    MPI_Get_processor_name(own, &len);
    memcpy(first, own, sizeof own);
    MPI_Bcast(first, sizeof first, MPI_CHAR, 0, MPI_COMM_WORLD);
    same = strncmp(own, first, sizeof own) == 0;
    MPI_Allreduce(&same, &all_same, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    return all_same;
}

static int give_up(const char *why) {
    if (rank == 0)
        fprintf(stderr, "mpi_bench: %s\n", why);
    MPI_Finalize();
    return 3;
}

int main(int argc, char **argv) {
    if (argc < 5)
        return 2;
    const char *what = argv[1];
    samples = atoi(argv[2]) < 1 ? 1 : atoi(argv[2]) > MOST_SAMPLES ? MOST_SAMPLES : atoi(argv[2]);
    sample_seconds = atof(argv[3]) / 1e3;
    alarm((unsigned)atoi(argv[4]));
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (ranks < 2)
        return give_up("the launcher started ranks that do not know of each other: it belongs to another MPI than mpicc");
    if (!on_one_machine())
        return give_up("the launcher put the ranks on different machines");
    if (rank == 0) {
        char version[MPI_MAX_LIBRARY_VERSION_STRING] = "";
        int len = 0;
        MPI_Get_library_version(version, &len);
        printf("{\"library\":\"");
        for (char *c = version; *c && *c != '\n' && c < version + 120; c++)
            putchar(*c == '"' || *c == '\\' || *c < ' ' ? ' ' : *c);
        printf("\",\"ranks\":%d}\n", ranks);
    }
    if (strcmp(what, "allreduce") != 0 && rank < 2) {
        const long MIB = 1 << 20;
        char *memory = malloc(16 * MIB);
        if (!memory) {
            fprintf(stderr, "mpi_bench: no memory\n");
            MPI_Abort(MPI_COMM_WORLD, 4);
        }
        measure_latency(0);
        measure_latency(8);
        measure_windows("bandwidth", memory, MIB, 16);
        measure_windows("bandwidth", memory, 4 * MIB, 4);
        measure_windows("message rate", memory, 8, WINDOW);
        free(memory);
    }
    if (strcmp(what, "pairs") != 0)
        measure_allreduce();
    MPI_Finalize();
    return 0;
}

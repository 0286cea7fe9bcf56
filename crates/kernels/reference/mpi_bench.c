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
#include <sys/resource.h>
#include <unistd.h>

enum { MOST_SAMPLES = 100, WINDOW = 64, TAG = 7, ACK = 8 };

/* A sample that is long enough may have been disturbed: it must be so this often before the number of rounds is settled. */
enum { STRIKES = 3 };

static int rank, ranks;
static double sample_seconds;
static int samples;

/* What word `index` of message `message` of round `round` holds. */
static uint64_t word(uint64_t round, uint64_t message, uint64_t index) {
    uint64_t x = (round * 1000003 + message) * 0x9e3779b97f4a7c15u + index * 0xbf58476d1ce4e5b9u;
    return x ^ (x >> 29);
}

static void row(const char *what, long bytes, int of, const char *unit, const double *values, int taken, long errors, long switches) {
    if (rank != 0)
        return;
    printf("{\"what\":\"%s\",\"bytes\":%ld,\"ranks\":%d,\"unit\":\"%s\",\"errors\":%ld,\"switches\":%ld,\"samples\":[", what, bytes,
           of, unit, errors, switches);
    for (int i = 0; i < taken; i++)
        printf("%s%.9g", i ? "," : "", values[i]);
    printf("]}\n");
    fflush(stdout);
}

/* How often this rank has lost its CPU to others: ranks that share a CPU, or a busy machine, measure time slices, not messages. */
static long lost_cpu(void) {
    struct rusage usage;
    return getrusage(RUSAGE_SELF, &usage) == 0 ? usage.ru_nivcsw : 0;
}

/* The sum of a number of rank 0 and one of rank 1, at rank 0. */
static long sum_of_pair(long own) {
    long other = 0;
    if (rank == 0)
        MPI_Recv(&other, 1, MPI_LONG, 1, ACK, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    else
        MPI_Send(&own, 1, MPI_LONG, 0, ACK, MPI_COMM_WORLD);
    return own + other;
}

/* The number of rounds to try next, by doubling; negative when it is settled. */
static long next_rounds(double seconds, long rounds, long most, int *strikes) {
    if (seconds < sample_seconds && rounds < most)
        return rounds * 2;
    return ++*strikes < STRIKES ? rounds : -rounds;
}

/* Whether another sample follows: on a busy machine fewer are taken, but never so few that they have no interval. */
static long goes_on(int taken, double start) {
    enum { FEWEST = 6 };
    return taken < samples && (taken < FEWEST || MPI_Wtime() - start < 4 * samples * sample_seconds);
}

/* Rank 0 decides, and tells rank 1. */
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
    int strikes = 0;
    for (;;) {
        double seconds = pingpong(bytes, rounds, &errors);
        long next = agree(next_rounds(seconds, rounds, 1L << 24, &strikes));
        rounds = labs(next);
        if (next < 0)
            break;
    }
    int taken = 0;
    long lost = lost_cpu();
    for (double start = MPI_Wtime(); agree(goes_on(taken, start)); taken++)
        values[taken] = pingpong(bytes, rounds, &errors) / rounds / 2 * 1e9;
    lost = sum_of_pair(lost_cpu() - lost);
    errors = sum_of_pair(errors);
    row("ping-pong latency", bytes, 2, "ns", values, taken, errors, lost);
}

static void measure_windows(const char *what, char *memory, long bytes, int window) {
    double values[MOST_SAMPLES];
    long errors = 0, rounds = 1;
    int strikes = 0;
    for (;;) {
        double seconds = windows(memory, bytes, window, rounds, 0, &errors);
        long next = agree(next_rounds(seconds, rounds, 1L << 20, &strikes));
        rounds = labs(next);
        if (next < 0)
            break;
    }
    int is_rate = bytes == 8;
    int taken = 0;
    long lost = lost_cpu();
    for (double start = MPI_Wtime(); agree(goes_on(taken, start)); taken++) {
        double per_second = rounds * (double)window / windows(memory, bytes, window, rounds, taken + 1, &errors);
        values[taken] = is_rate ? per_second : per_second * bytes;
    }
    lost = sum_of_pair(lost_cpu() - lost);
    errors = sum_of_pair(errors);
    row(what, bytes, 2, is_rate ? "messages/s" : "bytes/s", values, taken, errors, lost);
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
    long errors = 0, rounds = 8;
    int strikes = 0;
    for (;;) {
        double seconds = allreduce(rounds, &errors);
        long next = next_rounds(seconds, rounds, 1L << 22, &strikes);
        MPI_Bcast(&next, 1, MPI_LONG, 0, MPI_COMM_WORLD);
        rounds = labs(next);
        if (next < 0)
            break;
    }
    int taken = 0;
    long lost = lost_cpu();
    for (double start = MPI_Wtime();; taken++) {
        long next = goes_on(taken, start);
        MPI_Bcast(&next, 1, MPI_LONG, 0, MPI_COMM_WORLD);
        if (!next)
            break;
        values[taken] = allreduce(rounds, &errors) / rounds * 1e9;
    }
    long own[2] = {errors, lost_cpu() - lost}, all[2] = {0, 0};
    MPI_Reduce(own, all, 2, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
    row("allreduce", 8, ranks, "ns", values, taken, all[0], all[1]);
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

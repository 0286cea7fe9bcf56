// Streams are flushed at exit, when libraries take their leave: what was written must not be lost. Returns from main on purpose.
#include "check.h"
int main(int argc, char **argv) {
    FILE *file = fopen(argv[argc - 1], "w");
    must(file != NULL);
    for (int line = 0; line < 100; line++) {
        fprintf(file, "line %d\n", line);
        printf("line %d\n", line);
    }
    return 0;
}

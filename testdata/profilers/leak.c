/* A program that leaks 10,000 bytes a step, at one line, beside what a step
 * needs and gives back, and what is made once. make.sh runs it under profilers. */
#include <stdlib.h>
#include <string.h>

static void **cache;
static int held;

static void __attribute__((noinline)) remember(int n) {
    cache[held] = malloc(n); /* the leak */
    memset(cache[held++], 1, n);
}

static void __attribute__((noinline)) work(int n) {
    char *scratch = malloc(n);
    memset(scratch, 0, n);
    __asm__ volatile("" : : "r"(scratch) : "memory"); /* else it is optimised away */
    free(scratch);
}

static void __attribute__((noinline)) train(int steps) {
    for (int i = 0; i < steps; i++) {
        remember(10000);
        work(50000);
    }
}

int main(int argc, char **argv) {
    cache = calloc(1000, sizeof *cache);
    train(argc > 1 ? atoi(argv[1]) : 10);
    return cache[held - 1] == NULL;
}

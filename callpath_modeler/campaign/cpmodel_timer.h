/* Regions of a program in C or C++, timed for `cpmodel run --profiler timer`.
 *
 *     #include "cpmodel_timer.h"
 *     cpm_begin("solve");  ...  cpm_end("solve");
 *
 * Regions may be nested. Each process writes a table profile.RANK.0.0, in the format of TAU, to the
 * directory $CPM_RUN_DIRECTORY when it exits. Without this variable, nothing is measured.
 * Include mpi.h before this file to take the rank from MPI; otherwise the launcher states it.
 * Only the first thread that begins a region is timed. Needs GCC or Clang. Licence: BSD-3-Clause.
 */
#ifndef CPMODEL_TIMER_H
#define CPMODEL_TIMER_H

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define CPM_MOST_REGIONS 20000
/* Weak definitions: all files of a program share them, and no library is needed. */
#define CPM_SHARED __attribute__((weak))

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
    char *name;
    int parent, child, next;
    long calls;
    double inside, begin;
} cpm_region;
typedef struct {
    cpm_region *regions;
    int count, now, skipped, rank;
    const void *thread;
    pid_t process;
} cpm_state;

CPM_SHARED cpm_state cpm_timer = {0, 0, 0, 0, -1, 0, 0};
CPM_SHARED __thread char cpm_this_thread = 0;

static inline double cpm_microseconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return 1e6 * (double)now.tv_sec + 1e-3 * (double)now.tv_nsec;
}

static inline void cpm_find_rank(void) {
    static const char *const names[] = {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK",
                                        "MV2_COMM_WORLD_RANK", "SLURM_PROCID"};
#ifdef MPI_VERSION
    int is_begun = 0, has_ended = 0;
    if (cpm_timer.rank < 0 && MPI_Initialized(&is_begun) == MPI_SUCCESS && is_begun &&
        MPI_Finalized(&has_ended) == MPI_SUCCESS && !has_ended)
        MPI_Comm_rank(MPI_COMM_WORLD, &cpm_timer.rank);
#else
    for (size_t i = 0; cpm_timer.rank < 0 && i < sizeof names / sizeof *names; i++)
        if (getenv(names[i])) cpm_timer.rank = atoi(getenv(names[i]));
#endif
    (void)names;
}

/* Return the callee of the present region with a name; -1 = there is no room for it. */
static inline int cpm_callee(const char *name) {
    cpm_state *t = &cpm_timer;
    int *link = t->count ? &t->regions[t->now].child : 0;
    while (link && *link) {
        if (!strcmp(t->regions[*link].name, name)) return *link;
        link = &t->regions[*link].next;
    }
    if (t->count == CPM_MOST_REGIONS) return -1;
    if (!t->regions) t->regions = (cpm_region *)calloc(CPM_MOST_REGIONS, sizeof(cpm_region));
    char *copy = t->regions ? (char *)malloc(strlen(name) + 1) : 0;
    if (!copy) return -1;
    strcpy(copy, name);
    t->regions[t->count].name = copy;
    t->regions[t->count].parent = t->now;
    if (link) *link = t->count;
    return t->count++;
}

static inline void cpm_enter(const char *name) {
    int found = cpm_timer.skipped ? -1 : cpm_callee(name);
    if (found < 0) { cpm_timer.skipped++; return; }  /* its time stays with the caller */
    cpm_timer.now = found;
    cpm_timer.regions[found].calls++;
    cpm_timer.regions[found].begin = cpm_microseconds();
}

static inline void cpm_begin(const char *name) {
    if (!cpm_timer.count) return;
    if (!cpm_timer.thread) cpm_timer.thread = &cpm_this_thread;
    if (cpm_timer.thread != &cpm_this_thread) return;
    if (cpm_timer.rank < 0) cpm_find_rank();
    cpm_enter(name);
}

static inline void cpm_end(const char *name) {
    cpm_state *t = &cpm_timer;
    if (!t->count || t->thread != &cpm_this_thread) return;
    if (t->skipped) { t->skipped--; return; }
    if (!t->now || strcmp(t->regions[t->now].name, name)) {
        fprintf(stderr, "cpmodel_timer.h: cpm_end(\"%s\") inside of \"%s\" is ignored\n", name,
                t->regions[t->now].name);
        return;
    }
    if (t->rank < 0) cpm_find_rank();
    t->regions[t->now].inside += cpm_microseconds() - t->regions[t->now].begin;
    t->now = t->regions[t->now].parent;
}

static inline void cpm_print_name(FILE *file, const char *name) {
    for (; *name; name++) fputc((unsigned char)*name < ' ' || *name == '"' ? '_' : *name, file);
}

static inline void cpm_print_program(FILE *file, const char *name) {
    fprintf(file, "<metadata><attribute><name>Executable</name><value>");
    for (; *name; name++) fputc((unsigned char)*name < ' ' || strchr("<>&", *name) ? '_' : *name, file);
    fprintf(file, "</value></attribute></metadata>\n");
}

static inline void cpm_print_path(FILE *file, int region) {
    int above[512], depth = 0;  /* deeper callers are left out */
    for (; depth < 511 && region; region = cpm_timer.regions[region].parent) above[depth++] = region;
    cpm_print_name(file, cpm_timer.regions[0].name);
    while (depth) {
        fprintf(file, " => ");
        cpm_print_name(file, cpm_timer.regions[above[--depth]].name);
    }
}

CPM_SHARED void cpm_write(void) {
    cpm_state *t = &cpm_timer;
    char path[4096];
    if (t->process != getpid()) return;  /* a copy that fork made */
    for (t->skipped = 0; ; t->now = t->regions[t->now].parent) {  /* regions that have not ended */
        t->regions[t->now].inside += cpm_microseconds() - t->regions[t->now].begin;
        if (!t->now) break;
    }
    int length = snprintf(path, sizeof path, "%s/profile.%d.0.0", getenv("CPM_RUN_DIRECTORY"),
                          t->rank < 0 ? 0 : t->rank);
    FILE *file = length < (int)sizeof path ? fopen(path, "w") : 0;
    if (!file) { fprintf(stderr, "cpmodel_timer.h: %s: %s\n", path, strerror(errno)); return; }
    fprintf(file, "%d templated_functions_MULTI_TIME\n", t->count);
    fprintf(file, "# Name Calls Subrs Excl Incl ProfileCalls # ");
    cpm_print_program(file, t->regions[0].name);
    for (int i = 0; i < t->count; i++) {
        double own = t->regions[i].inside;
        long calls = 0;
        for (int c = t->regions[i].child; c; c = t->regions[c].next) {
            own -= t->regions[c].inside;
            calls += t->regions[c].calls;
        }
        fputc('"', file);
        cpm_print_path(file, i);
        fprintf(file, "\" %ld %ld %.3f %.3f 0 GROUP=\"%s\"\n", t->regions[i].calls, calls,
                own > 0 ? own : 0.0, t->regions[i].inside, i ? "TAU_CALLPATH" : "TAU_DEFAULT");
    }
    fprintf(file, "0 aggregates\n");
    if (fclose(file)) fprintf(stderr, "cpmodel_timer.h: %s: %s\n", path, strerror(errno));
}

/* The program is the first region. It begins before main. */
__attribute__((constructor, unused)) static void cpm_start(void) {
    const char *name = getenv("CPM_PROGRAM");
    if (cpm_timer.count || !getenv("CPM_RUN_DIRECTORY")) return;
    cpm_timer.process = getpid();
    cpm_enter(name && *name ? name : "program");
    if (cpm_timer.count) atexit(cpm_write);
}

#ifdef __cplusplus
}
#endif
#endif

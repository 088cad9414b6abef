/* Working memory. A vector that crosses two cache lines takes twice as long to read. So working
   memory and each of its parts begin on a cache line. */
#ifndef CALLPATH_MODELER_MEMORY_H
#define CALLPATH_MODELER_MEMORY_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { LINE = 64 };

/* Return how many numbers of 8 bytes fill the cache lines that `count` of them need. */
static inline int64_t lines(int64_t count) { return (count + 7) / 8 * 8; }

/* Return memory for `count` numbers of 8 bytes, or NULL. */
static inline void *new_lines(int64_t count)
{
    return aligned_alloc(LINE, (size_t)(lines(count) + LINE / 8) * 8);
}

/* Return memory as `new_lines` does, all zero. */
static inline void *new_zeros(int64_t count)
{
    void *found = new_lines(count);
    return found ? memset(found, 0, (size_t)count * 8) : NULL;
}

#endif

/* Hashes of call paths: BLAKE2b with a digest of 16 bytes and without a key (RFC 7693). */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK = 128, DIGEST = 16, ROUNDS = 12, WORDS = 8 };

/* The state after some bytes. The last block waits in `rest`, because it is marked as the last. */
typedef struct {
    uint64_t chain[WORDS], length;
    int64_t waiting;
    int is_path;
    uint8_t rest[BLOCK];
} State;

static const uint64_t START[WORDS] = {
    0x6a09e667f3bcc908u, 0xbb67ae8584caa73bu, 0x3c6ef372fe94f82bu, 0xa54ff53a5f1d36f1u,
    0x510e527fade682d1u, 0x9b05688c2b3e6c1fu, 0x1f83d9abfb41bd6bu, 0x5be0cd19137e2179u,
};

static const uint8_t ORDER[ROUNDS][16] = {
    {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15},
    {14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3},
    {11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4},
    {7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8},
    {9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13},
    {2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9},
    {12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11},
    {13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10},
    {6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5},
    {10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0},
    {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15},
    {14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3},
};

static inline uint64_t turned(uint64_t word, int bits)
{
    return word >> bits | word << (64 - bits);
}

/* Words and bytes of these numbers are in the order of little-endian machines on all machines. */
static inline uint64_t word_at(const uint8_t *bytes)
{
    uint64_t word = 0;
    for (int k = 0; k < 8; k++)
        word |= (uint64_t)bytes[k] << 8 * k;
    return word;
}

static inline void mix(uint64_t *v, int a, int b, int c, int d, uint64_t x, uint64_t y)
{
    v[a] += v[b] + x;
    v[d] = turned(v[d] ^ v[a], 32);
    v[c] += v[d];
    v[b] = turned(v[b] ^ v[c], 24);
    v[a] += v[b] + y;
    v[d] = turned(v[d] ^ v[a], 16);
    v[c] += v[d];
    v[b] = turned(v[b] ^ v[c], 63);
}

static void compress(State *state, int is_last)
{
    uint64_t v[2 * WORDS], words[16];
    for (int k = 0; k < 16; k++)
        words[k] = word_at(state->rest + 8 * k);
    for (int k = 0; k < WORDS; k++)
        v[k] = state->chain[k], v[WORDS + k] = START[k];
    v[12] ^= state->length;
    if (is_last)
        v[14] = ~v[14];
    for (int round = 0; round < ROUNDS; round++) {
        const uint8_t *order = ORDER[round];
        for (int k = 0; k < 4; k++)
            mix(v, k, 4 + k, 8 + k, 12 + k, words[order[2 * k]], words[order[2 * k + 1]]);
        for (int k = 0; k < 4; k++)
            mix(v, k, 4 + (k + 1) % 4, 8 + (k + 2) % 4, 12 + (k + 3) % 4, words[order[8 + 2 * k]],
                words[order[9 + 2 * k]]);
    }
    for (int k = 0; k < WORDS; k++)
        state->chain[k] ^= v[k] ^ v[WORDS + k];
}

static void begin(State *state)
{
    memset(state, 0, sizeof *state);
    memcpy(state->chain, START, sizeof START);
    state->chain[0] ^= 0x01010000u | DIGEST;
}

static void add(State *state, const uint8_t *bytes, int64_t count)
{
    while (count > 0) {
        if (state->waiting == BLOCK) {
            compress(state, 0);
            state->waiting = 0;
        }
        int64_t room = BLOCK - state->waiting, some = count < room ? count : room;
        memcpy(state->rest + state->waiting, bytes, (size_t)some);
        state->waiting += some;
        state->length += (uint64_t)some;
        bytes += some;
        count -= some;
    }
}

static void finish(const State *state, uint8_t *digest)
{
    State last = *state;
    memset(last.rest + last.waiting, 0, (size_t)(BLOCK - last.waiting));
    compress(&last, 1);
    for (int k = 0; k < DIGEST; k++)
        digest[k] = (uint8_t)(last.chain[k / 8] >> 8 * (k % 8));
}

/* The hash of each path [n, DIGEST]: of the names from the root, joined by slashes. Rows are in
   preorder, at a `depth` from 0 to `deepest`. The bytes of a name are in `text`, from its `start`.
   The hashed paths do not begin with the name `program`, unless it is the whole path. */
int64_t path_hashes(int64_t n, int64_t deepest, int64_t program, const int8_t *text,
                    const int64_t *start, const int64_t *name, const int64_t *depth,
                    int8_t *digest)
{
    State *states = malloc((size_t)(deepest + 1) * sizeof *states);
    for (int64_t row = 0; states && row < n; row++) {
        int64_t its = name[row];
        State *state = states + depth[row];
        if (depth[row] && state[-1].is_path) {
            *state = state[-1];
            add(state, (const uint8_t *)"/", 1);
        } else
            begin(state);
        add(state, (const uint8_t *)text + start[its], start[its + 1] - start[its]);
        finish(state, (uint8_t *)digest + DIGEST * row);
        state->is_path = depth[row] || its != program;
    }
    free(states);
    return states ? 0 : -1;
}

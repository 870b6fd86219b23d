/* Allocates chunks from segments of a file that outlives a killed process, or of anonymous memory. */
#ifndef OP_POOL_H
#define OP_POOL_H

#include "core/clock.h"
#include "core/event.h"
#include "core/owned_fd.h"
#include "opprof.h"

#include <stdbool.h>

#define OP_UNIT_BYTES OP_CHUNK_MIN
#define OP_SEGMENT_UNITS 2048u
#define OP_SEGMENTS 4u
#define OP_HEADER_BYTES 4096u
#define OP_DROPS_TOLD 1024u
#define OP_FILE_MAGIC "OPPROF\x1a\n"
#define OP_FILE_VERSION 6u

/* First page of the session file; the segments follow. It has what a reader of a dead process's file
 * needs, written before there is anything to read. */
typedef struct op_file_header {
    char magic[8];
    uint32_t version, pid;
    uint32_t window;   /* the open window; 0: nothing is being recorded */
    uint32_t segments; /* allocated so far */
    uint64_t segment_bytes;
    uint32_t clock_kind;
    uint32_t truncated;            /* the open window ran out of room */
    op_clock_pair opened, started; /* session open; window start */
    double sampling;               /* this and the counters as in op_stats */
    uint32_t counted, counters[OP_COUNTERS_MAX];
    uint32_t keeps_last; /* a flight recorder: the oldest events were forgotten */
    char names_path[1024], spill_path[1024];
    uint32_t note_bytes; /* 0 while the note is being written */
    char note[OP_NOTE_BYTES];
    uint64_t dropped; /* events of the open window; too low by up to OP_DROPS_TOLD for each thread that
                         drops more than that */
} op_file_header;
OP_STATIC_ASSERT(sizeof(op_file_header) <= OP_HEADER_BYTES, "the header is one page");

typedef struct op_segment {
    uint8_t *base;
    uint64_t used[OP_SEGMENT_UNITS / 64]; /* one bit per unit */
} op_segment;

typedef struct op_pool {
    op_file_header *header; /* in the file, or anonymous */
    op_segment segment[OP_SEGMENTS];
    uint32_t segments, segment_units, used_units;
    op_owned_fd file, names_file; /* none if anonymous */
    char path[1024], names_path[1024];
} op_pool;

int op_pool_open(op_pool *pool, const char *dir, uint64_t segment_bytes);
void op_pool_close(op_pool *pool); /* unlinks its files */
/* In the child after a fork: forgets the parent's pool without touching it. */
void op_pool_forget(op_pool *pool);
op_chunk *op_pool_take(op_pool *pool, uint32_t bytes);
void op_pool_give(op_pool *pool, op_chunk *chunk);
bool op_pool_grow(op_pool *pool);

#endif

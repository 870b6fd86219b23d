/* Matches a trace's threads to torch's thread numbers: a file names threads as the system does, but its
 * backward ops name their forward op's thread as torch does. Each thread counts its own sequence
 * numbers, so a forward thread's number belongs to the thread that ran forward ops with most of the
 * sequence numbers of its backward ops. If two threads are tied, neither is chosen, unless one of them
 * turns out to have another number. */
#include "import/forward_threads.h"

#include "core/error.h"
#include "core/event.h"
#include "core/fault.h"

#include <string.h>

/* A sequence number seen on more threads than this shows nothing, and would be expensive. */
enum { MOST_LANES = 64, MOST_ROUNDS = 16 };

typedef struct numbered {
    int64_t sequence, start_ns;
    uint32_t thread; /* forward op: its lane; backward op: the number of its forward thread */
} numbered;

typedef struct claim {
    uint64_t from; /* index of the number's first backward op */
    uint64_t votes;
    uint32_t number; /* torch's; 0: none */
    bool is_tied;
} claim;

typedef struct voting {
    op_result *r;
    numbered *forwards, *backwards;
    uint64_t forward_count, backward_count;
    uint64_t *votes; /* by lane, for the current number */
    claim *claims;   /* by lane */
    bool *is_done;   /* by index of a number's first backward op */
} voting;

static int compare(int64_t x, int64_t y) { return (x > y) - (x < y); }

static int by_sequence(const void *a, const void *b) {
    const numbered *x = a, *y = b;
    int order = compare(x->sequence, y->sequence);
    order = order ? order : compare(x->thread, y->thread);
    return order ? order : compare(x->start_ns, y->start_ns);
}

static int by_thread(const void *a, const void *b) {
    const numbered *x = a, *y = b;
    int order = compare(x->thread, y->thread);
    return order ? order : by_sequence(a, b);
}

/* `ops` is sorted: the first of each thread and number is the earliest. */
static uint64_t without_repeats(numbered *ops, uint64_t count) {
    uint64_t kept = 0;
    for (uint64_t i = 0; i < count; i++)
        if (!kept || ops[i].sequence != ops[kept - 1].sequence || ops[i].thread != ops[kept - 1].thread)
            ops[kept++] = ops[i];
    return kept;
}

/* The forward ops with this number; none if there are too many. */
static const numbered *with_number(const voting *v, int64_t sequence, const numbered **end) {
    uint64_t low = 0, high = v->forward_count;
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        if (v->forwards[middle].sequence < sequence)
            low = middle + 1;
        else
            high = middle;
    }
    const numbered *first = v->forwards + low, *last = v->forwards + v->forward_count;
    for (*end = first; *end < last && (*end)->sequence == sequence; (*end)++)
        if (*end - first == MOST_LANES)
            return *end = first;
    return first;
}

/* A vote for each thread whose op with this number began before the backward op. */
static void vote(const voting *v, const numbered *backward) {
    const numbered *end, *op = with_number(v, backward->sequence, &end);
    for (; op < end; op++)
        v->votes[op->thread] +=
            op->start_ns < backward->start_ns && !v->r->threads[op->thread].torch_thread;
}

static void consider(const voting *v, const numbered *backward, claim *best, uint32_t *lane) {
    const numbered *end, *op = with_number(v, backward->sequence, &end);
    for (; op < end; op++) {
        if (v->votes[op->thread] > best->votes) {
            *best =
                (claim){.from = best->from, .votes = v->votes[op->thread], .number = backward->thread};
            *lane = op->thread;
        } else if (v->votes[op->thread] == best->votes && op->thread != *lane) {
            best->is_tied = true;
        }
    }
}

static void forget_votes(const voting *v, const numbered *backward) {
    const numbered *end, *op = with_number(v, backward->sequence, &end);
    for (; op < end; op++)
        v->votes[op->thread] = 0;
}

/* Finds the lane of one number from its backward ops. */
static void decide(const voting *v, uint64_t from, uint64_t count) {
    const numbered *ops = v->backwards + from;
    claim best = {.from = from};
    uint32_t lane = UINT32_MAX;
    for (uint64_t i = 0; i < count; i++)
        vote(v, &ops[i]);
    for (uint64_t i = 0; i < count; i++)
        consider(v, &ops[i], &best, &lane);
    for (uint64_t i = 0; i < count; i++)
        forget_votes(v, &ops[i]);
    if (best.votes == 0 || best.is_tied)
        return;
    claim *held = &v->claims[lane];
    if (best.votes > held->votes)
        *held = best;
    else if (best.votes == held->votes)
        held->is_tied = true;
}

static int collect(voting *v) {
    const op_columns *c = &v->r->columns;
    v->forwards = op_malloc(v->forward_count * sizeof *v->forwards + 1);
    v->backwards = op_malloc(v->backward_count * sizeof *v->backwards + 1);
    v->votes = op_calloc((size_t)v->r->thread_count + 1, sizeof *v->votes);
    v->claims = op_calloc((size_t)v->r->thread_count + 1, sizeof *v->claims);
    v->is_done = op_calloc(v->backward_count + 1, sizeof *v->is_done);
    if (!v->forwards || !v->backwards || !v->votes || !v->claims || !v->is_done)
        return op_error_set(OP_ENOMEM, "no memory to find the threads of backward ops");
    uint64_t forwards = 0, backwards = 0;
    for (uint64_t row = 0; row < c->count; row++) {
        if (c->kind[row] != OP_TORCH || c->sequence_nr[row] < 0)
            continue;
        numbered *op = c->forward_thread[row] ? &v->backwards[backwards++] : &v->forwards[forwards++];
        *op = (numbered){.sequence = c->sequence_nr[row],
                         .start_ns = c->start_ns[row],
                         .thread = c->forward_thread[row] ? c->forward_thread[row] : c->thread[row]};
    }
    qsort(v->forwards, forwards, sizeof *v->forwards, by_sequence);
    qsort(v->backwards, backwards, sizeof *v->backwards, by_thread);
    v->forward_count = without_repeats(v->forwards, forwards);
    v->backward_count = without_repeats(v->backwards, backwards);
    return OP_OK;
}

/* One round: numbers with an unambiguous thread claim it. */
static bool decide_all(const voting *v) {
    bool any = false;
    memset(v->claims, 0, v->r->thread_count * sizeof *v->claims);
    for (uint64_t from = 0, to; from < v->backward_count; from = to) {
        for (to = from; to < v->backward_count && v->backwards[to].thread == v->backwards[from].thread;
             to++)
            ;
        if (!v->is_done[from])
            decide(v, from, to - from);
    }
    for (uint32_t lane = 0; lane < v->r->thread_count; lane++) {
        const claim *held = &v->claims[lane];
        if (!held->number || held->is_tied)
            continue;
        v->r->threads[lane].torch_thread = held->number;
        any = v->is_done[held->from] = true;
    }
    return any;
}

int op_forward_threads_find(op_result *r) {
    voting v = {.r = r};
    const op_columns *c = &r->columns;
    for (uint64_t row = 0; row < c->count; row++)
        if (c->kind[row] == OP_TORCH && c->sequence_nr[row] >= 0) {
            v.backward_count += c->forward_thread[row] != 0;
            v.forward_count += c->forward_thread[row] == 0;
        }
    if (v.backward_count == 0 || v.forward_count == 0)
        return OP_OK;
    int rc = collect(&v);
    for (int round = 0; rc == OP_OK && round < MOST_ROUNDS && decide_all(&v); round++)
        ;
    free(v.forwards);
    free(v.backwards);
    free(v.votes);
    free(v.claims);
    free(v.is_done);
    return rc;
}

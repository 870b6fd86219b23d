#include "cuda/cupti_buffers.h"

#include "core/fault.h"

#include <string.h>
#include <time.h>

enum { READY_AT_START = 4 };

static struct {
    pthread_mutex_t lock;
    const op_cupti_library *library;
    op_cupti_buffer *empty, *full, **full_end, *out; /* `out`: those that CUPTI holds */
    size_t limit, bytes; /* of all buffers except stale ones and those past the limit */
    uint32_t full_count;
    uint64_t dropped;
    pthread_cond_t filled;
    bool woken;
} self = {.lock = PTHREAD_MUTEX_INITIALIZER,
          .filled = PTHREAD_COND_INITIALIZER,
          .limit = OP_CUPTI_BUFFERS_BYTES,
          .full_end = &self.full};

static void discard(op_cupti_buffer *b) {
    munmap(b->data, OP_CUPTI_BUFFER_BYTES);
    free(b);
}

void op_cupti_buffers_open(const op_cupti_library *library) {
    pthread_mutex_lock(&self.lock);
    self.library = library;
    pthread_mutex_unlock(&self.lock);
}

void op_cupti_buffers_limit(size_t bytes) {
    pthread_mutex_lock(&self.lock);
    self.limit = bytes ? bytes : OP_CUPTI_BUFFERS_BYTES;
    while (self.empty && self.bytes > self.limit) {
        op_cupti_buffer *b = self.empty;
        self.empty = b->next;
        self.bytes -= OP_CUPTI_BUFFER_BYTES;
        discard(b);
    }
    pthread_mutex_unlock(&self.lock);
}

static op_cupti_buffer *make(void) {
    op_cupti_buffer *b = op_malloc(sizeof *b);
    void *data = b ? op_mmap(NULL, OP_CUPTI_BUFFER_BYTES, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
                   : MAP_FAILED;
    if (data == MAP_FAILED) {
        free(b);
        return NULL;
    }
    *b = (op_cupti_buffer){.data = data};
    return b;
}

static op_cupti_buffer *make_within_limit(void) {
    if (self.bytes + OP_CUPTI_BUFFER_BYTES > self.limit)
        return NULL;
    op_cupti_buffer *b = make();
    if (b)
        self.bytes += OP_CUPTI_BUFFER_BYTES;
    return b;
}

/* Before CUDA 12.9 the library crashes if it gets no buffer. */
static op_cupti_buffer *make_past_limit(void) {
    if (!self.library || self.library->version >= OP_CUPTI_MAY_REFUSE_BUFFERS)
        return NULL;
    op_cupti_buffer *b = make();
    if (b)
        b->over = true;
    return b;
}

void op_cupti_buffers_prepare(void) {
    pthread_mutex_lock(&self.lock);
    for (op_cupti_buffer *b = self.out; b; b = b->next) {
        self.bytes -= b->stale || b->over ? 0 : OP_CUPTI_BUFFER_BYTES;
        b->stale = true;
    }
    self.dropped = 0;
    for (int i = 0; i < READY_AT_START && !(i == 0 && self.empty); i++) {
        op_cupti_buffer *b = make_within_limit();
        if (!b)
            break;
        memset(b->data, 0, OP_CUPTI_BUFFER_BYTES); /* so that its pages exist */
        b->next = self.empty;
        self.empty = b;
    }
    pthread_mutex_unlock(&self.lock);
}

void op_cupti_buffers_request(uint8_t **data, size_t *size, size_t *most_records) {
    pthread_mutex_lock(&self.lock);
    op_cupti_buffer *b = self.empty;
    if (b)
        self.empty = b->next;
    else if (!(b = make_within_limit()))
        b = make_past_limit();
    if (b) {
        b->next = self.out;
        self.out = b;
    }
    pthread_mutex_unlock(&self.lock);
    *data = b ? b->data : NULL;
    *size = b ? OP_CUPTI_BUFFER_BYTES : 0;
    *most_records = 0;
}

static uint64_t count_records(const op_cupti_buffer *b) {
    op_cupti_record *record = NULL;
    uint64_t count = 0;
    while (self.library->cupti.ActivityGetNextRecord(b->data, b->valid, &record) == OP_CUPTI_SUCCESS)
        count++;
    return count;
}

static op_cupti_buffer *take_out(const uint8_t *data) {
    for (op_cupti_buffer **link = &self.out; *link; link = &(*link)->next)
        if ((*link)->data == data) {
            op_cupti_buffer *b = *link;
            *link = b->next;
            b->next = NULL;
            return b;
        }
    return NULL;
}

void op_cupti_buffers_complete(void *context, uint32_t stream, uint8_t *data, size_t size,
                               size_t valid) {
    (void)context, (void)stream, (void)size;
    pthread_mutex_lock(&self.lock);
    op_cupti_buffer *b = take_out(data);
    if (b) {
        b->valid = valid;
        if (b->over) {
            self.dropped += count_records(b);
            discard(b);
        } else {
            self.bytes += b->stale ? OP_CUPTI_BUFFER_BYTES : 0;
            b->stale = false;
            *self.full_end = b;
            self.full_end = &b->next;
            if (++self.full_count * OP_CUPTI_BUFFER_BYTES >= self.limit / 4)
                pthread_cond_signal(&self.filled);
        }
    }
    pthread_mutex_unlock(&self.lock);
}

void op_cupti_buffers_wait(uint64_t timeout_ns) {
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    uint64_t ns = (uint64_t)until.tv_nsec + timeout_ns;
    until.tv_sec += (time_t)(ns / 1000000000u);
    until.tv_nsec = (long)(ns % 1000000000u);
    pthread_mutex_lock(&self.lock);
    while (!self.woken && self.full_count * OP_CUPTI_BUFFER_BYTES < self.limit / 4 &&
           pthread_cond_timedwait(&self.filled, &self.lock, &until) == 0)
        ;
    pthread_mutex_unlock(&self.lock);
}

void op_cupti_buffers_wake(bool awake) {
    pthread_mutex_lock(&self.lock);
    self.woken = awake;
    pthread_cond_broadcast(&self.filled);
    pthread_mutex_unlock(&self.lock);
}

op_cupti_buffer *op_cupti_buffers_take(void) {
    pthread_mutex_lock(&self.lock);
    op_cupti_buffer *b = self.full;
    if (b) {
        self.full_count--;
        if (!(self.full = b->next))
            self.full_end = &self.full;
        b->next = NULL;
    }
    pthread_mutex_unlock(&self.lock);
    return b;
}

void op_cupti_buffers_recycle(op_cupti_buffer *b) {
    memset(b->data, 0, OP_CUPTI_BUFFER_BYTES);
    b->valid = 0;
    pthread_mutex_lock(&self.lock);
    b->next = self.empty;
    self.empty = b;
    pthread_mutex_unlock(&self.lock);
}

uint64_t op_cupti_buffers_dropped(void) {
    pthread_mutex_lock(&self.lock);
    uint64_t dropped = self.dropped;
    self.dropped = 0;
    pthread_mutex_unlock(&self.lock);
    return dropped;
}

uint32_t op_cupti_buffers_missing(void) {
    uint32_t missing = 0;
    pthread_mutex_lock(&self.lock);
    for (const op_cupti_buffer *b = self.out; b; b = b->next)
        missing += !b->stale &&
                   __atomic_load_n((const uint64_t *)(const void *)b->data, __ATOMIC_RELAXED) != 0;
    pthread_mutex_unlock(&self.lock);
    return missing;
}

void op_cupti_buffers_lock(void) { pthread_mutex_lock(&self.lock); }
void op_cupti_buffers_unlock(void) { pthread_mutex_unlock(&self.lock); }
void op_cupti_buffers_after_fork(void) { pthread_cond_init(&self.filled, NULL); }

/* Another client beside the tested one, totals so far, and the reset. */
#include "fake.h"

#include <stdlib.h>

#define THEIR_BYTES (1u << 16)

static void CUPTIAPI their_request(uint8_t **data, size_t *size, size_t *most) {
    *size = THEIR_BYTES;
    *most = 0;
    *data = aligned_alloc(8, *size);
}

static void CUPTIAPI their_complete(CUcontext context, uint32_t stream, uint8_t *data, size_t size,
                                    size_t valid) {
    (void)context;
    (void)stream;
    (void)valid;
    if (size == THEIR_BYTES)
        free(data);
}

void fake_other_client(int on) {
    if (!on)
        fake_flush(true);
    fake_lock(__func__);
    if (on)
        fake_set_callbacks((fake_callbacks){.request = their_request, .complete = their_complete});
    else
        fake_disable_all();
    fake_unlock();
}

void fake_count(fake_totals *out) {
    fake_lock(__func__);
    fake_add_buffer_totals(out);
    fake_add_device_totals(out);
    fake_unlock();
}

void fake_reset(void) {
    fake_reset_device();
    fake_lock(__func__);
    fake_reset_buffers();
    fake_disable_all();
    fake_want_idle_queries(true);
    fake_reset_settings();
    fake_unlock();
    fake_reset_entries();
    fake_reset_run();
}

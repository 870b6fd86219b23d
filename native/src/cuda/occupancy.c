/* Follows CUDA's occupancy calculator: registers are allocated to warps, in portions, within a quarter
 * of a multiprocessor; shared memory to blocks, in portions, from 8.0 on with 1 KiB for CUDA itself
 * ("Technical Specifications per Compute Capability" in the CUDA C++ Programming Guide, the tuning
 * guides of each architecture, cuda_occupancy.h). */
#include "cuda/occupancy.h"

#include <stdint.h>

enum { REGISTER_PORTION = 256, RESERVED_SHARED = 1024 };

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t divided_up(int64_t n, int64_t by) { return (n + by - 1) / by; }
static int64_t rounded_up(int64_t n, int64_t to) { return divided_up(n, to) * to; }

/* Most blocks that a multiprocessor can hold; 0: unknown architecture. */
static int64_t most_blocks(int major, int minor) {
    switch (major) {
    case 5:
    case 6:
    case 9:
        return 32;
    case 7:
        return minor == 5 ? 16 : 32;
    case 8:
        return minor == 0 ? 32 : minor == 9 ? 24 : 16;
    case 10:
        return minor == 1 ? 24 : 32;
    case 11:
        return minor == 0 ? 24 : 32;
    case 12:
        return 24;
    default:
        return 0;
    }
}

static int64_t by_registers(const int *device, int64_t registers, int64_t warps) {
    bool halves = device[OP_DEVICE_MAJOR] == 6 && device[OP_DEVICE_MINOR] == 0;
    int64_t parts = halves ? 2 : 4;
    int64_t of_warp = rounded_up(registers * device[OP_DEVICE_WARP], REGISTER_PORTION);
    if (of_warp == 0)
        return INT64_MAX;
    if (of_warp * rounded_up(warps, 4) > device[OP_DEVICE_BLOCK_REGISTERS])
        return 0;
    return device[OP_DEVICE_REGISTERS] / parts / of_warp * parts / warps;
}

static int64_t by_shared(const int *device, int64_t bytes) {
    bool is_reserved = device[OP_DEVICE_MAJOR] >= 8;
    int64_t reserved = is_reserved ? RESERVED_SHARED : 0;
    int64_t of_block = rounded_up(bytes + reserved, is_reserved ? 128 : 256);
    if (of_block == 0)
        return INT64_MAX;
    if (of_block > device[OP_DEVICE_BLOCK_SHARED_OPTIN] + reserved)
        return 0;
    return device[OP_DEVICE_SHARED] / of_block;
}

int op_occupancy_percent(const op_cuda_device *device, const op_device_work *k) {
    const int *d = device->values;
    int64_t blocks = most_blocks(d[OP_DEVICE_MAJOR], d[OP_DEVICE_MINOR]);
    int64_t threads = (int64_t)k->block[0] * k->block[1] * k->block[2];
    if (!blocks || threads <= 0 || d[OP_DEVICE_WARP] <= 0 || d[OP_DEVICE_THREADS] <= 0 ||
        d[OP_DEVICE_PROCESSORS] <= 0)
        return -1;
    int64_t warps = divided_up(threads, d[OP_DEVICE_WARP]);
    blocks = least(blocks, d[OP_DEVICE_THREADS] / d[OP_DEVICE_WARP] / warps);
    blocks = least(blocks, by_registers(d, k->registers, warps));
    blocks = least(blocks, by_shared(d, (int64_t)k->static_shared + k->dynamic_shared));
    double launched = (double)k->grid[0] * k->grid[1] * k->grid[2] / d[OP_DEVICE_PROCESSORS];
    double held = launched < (double)blocks ? launched : (double)blocks;
    return (int)(0.5 + 100 * held * (double)threads / d[OP_DEVICE_THREADS]);
}

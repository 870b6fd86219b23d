/* A libnvidia-ml.so.1 whose devices are those of the variable MANAGED_DEVICES: "90 90", "86 75". What
 * stands there as 0 does not tell what it is. Each shutdown adds a line to the file MANAGED_DEVICES_LOG. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int started;
static int capability[16];
static unsigned count;

int nvmlInit_v2(void) {
    const char *text = getenv("MANAGED_DEVICES");
    if (!text)
        return 9; /* NVML_ERROR_DRIVER_NOT_LOADED */
    started++;
    for (count = 0; *text && count < 16; count++) {
        char *end;
        capability[count] = (int)strtol(text, &end, 10);
        text = end;
    }
    return 0;
}

int nvmlShutdown(void) {
    const char *path = getenv("MANAGED_DEVICES_LOG");
    FILE *log = path ? fopen(path, "a") : NULL;
    started--;
    if (log) {
        fputs("shut down\n", log);
        fclose(log);
    }
    return 0;
}

int nvmlDeviceGetCount_v2(unsigned *out) {
    *out = count;
    return started == 1 ? 0 : 1;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **device) {
    *device = &capability[index];
    return index < count ? 0 : 2;
}

int nvmlDeviceGetCudaComputeCapability(void *device, int *major, int *minor) {
    int number = *(int *)device;
    *major = number / 10;
    *minor = number % 10;
    return number ? 0 : 3;
}

#include "core/name_text.h"

#include <inttypes.h>
#include <stdio.h>

size_t op_name_shortened(char *out, const char *text, size_t length) {
    const size_t digest = 17;
    size_t kept = OP_NAME_MAX_BYTES - digest;
    while (kept > 0 && ((uint8_t)text[kept] & 0xc0) == 0x80)
        kept--;
    memcpy(out, text, kept);
    snprintf(out + kept, digest + 1, "~%016" PRIx64, op_name_digest(text, length));
    return kept + digest;
}

bool op_name_find_line(const char *text, size_t bytes, size_t *begin, size_t *end) {
    for (size_t at = bytes; at-- > 3;) {
        if (memcmp(text + at - 2, "): ", 3) != 0)
            continue;
        size_t digit = at - 2;
        while (digit > 0 && text[digit - 1] >= '0' && text[digit - 1] <= '9')
            digit--;
        if (digit == at - 2 || digit == 0 || text[digit - 1] != '(')
            continue;
        *begin = digit - 1;
        *end = at - 1;
        return true;
    }
    return false;
}

/* Floating-point numbers as text with a point, whatever the program's locale has in its place. */
#ifndef OP_REAL_TEXT_H
#define OP_REAL_TEXT_H

#include <stdio.h>
#include <string.h>

#define OP_REAL_BYTES 40 /* of up to 17 digits, with a separator of several bytes */

/* As printf writes %.*g. */
static inline const char *op_real_text(char text[OP_REAL_BYTES], int digits, double value) {
    snprintf(text, OP_REAL_BYTES, "%.*g", digits, value);
    char *to = text;
    for (const char *from = text; *from; from++) {
        if (strchr("+-0123456789aefin", *from)) /* also of "inf" and "nan" */
            *to++ = *from;
        else if (to == text || to[-1] != '.')
            *to++ = '.';
    }
    *to = 0;
    return text;
}

#endif

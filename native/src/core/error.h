/* The message behind an error code, one per thread. */
#ifndef OP_ERROR_H
#define OP_ERROR_H

/* Both return the code, to be returned; op_error_errno() appends errno's text and returns OP_EIO. */
int op_error_set(int code, const char *format, ...) __attribute__((format(printf, 2, 3)));
int op_error_errno(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif

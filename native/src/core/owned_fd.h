/* A descriptor of ours and the file it should refer to: programs close descriptors that they do not
 * know (`os.closerange`), and their own files may then get the same numbers. */
#ifndef OP_OWNED_FD_H
#define OP_OWNED_FD_H

#include <stdbool.h>
#include <sys/stat.h>

typedef struct op_owned_fd {
    int fd; /* -1: none */
    dev_t device;
    ino_t inode;
} op_owned_fd;

#define OP_HELD_NONE ((op_owned_fd){.fd = -1})

op_owned_fd op_hold(int fd);            /* remembers the file that `fd` refers to now; -1 holds none */
bool op_holds(const op_owned_fd *held); /* the descriptor still refers to that file */
/* Reopens the path if somebody closed the descriptor; false: the file is gone. */
bool op_regain(op_owned_fd *held, const char *path);
void op_let_go(op_owned_fd *held); /* closes it, unless it now refers to somebody else's file */

#endif

/* A descriptor of ours, and the file it must still be of: programs close descriptors that they do not
 * know
 * (`os.closerange`), and files of theirs get the numbers. */
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

op_owned_fd op_hold(int fd);            /* the file that it is of now; -1 holds none */
bool op_holds(const op_owned_fd *held); /* the descriptor is still of that file */
/* Anew by its path, where somebody closed the descriptor; false: it cannot be had. */
bool op_regain(op_owned_fd *held, const char *path);
void op_let_go(op_owned_fd *held); /* closes it, unless it is of a file of somebody else's by now */

#endif

#include "core/owned_fd.h"

#include "core/fault.h"

op_owned_fd op_hold(int fd) {
    struct stat info = {0};
    if (fd < 0 || fstat(fd, &info) != 0)
        return OP_HELD_NONE;
    return (op_owned_fd){.fd = fd, .device = info.st_dev, .inode = info.st_ino};
}

bool op_holds(const op_owned_fd *held) {
    op_owned_fd now = op_hold(held->fd);
    return now.fd >= 0 && now.device == held->device && now.inode == held->inode;
}

bool op_regain(op_owned_fd *held, const char *path) {
    if (op_holds(held))
        return true;
    op_owned_fd again = op_hold(op_open_file(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW, 0));
    if (again.fd < 0)
        return false;
    if (again.device != held->device || again.inode != held->inode) {
        close(again.fd);
        return false;
    }
    *held = again;
    return true;
}

void op_let_go(op_owned_fd *held) {
    if (op_holds(held))
        close(held->fd);
    *held = OP_HELD_NONE;
}

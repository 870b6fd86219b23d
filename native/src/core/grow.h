/* Arrays that double when they are full. */
#ifndef OP_GROW_H
#define OP_GROW_H

#include "core/fault.h"

#include <stdbool.h>
#include <stddef.h>

/* Makes room for one element more than `count`: a full array doubles, an empty one gets `first`
 * elements. False: no memory, and the array is unchanged. Assigns to `array` and `capacity` if the
 * array grows. */
#define OP_HAS_ROOM(array, count, capacity, first)                                                     \
    __extension__({                                                                                    \
        bool has_room_ = (count) < (capacity);                                                         \
        if (!has_room_) {                                                                              \
            size_t more_ = (capacity) ? (size_t)(capacity) * 2 : (first);                              \
            void *grown_ = op_realloc((array), more_ * sizeof *(array));                               \
            if (grown_) {                                                                              \
                (array) = grown_;                                                                      \
                (capacity) = (__typeof__(capacity))more_;                                              \
                has_room_ = true;                                                                      \
            }                                                                                          \
        }                                                                                              \
        has_room_;                                                                                     \
    })

#endif

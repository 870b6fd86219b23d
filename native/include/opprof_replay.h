/* The arguments of a replay mark: a magic number that nothing else passes, then which mark it is. */
#ifndef OPPROF_REPLAY_H
#define OPPROF_REPLAY_H

#define OP_REPLAY_MAGIC 0x6f7070726f66u
#define OP_REPLAY_BEGIN 1
#define OP_REPLAY_END 2

#endif

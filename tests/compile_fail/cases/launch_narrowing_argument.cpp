// A count that does not fit in the kernel's int would arrive as another count.
// expect: "does not convert to it without loss"
#include "tessera/launch.hpp"

using namespace tessera;

#ifdef NEGATIVE
void count_up(int limit);
#else
void count_up(long long limit);
#endif

void run(StreamRef stream, long long limit) { launch(count_up, LaunchConfig(stream, {1}, {32}), limit); }

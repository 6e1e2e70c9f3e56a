// Two owners would destroy one event twice.
// expect g++: "use of deleted function 'tessera::Event::Event(const tessera::Event&)'"
// expect clang++: "call to deleted constructor of 'Event'"
#include "tessera/event.hpp"

using namespace tessera;

#ifdef NEGATIVE
Event second(const Event& event) { return event; }
#else
const Event& second(const Event& event) { return event; }
#endif

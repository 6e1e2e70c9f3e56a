// Does this compiler know std::source_location? Compiled at configure time only.
#include <source_location>
unsigned line(std::source_location here = std::source_location::current()) { return here.line(); }

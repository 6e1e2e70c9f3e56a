# The README shows examples/quickstart/main.cpp, byte for byte: cmake -DROOT=<repository> -P ...
file(READ ${ROOT}/README.md readme)
file(READ ${ROOT}/examples/quickstart/main.cpp example)
string(FIND "${readme}" "```cpp\n${example}```" position)
if(position EQUAL -1)
    message(FATAL_ERROR "README.md does not hold examples/quickstart/main.cpp as it is")
endif()

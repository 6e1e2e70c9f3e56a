# For an example built as a project of its own against an installed SDK: defines what examples/CMakeLists.txt and the SDK's
# build define otherwise. You choose the warnings, and there are no tests.

add_library(example_common INTERFACE)
target_include_directories(example_common INTERFACE ${CMAKE_CURRENT_LIST_DIR}/..)

function(tessera_compile target)
    target_compile_features(${target} PRIVATE cxx_std_20)
endfunction()
function(add_example_test)
endfunction()
function(add_output_test)
endfunction()

# Puts the C library beside the module, under its soname, without symbols that nobody can use.
file(REAL_PATH ${library} real)
get_filename_component(real_name ${real} NAME)
string(REGEX REPLACE "([.]so[.][0-9]+[.][0-9]+)[.].*" "\\1" soname ${real_name})
set(folder "${CMAKE_INSTALL_PREFIX}/tessera")
file(INSTALL DESTINATION ${folder} TYPE SHARED_LIBRARY FILES ${real})
file(RENAME ${folder}/${real_name} ${folder}/${soname})
execute_process(COMMAND ${stripper} --strip-unneeded ${folder}/${soname} COMMAND_ERROR_IS_FATAL ANY)

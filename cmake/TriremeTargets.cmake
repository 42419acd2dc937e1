# Compile settings shared by the library and everything built beside it.
add_library(trireme_settings INTERFACE)
target_compile_features(trireme_settings INTERFACE cxx_std_20)
target_compile_options(
  trireme_settings INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wnon-virtual-dtor -Wold-style-cast -Werror)
# Two of the warnings cover more in clang than in GCC: changes of sign, and equal names in a unity build. clang also warns about functions
# that GCC 12's standard library deprecates and uses itself.
target_compile_options(trireme_settings INTERFACE $<$<CXX_COMPILER_ID:Clang>:-Wno-sign-conversion -Wno-shadow
                                                  -Wno-deprecated-declarations>)
# False warnings of GCC 13 and newer: about a fill whose count may be below 0, and about the value of an empty optional.
foreach(suspicion IN ITEMS maybe-uninitialized stringop-overflow)
  target_compile_options(
    trireme_settings INTERFACE $<$<AND:$<COMPILE_LANG_AND_ID:CXX,GNU>,$<VERSION_GREATER_EQUAL:$<CXX_COMPILER_VERSION>,13>>:-Wno-${suspicion}>)
endforeach()
# Aligns loops: otherwise their speed depends on where the linker puts a function; the same code took a seventh longer elsewhere.
target_compile_options(trireme_settings INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-falign-loops=32>)

# The files of a room are compiled together, 20 at a time, which is faster; CMAKE_UNITY_BUILD=OFF compiles each alone.
if(NOT DEFINED CMAKE_UNITY_BUILD)
  set(CMAKE_UNITY_BUILD ON)
endif()
if(NOT DEFINED CMAKE_UNITY_BUILD_BATCH_SIZE)
  set(CMAKE_UNITY_BUILD_BATCH_SIZE 20)
endif()
if(CMAKE_UNITY_BUILD) # GCC takes a source in a unity build for a header, whose anonymous namespace others may see
  add_compile_options($<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-subobject-linkage>)
endif()

# GCC spends a seventh of its time on freeing memory. Where each of ninja's compilers can have 2 GiB, it starts to free later.
cmake_host_system_information(RESULT memory QUERY TOTAL_PHYSICAL_MEMORY)
cmake_host_system_information(RESULT cores QUERY NUMBER_OF_LOGICAL_CORES)
math(EXPR needed "2048 * (${cores} + 2)")
if(memory GREATER_EQUAL needed)
  add_compile_options("$<$<COMPILE_LANG_AND_ID:CXX,GNU>:--param=ggc-min-heapsize=600000>")
endif()

# Links this project's own programs with a faster linker where one is installed.
if(PROJECT_IS_TOP_LEVEL AND NOT CMAKE_EXE_LINKER_FLAGS MATCHES "-fuse-ld")
  find_program(TRIREME_LINKER NAMES ld.mold ld.lld)
  mark_as_advanced(TRIREME_LINKER)
  if(TRIREME_LINKER MATCHES "ld\\.(mold|lld)$")
    add_link_options(-fuse-ld=${CMAKE_MATCH_1})
  endif()
endif()

# trireme_name_symbols(LIBRARY VERSION): gives the symbols of a shared library this version. The loader binds programs to the version that
# they were linked with, so that one process can hold two versions.
function(trireme_name_symbols library version)
  set(script ${CMAKE_CURRENT_BINARY_DIR}/${library}.map)
  file(WRITE ${script} "TRIREME_${version} {\n  *;\n};\n")
  target_link_options(${library} PRIVATE -Wl,--version-script=${script})
  set_target_properties(${library} PROPERTIES LINK_DEPENDS ${script})
endfunction()

# trireme_room(NAME [source...]): one room of the library, compiled as an object library of its own.
function(trireme_room name)
  trireme_room_of(trireme ${name} ${ARGN})
endfunction()

# trireme_room_of(LIBRARY NAME [source...]): the same for another library.
function(trireme_room_of library name)
  set(room trireme_${name})
  add_library(${room} OBJECT EXCLUDE_FROM_ALL ${ARGN})
  target_include_directories(${room} PUBLIC ${PROJECT_SOURCE_DIR}/include PRIVATE ${PROJECT_SOURCE_DIR}/src)
  target_link_libraries(${room} PUBLIC fmt::fmt PRIVATE trireme_settings Threads::Threads OpenMP::OpenMP_CXX)
  set_target_properties(${room} PROPERTIES POSITION_INDEPENDENT_CODE ON)
  target_sources(${library} PRIVATE $<TARGET_OBJECTS:${room}>)
endfunction()

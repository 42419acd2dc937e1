# Compile settings shared by the library and everything built beside it.
add_library(trireme_settings INTERFACE)
target_compile_features(trireme_settings INTERFACE cxx_std_20)
target_compile_options(
  trireme_settings INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wnon-virtual-dtor -Wold-style-cast -Werror)
# clang means more by two of them than GCC: signs that change, and names that a unity build brings together. And it tells of what
# GCC 12's standard library deprecates and uses itself.
target_compile_options(trireme_settings INTERFACE $<$<CXX_COMPILER_ID:Clang>:-Wno-sign-conversion -Wno-shadow
                                                  -Wno-deprecated-declarations>)
# GCC 13 and newer suspect, falsely, the memory behind a fill whose count may be below 0, and what an empty optional holds.
foreach(suspicion IN ITEMS maybe-uninitialized stringop-overflow)
  target_compile_options(
    trireme_settings INTERFACE $<$<AND:$<COMPILE_LANG_AND_ID:CXX,GNU>,$<VERSION_GREATER_EQUAL:$<CXX_COMPILER_VERSION>,13>>:-Wno-${suspicion}>)
endforeach()
# Where the linker puts a function decides about its loops otherwise: the same machine code took a seventh longer elsewhere.
target_compile_options(trireme_settings INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-falign-loops=32>)

# The files of a room are compiled together, 20 at a time, which is quicker; CMAKE_UNITY_BUILD=OFF compiles each alone.
if(NOT DEFINED CMAKE_UNITY_BUILD)
  set(CMAKE_UNITY_BUILD ON)
endif()
if(NOT DEFINED CMAKE_UNITY_BUILD_BATCH_SIZE)
  set(CMAKE_UNITY_BUILD_BATCH_SIZE 20)
endif()
if(CMAKE_UNITY_BUILD) # to GCC such a file is an included one, whose anonymous namespace others may see
  add_compile_options($<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-subobject-linkage>)
endif()

# A seventh of GCC's time goes into freeing memory: where each of ninja's compilers can have 2 GiB it begins later with it.
cmake_host_system_information(RESULT memory QUERY TOTAL_PHYSICAL_MEMORY)
cmake_host_system_information(RESULT cores QUERY NUMBER_OF_LOGICAL_CORES)
math(EXPR needed "2048 * (${cores} + 2)")
if(memory GREATER_EQUAL needed)
  add_compile_options("$<$<COMPILE_LANG_AND_ID:CXX,GNU>:--param=ggc-min-heapsize=600000>")
endif()

# Of this project's own programs: a quicker linker where one is installed.
if(PROJECT_IS_TOP_LEVEL AND NOT CMAKE_EXE_LINKER_FLAGS MATCHES "-fuse-ld")
  find_program(TRIREME_LINKER NAMES ld.mold ld.lld)
  mark_as_advanced(TRIREME_LINKER)
  if(TRIREME_LINKER MATCHES "ld\\.(mold|lld)$")
    add_link_options(-fuse-ld=${CMAKE_MATCH_1})
  endif()
endif()

# trireme_name_symbols(LIBRARY VERSION): the loader binds who was linked with this shared library to symbols of this version, so
# that two can be in one process.
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

# trireme_room_of(LIBRARY NAME [source...]): the same of another library.
function(trireme_room_of library name)
  set(room trireme_${name})
  add_library(${room} OBJECT EXCLUDE_FROM_ALL ${ARGN})
  target_include_directories(${room} PUBLIC ${PROJECT_SOURCE_DIR}/include PRIVATE ${PROJECT_SOURCE_DIR}/src)
  target_link_libraries(${room} PUBLIC fmt::fmt PRIVATE trireme_settings Threads::Threads OpenMP::OpenMP_CXX)
  set_target_properties(${room} PROPERTIES POSITION_INDEPENDENT_CODE ON)
  target_sources(${library} PRIVATE $<TARGET_OBJECTS:${room}>)
endfunction()

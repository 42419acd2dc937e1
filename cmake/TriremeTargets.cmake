# Compile settings shared by the library and everything built beside it.
add_library(trireme_settings INTERFACE)
target_compile_features(trireme_settings INTERFACE cxx_std_20)
target_compile_options(
  trireme_settings INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wnon-virtual-dtor -Wold-style-cast -Werror)
# clang means more by two of them than GCC: signs that change, and names that a unity build brings together. And it tells of what
# GCC 12's standard library deprecates and uses itself.
target_compile_options(trireme_settings INTERFACE $<$<CXX_COMPILER_ID:Clang>:-Wno-sign-conversion -Wno-shadow
                                                  -Wno-deprecated-declarations>)

# trireme_room(NAME [source...]): one room of the library, compiled as an object library of its own.
function(trireme_room name)
  set(room trireme_${name})
  add_library(${room} OBJECT ${ARGN})
  target_include_directories(${room} PUBLIC ${PROJECT_SOURCE_DIR}/include PRIVATE ${PROJECT_SOURCE_DIR}/src)
  target_link_libraries(${room} PUBLIC fmt::fmt PRIVATE trireme_settings Threads::Threads)
  set_target_properties(${room} PROPERTIES POSITION_INDEPENDENT_CODE ON)
  target_sources(trireme PRIVATE $<TARGET_OBJECTS:${room}>)
endfunction()

# trireme_map_sources(TARGET file...): sources of a target that call map() (trireme/autograd/operations/map.hpp), compiled so that its loops
# become vector code. A file.cu gets the flags that nvcc needs for expressions on GPU tensors.
#
#   add_executable(my_program main.cpp)
#   trireme_map_sources(my_program my_operations.cpp)
#
# These flags change at most the last bits of results: errno and floating-point traps are not set, and fused multiply-add is used
# wherever the instruction set has it.
function(trireme_map_sources target)
  target_sources(${target} PRIVATE ${ARGN})
  foreach(file IN LISTS ARGN)
    if(file MATCHES "\\.cu$")
      set(definitions FMT_USE_CONSTEXPR=1) # without it, fmt 9 does not compile as C++20 by nvcc
      set(options -std=c++20 --expt-relaxed-constexpr --extended-lambda) # CMake 3.25 does not know nvcc's flag for C++20
    else()
      set(definitions TRIREME_MAP_SIMD)
      set(options -O2 -fopenmp-simd -fno-math-errno -fno-trapping-math $<IF:$<CXX_COMPILER_ID:Clang>,-ffp-contract=on,-ffp-contract=fast>
                  $<$<CXX_COMPILER_ID:Clang>:-Wno-pass-failed>)
    endif()
    set_property(SOURCE ${file} APPEND PROPERTY COMPILE_DEFINITIONS ${definitions})
    set_property(SOURCE ${file} APPEND PROPERTY COMPILE_OPTIONS ${options})
    set_source_files_properties(${file} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON SKIP_PRECOMPILE_HEADERS ON)
  endforeach()
endfunction()

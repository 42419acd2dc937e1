# Vector code: every kernel file is compiled once per instruction set and chosen at run time (device/isa.hpp).
set(TRIREME_ISAS baseline)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64|amd64)$")
  list(APPEND TRIREME_ISAS avx2 avx512)
endif()
set(TRIREME_KERNELS all CACHE STRING "Instruction sets that kernels are compiled for: all, or native, the best of this processor alone")
set_property(CACHE TRIREME_KERNELS PROPERTY STRINGS all native)
set(TRIREME_ISA_FLAGS_baseline "")
set(TRIREME_ISA_FLAGS_avx2 -mavx2 -mfma -mf16c)
set(TRIREME_ISA_FLAGS_avx512 ${TRIREME_ISA_FLAGS_avx2} -mavx512f -mavx512bw -mavx512dq -mavx512vl -mprefer-vector-width=512)

# The part of TRIREME_ISAS that is compiled. For "native" the compiler reports what this processor has.
set(TRIREME_BUILT_ISAS ${TRIREME_ISAS})
if(TRIREME_KERNELS STREQUAL "native")
  execute_process(COMMAND ${CMAKE_CXX_COMPILER} -march=native -dM -E -x c++ /dev/null OUTPUT_VARIABLE macros)
  set(TRIREME_BUILT_ISAS baseline)
  if(macros MATCHES "__AVX2__" AND macros MATCHES "__FMA__" AND macros MATCHES "__F16C__")
    set(TRIREME_BUILT_ISAS avx2)
    if(macros MATCHES "__AVX512F__" AND macros MATCHES "__AVX512BW__" AND macros MATCHES "__AVX512DQ__" AND macros MATCHES "__AVX512VL__")
      set(TRIREME_BUILT_ISAS avx512)
    endif()
  endif()
  message(STATUS "Kernels for ${TRIREME_BUILT_ISAS} alone; TRIREME_KERNELS=all builds for every processor")
elseif(NOT TRIREME_KERNELS STREQUAL "all")
  message(FATAL_ERROR "TRIREME_KERNELS is ${TRIREME_KERNELS}; set it to all or native")
endif()

# Kernels are optimised in every build type. Nobody reads errno and floating-point traps. Fused multiply-add is used wherever the
# instruction set has it. With "on", clang fuses within an expression, in the same way in a loop's vectors and in its remaining
# elements; with "fast" it may fuse a * b + c * d differently there, and an element's bits would depend on its place. GCC has no mode
# "on"; with "fast" the tests of fixed bits pass.
add_library(trireme_kernel_settings INTERFACE)
target_compile_options(
  trireme_kernel_settings INTERFACE -O3 -fopenmp-simd $<IF:$<CXX_COMPILER_ID:Clang>,-ffp-contract=on,-ffp-contract=fast>
                                    -fno-math-errno -fno-trapping-math -fno-exceptions)
# clang vectorises fewer loops than GCC, and warns about each `omp simd` loop that it can't vectorise: those that call the C library.
target_compile_options(trireme_kernel_settings INTERFACE $<$<CXX_COMPILER_ID:Clang>:-Wno-pass-failed>)

# trireme_kernels(ROOM FILE...): adds the kernel files of a room, each compiled with -DTRIREME_ISA=<isa> for every isa. Instruction
# sets that are not compiled get empty tables.
function(trireme_kernels room)
  foreach(isa IN LISTS TRIREME_ISAS)
    set(kernels trireme_${room}_kernels_${isa})
    if(isa IN_LIST TRIREME_BUILT_ISAS)
      add_library(${kernels} OBJECT ${ARGN})
      target_compile_options(${kernels} PRIVATE ${TRIREME_ISA_FLAGS_${isa}})
      set_property(GLOBAL APPEND PROPERTY TRIREME_KERNEL_OBJECTS $<TARGET_OBJECTS:${kernels}>)
    else()
      trireme_empty_tables(source ${room} ${isa} ${ARGN})
      add_library(${kernels} OBJECT ${source})
    endif()
    target_include_directories(${kernels} PRIVATE ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src)
    target_compile_definitions(${kernels} PRIVATE TRIREME_ISA=${isa})
    target_link_libraries(${kernels} PRIVATE trireme_settings trireme_kernel_settings)
    set_target_properties(${kernels} PROPERTIES POSITION_INDEPENDENT_CODE ON UNITY_BUILD OFF)
    target_sources(trireme PRIVATE $<TARGET_OBJECTS:${kernels}>)
  endforeach()
endfunction()

# trireme_empty_tables(VARIABLE ROOM ISA FILE...): writes a source that defines, empty, the tables that the kernel files' headers
# declare with TRIREME_KERNEL_TABLE.
function(trireme_empty_tables variable room isa)
  set(content "")
  foreach(file IN LISTS ARGN)
    string(REPLACE .cpp .hpp header ${CMAKE_CURRENT_SOURCE_DIR}/${file})
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${header})
    file(STRINGS ${header} declared REGEX "^namespace trireme::|^TRIREME_KERNEL_TABLE")
    string(APPEND content "#include \"${header}\"\n")
    foreach(line IN LISTS declared)
      if(line MATCHES "^namespace (trireme::[a-z]+)")
        set(namespace ${CMAKE_MATCH_1})
      elseif(line MATCHES "^TRIREME_KERNEL_TABLE\\((.+), ([a-z0-9_]+)\\)")
        string(APPEND content "namespace ${namespace}::${isa} {\nconst ${CMAKE_MATCH_1} ${CMAKE_MATCH_2}{};\n}\n")
      endif()
    endforeach()
  endforeach()
  set(source ${CMAKE_CURRENT_BINARY_DIR}/${room}_without_${isa}.cpp)
  file(CONFIGURE OUTPUT ${source} CONTENT "${content}" @ONLY)
  set(${variable} ${source} PARENT_SCOPE)
endfunction()

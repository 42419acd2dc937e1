# Vector code: every kernel file is compiled once per instruction set and chosen at run time (device/isa.hpp).
set(TRIREME_ISAS baseline)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64|amd64)$")
  list(APPEND TRIREME_ISAS avx2 avx512)
endif()
set(TRIREME_ISA_FLAGS_baseline "")
set(TRIREME_ISA_FLAGS_avx2 -mavx2 -mfma -mf16c)
set(TRIREME_ISA_FLAGS_avx512 ${TRIREME_ISA_FLAGS_avx2} -mavx512f -mavx512bw -mavx512dq -mavx512vl -mprefer-vector-width=512)

# Kernels are optimised in every build type. None of these flags changes a result: errno and floating-point traps are
# not read, fused multiply-add is used wherever the instruction set has it: clang fuses within an expression, where it fuses
# a * b + c * d alike in a loop's vectors and in the elements that are left; with "fast" it may not, and an element's bits would
# depend on its place. GCC has no such mode; with "fast" the
# tests of fixed bits pass.
add_library(trireme_kernel_settings INTERFACE)
target_compile_options(
  trireme_kernel_settings INTERFACE -O3 -fopenmp-simd $<IF:$<CXX_COMPILER_ID:Clang>,-ffp-contract=on,-ffp-contract=fast>
                                    -fno-math-errno -fno-trapping-math -fno-exceptions)
# clang makes vector code of fewer loops than GCC, and warns of each that asks for it: those that call the C library.
target_compile_options(trireme_kernel_settings INTERFACE $<$<CXX_COMPILER_ID:Clang>:-Wno-pass-failed>)

# trireme_kernels(ROOM file...): adds the kernel files of a room, each compiled with -DTRIREME_ISA=<isa> for every isa.
function(trireme_kernels room)
  foreach(isa IN LISTS TRIREME_ISAS)
    set(kernels trireme_${room}_kernels_${isa})
    add_library(${kernels} OBJECT ${ARGN})
    target_include_directories(${kernels} PRIVATE ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src)
    target_compile_definitions(${kernels} PRIVATE TRIREME_ISA=${isa})
    target_compile_options(${kernels} PRIVATE ${TRIREME_ISA_FLAGS_${isa}})
    target_link_libraries(${kernels} PRIVATE trireme_settings trireme_kernel_settings)
    set_target_properties(${kernels} PROPERTIES POSITION_INDEPENDENT_CODE ON UNITY_BUILD OFF)
    target_sources(trireme PRIVATE $<TARGET_OBJECTS:${kernels}>)
    set_property(GLOBAL APPEND PROPERTY TRIREME_KERNEL_OBJECTS $<TARGET_OBJECTS:${kernels}>)
  endforeach()
endfunction()

#pragma once

// Marks functions that kernel files compile once per instruction set, and that nvcc compiles for GPUs. Such functions are
// always inlined, so that the linker never uses the copy for one instruction set in the code for another.
#ifdef __CUDACC__
#define TRIREME_HOST_DEVICE __host__ __device__ __forceinline__
#ifdef __CUDA_ARCH__
#define TRIREME_UNROLL(times) _Pragma("unroll")  // fully
#else
#define TRIREME_UNROLL(times)
#endif
#define TRIREME_INLINED
#else
#define TRIREME_HOST_DEVICE [[gnu::always_inline]] inline
#define TRIREME_INLINED __attribute__((always_inline))  // for lambdas: [](int i) TRIREME_INLINED { ... }
#define TRIREME_PRAGMA(text) _Pragma(#text)
#define TRIREME_UNROLL(times) TRIREME_PRAGMA(GCC unroll times)
#endif

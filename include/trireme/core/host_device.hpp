#pragma once

// For functions that kernel files compile once per instruction set, and nvcc for GPUs. They are always inlined, so that the
// linker never uses one instruction set's copy in another's code.
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

#pragma once

// For formulas that kernel files compile once per instruction set, and nvcc for GPUs: always inlined, so that the linker
// never takes one instruction set's copy for another's.
#ifdef __CUDACC__
#define TRIREME_HOST_DEVICE __host__ __device__ __forceinline__
#else
#define TRIREME_HOST_DEVICE [[gnu::always_inline]] inline
#endif

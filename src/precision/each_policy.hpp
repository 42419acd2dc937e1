#pragma once

#include "trireme/precision/policy.hpp"

// TRIREME_EACH_POLICY(X) expands to X(P) for each precision policy that a file of models or optimizers is compiled for: those
// of the library, or with TRIREME_FLOAT64 the additional one that tests need.
#ifdef TRIREME_FLOAT64
#define TRIREME_EACH_POLICY(X) X(Float64)
#define TRIREME_EACH_UNMIXED_POLICY(X) X(Float64)
#else
#define TRIREME_EACH_POLICY(X) X(Float32) X(MixedBfloat16) X(MixedFloat16)
#define TRIREME_EACH_UNMIXED_POLICY(X) X(Float32)
#endif

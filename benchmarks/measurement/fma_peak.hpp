#pragma once

// Floating-point operations per second of float32 fused multiply-adds in registers, on this thread, with the widest vectors
// of this CPU: what no program exceeds.
double measure_fma_peak();

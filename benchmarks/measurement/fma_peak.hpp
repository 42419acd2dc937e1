#pragma once

// Floating-point operations per second of float32 fused multiply-adds in registers, on this thread, with the widest vectors
// of this CPU that have at most so many floats: what no program exceeds.
double measure_fma_peak(int most_lanes = 16);

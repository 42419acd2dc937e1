#pragma once

// Floating-point operations per second of float32 fused multiply-adds in registers, on this thread, with the vectors of
// device::current_isa(): the upper bound for a program with that instruction set. Takes 40 ms.
double measure_fma_peak();

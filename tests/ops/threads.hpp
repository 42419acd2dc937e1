#pragma once

#include <omp.h>

// Runs `action` with `count` OpenMP threads.
template <typename Action>
void with_threads(int count, const Action& action) {
  const int before = omp_get_max_threads();
  omp_set_num_threads(count);
  action();
  omp_set_num_threads(before);
}

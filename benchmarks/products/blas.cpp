#include <dlfcn.h>

#include "products/ways.hpp"

Blas::Blas(const std::vector<std::string>& files) {
  for (const std::string& file : files) {
    void* library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);  // never closed: its threads may still run
    if (library == nullptr) continue;
    sgemm_ = reinterpret_cast<Sgemm>(dlsym(library, "cblas_sgemm"));
    if (sgemm_ == nullptr) continue;
    file_ = file;
    return;
  }
}

void Blas::multiply(bool transpose_a, bool transpose_b, int m, int n, int k, const float* a, const float* b, float* c) const {
  constexpr int row_major = 101;  // as cblas.h has them
  constexpr int as_it_is = 111;
  constexpr int transposed = 112;
  sgemm_(row_major, transpose_a ? transposed : as_it_is, transpose_b ? transposed : as_it_is, m, n, k, 1, a,
         transpose_a ? m : k, b, transpose_b ? k : n, 0, c, n);
}

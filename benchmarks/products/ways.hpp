#pragma once

#include <functional>
#include <string>
#include <vector>

#include "products/shapes.hpp"

// One way to compute something; `run` is empty where this machine can't.
struct Way {
  std::string name;
  std::function<void()> run = {};
};

// All ways in float32, each on operands of its own, always with the same names in the same order:
//   library           the function that layers call
//   own               our own kernels (ops/matmul/packed_product.hpp), which the library uses for some shapes
//   oneDNN            a kept plan for matrices in their own layout, of the kinds that the library uses
//   oneDNN, packed    the second operand in the layout that oneDNN prefers; the reorder is not counted
//   BLAS              cblas_sgemm of `blas`
std::vector<Way> ways_of(const LinearLayer& layer, LayerPass pass, const class Blas& blas);

//   library           the function that layers call: channels last, weights in torch's order
//   direct            oneDNN's direct algorithm with all operands in the layouts that it prefers
//   channels last     the same with images channels last
//   Winograd          oneDNN's, in the layouts that it prefers
std::vector<Way> ways_of(const ConvolutionLayer& layer, LayerPass pass);

// A library with cblas_sgemm, loaded if it is installed.
class Blas {
 public:
  // The first of `files` that can be loaded.
  explicit Blas(const std::vector<std::string>& files);

  const std::string& file() const { return file_; }  // empty: none
  explicit operator bool() const { return sgemm_ != nullptr; }
  // c[m, n] = op(a) op(b), row-major.
  void multiply(bool transpose_a, bool transpose_b, int m, int n, int k, const float* a, const float* b, float* c) const;

 private:
  using Sgemm = void (*)(int order, int transpose_a, int transpose_b, int m, int n, int k, float alpha, const float* a, int lda,
                         const float* b, int ldb, float beta, float* c, int ldc);
  std::string file_;
  Sgemm sgemm_ = nullptr;
};

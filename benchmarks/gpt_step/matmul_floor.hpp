#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "trireme/models/architectures/gpt.hpp"
#include "trireme/models/architectures/llama.hpp"

// One matrix product of a training step: c[batch, m, n] = op(a) op(b).
struct Product {
  std::int64_t batch;
  std::int64_t m;
  std::int64_t n;
  std::int64_t k;
  bool transpose_a;
  bool transpose_b;
  double operations() const { return 2.0 * static_cast<double>(batch * m * n * k); }
};

// All matrix products of one forward and backward pass in step order, with attention as full time x time products.
std::vector<Product> products_of_step(const trireme::models::GptOptions& model, std::int64_t batch);
std::vector<Product> products_of_step(const trireme::models::LlamaOptions& model, std::int64_t batch);

// Runs only the products, through oneDNN, with kept plans and random operands for each. In bfloat16 too; gradients of weights
// are then float32.
class MatmulFloor {
 public:
  // Null where the processor has no products of this type.
  static std::unique_ptr<MatmulFloor> make(const std::vector<Product>& products, trireme::DType dtype);

  MatmulFloor(const std::vector<Product>& products, trireme::DType dtype);
  ~MatmulFloor();
  void run();

 private:
  struct Plans;
  std::unique_ptr<Plans> plans_;
};

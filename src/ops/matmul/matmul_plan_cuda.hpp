#pragma once

#include <cuda_runtime_api.h>

#include <vector>

#include "ops/matmul/cublaslt.hpp"
#include "ops/matmul/matmul_algorithm_cuda.hpp"
#include "ops/matmul/matmul_problem_cuda.hpp"

namespace trireme::ops::cuda {

inline constexpr std::size_t workspace_bytes = std::size_t{64} << 20;  // limit for an algorithm

// check_cublas() with a description of the problem in the message.
void check_cublas(cublasStatus_t status, std::string_view call, const MatmulProblem& problem);

// The descriptors of a problem; only pointers and the algorithm change from call to call.
class MatmulPlan {
 public:
  MatmulPlan(cublasLtHandle_t handle, const MatmulProblem& problem);

  // At most `most` algorithms, the best by the library's estimate first. Throws if there is none.
  std::vector<MatmulAlgorithm> candidates(int most) const;
  // Whether the algorithm supports this problem on this GPU.
  bool accepts(const MatmulAlgorithm& algorithm) const;

  // Launches the product in the stream. The workspace has workspace_bytes.
  cublasStatus_t run(const MatmulAlgorithm& algorithm, const MatmulOperands& operands, void* workspace, cudaStream_t stream);

 private:
  template <typename Value>
  void set(cublasLtMatmulDescAttributes_t attribute, const Value& value);
  void set_pointers(const MatmulOperands& operands);

  cublasLtHandle_t handle_;
  MatmulProblem problem_;
  Owned<cublasLtMatmulDesc_t> operation_;
  Owned<cublasLtMatrixLayout_t> first_;
  Owned<cublasLtMatrixLayout_t> second_;
  Owned<cublasLtMatrixLayout_t> result_;
};

}  // namespace trireme::ops::cuda

#include "ops/matmul/matmul_timing_cuda.hpp"

#include <fmt/format.h>

#include <limits>
#include <optional>

#include "device/cuda/timed_event.hpp"
#include "trireme/core/error.hpp"
#include "trireme/device/memory.hpp"

namespace trireme::ops::cuda {
namespace {

constexpr int repetitions = 4;

}  // namespace

TimedAlgorithm fastest(MatmulPlan& plan, const MatmulProblem& problem, const std::vector<MatmulAlgorithm>& algorithms,
                       MatmulOperands operands, void* workspace, cudaStream_t stream) {
  const device::MemoryPurpose purpose("results of timed matrix products");
  std::optional<device::Storage> scratch;
  if (problem.shape.accumulate) {
    const auto elements = static_cast<std::size_t>(result_elements(problem));
    operands.c = scratch.emplace(device::cuda_memory(), elements * size_of(problem.shape.result)).data();
  }
  device::TimedEvent start;
  device::TimedEvent end;
  cublasStatus_t refusal = CUBLAS_STATUS_SUCCESS;
  TimedAlgorithm best{.seconds = std::numeric_limits<double>::infinity()};
  for (const MatmulAlgorithm& algorithm : algorithms) {
    const auto run = [&] { return plan.run(algorithm, operands, workspace, stream); };
    if (const cublasStatus_t status = run(); status != CUBLAS_STATUS_SUCCESS) {  // the first run also loads the kernel
      refusal = status;
      continue;
    }
    start.record(stream);
    for (int i = 0; i < repetitions; ++i) check_cublas(run(), "cublasLtMatmul", problem);
    end.record(stream);
    const double seconds = end.seconds_since(start) / repetitions;
    if (seconds < best.seconds) best = {algorithm, seconds};
  }
  if (best.seconds < std::numeric_limits<double>::infinity()) return best;
  throw Error({.code = ErrorCode::not_available,
               .message = fmt::format("matmul: none of {} algorithms runs on this GPU, the last one ended with {}",
                                      algorithms.size(), cublaslt().status_string(refusal)),
               .operation = "cublasLtMatmul",
               .name = describe(problem),
               .hint = "CUBLASLT_LOG_LEVEL=5 shows what the library was asked for"});
}

}  // namespace trireme::ops::cuda

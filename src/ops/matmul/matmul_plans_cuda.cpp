#include "ops/matmul/matmul_plans_cuda.hpp"

#include <cstdlib>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "device/cuda/stream.hpp"
#include "ops/matmul/matmul_plan_cuda.hpp"
#include "ops/matmul/matmul_timing_cuda.hpp"
#include "ops/matmul/plan_file_cuda.hpp"
#include "trireme/core/error.hpp"
#include "trireme/device/cuda.hpp"
#include "trireme/device/graph.hpp"
#include "trireme/device/memory.hpp"

namespace trireme::ops::cuda {
namespace {

constexpr int timed_algorithms = 8;
constexpr std::size_t most_plans = 1024;  // limits the memory if shapes change all the time

struct ChosenPlan {
  MatmulPlan plan;
  MatmulAlgorithm algorithm;
};

Owned<cublasLtHandle_t> make_handle() {
  device::current_stream();  // selects this thread's GPU
  cublasLtHandle_t made = nullptr;
  check_cublas(cublaslt().create(&made), "cublasLtCreate");
  return {made, cublaslt().destroy};
}

PlanFile open_plan_file(PlanChoice choice) {
  const bool kept = choice == PlanChoice::timed;
  return {kept ? plan_folder(std::getenv("TRIREME_PLAN_CACHE"), std::getenv("HOME")) : "",
          {device::cuda_device(device::current_cuda_device()).name, cublaslt().version()}};
}

// The cuBLASLt state of one thread, which belongs to one rank.
class MatmulPlans {
 public:
  void run(const MatmulProblem& problem, const MatmulOperands& operands) {
    const cudaStream_t stream = device::native_stream();
    void* workspace = workspace_of(stream);
    ChosenPlan& chosen = find(problem, operands, workspace, stream);
    check_cublas(chosen.plan.run(chosen.algorithm, operands, workspace, stream), "cublasLtMatmul", problem);
  }

 private:
  ChosenPlan& find(const MatmulProblem& problem, const MatmulOperands& operands, void* workspace, cudaStream_t stream) {
    if (const auto found = plans_.find(problem); found != plans_.end()) return found->second;
    if (plans_.size() == most_plans) plans_.clear();
    MatmulPlan plan(handle_.get(), problem);
    const MatmulAlgorithm algorithm = choose(plan, problem, operands, workspace, stream);
    return plans_.emplace(problem, ChosenPlan{std::move(plan), algorithm}).first->second;
  }

  MatmulAlgorithm choose(MatmulPlan& plan, const MatmulProblem& problem, const MatmulOperands& operands, void* workspace,
                         cudaStream_t stream) {
    const std::string name = describe(problem);
    const TimedAlgorithm* known = file_.find(name);
    if (known != nullptr && plan.accepts(known->algorithm)) return known->algorithm;
    if (choice_ == PlanChoice::heuristic || device::is_capturing()) return plan.candidates(1).front();
    try {
      const TimedAlgorithm best = fastest(plan, problem, plan.candidates(timed_algorithms), operands, workspace, stream);
      file_.add(name, best);
      return best.algorithm;
    } catch (const Error& error) {
      if (error.code() != ErrorCode::out_of_memory) throw;
      return plan.candidates(1).front();  // timing would need a second buffer for the result
    }
  }

  // Products in different streams may run at the same time: each stream has its own.
  void* workspace_of(cudaStream_t stream) {
    const auto found = workspaces_.find(stream);
    if (found != workspaces_.end()) return found->second.data();
    const device::MemoryPurpose purpose("matrix product workspace");
    return workspaces_.try_emplace(stream, device::cuda_memory(), workspace_bytes).first->second.data();
  }

  PlanChoice choice_ = plan_choice(std::getenv("TRIREME_MATMUL_PLANS"));
  Owned<cublasLtHandle_t> handle_ = make_handle();
  PlanFile file_ = open_plan_file(choice_);
  std::map<MatmulProblem, ChosenPlan> plans_;
  std::map<cudaStream_t, device::Storage> workspaces_;
};

}  // namespace

PlanChoice plan_choice(const char* variable) {
  const std::string_view word = variable == nullptr ? "timed" : variable;
  require(word == "timed" || word == "heuristic", "TRIREME_MATMUL_PLANS is \"{}\", but can be timed or heuristic", word);
  return word == "timed" ? PlanChoice::timed : PlanChoice::heuristic;
}

void run_matmul(MatmulProblem problem, const MatmulOperands& operands) {
  thread_local MatmulPlans plans;
  problem.alignment = alignment_of(operands);
  plans.run(problem, operands);
}

bool try_matmul(MatmulProblem problem, const MatmulOperands& operands) {
  thread_local std::set<MatmulProblem> without_algorithm;
  problem.alignment = alignment_of(operands);
  if (without_algorithm.contains(problem)) return false;
  try {
    run_matmul(problem, operands);
  } catch (const device::NotCapturable&) {
    throw;
  } catch (const Error& error) {
    if (error.code() != ErrorCode::not_available) throw;
    if (without_algorithm.size() == most_plans) without_algorithm.clear();
    without_algorithm.insert(problem);
    return false;
  }
  return true;
}

}  // namespace trireme::ops::cuda

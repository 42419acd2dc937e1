#pragma once

#include <concepts>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "fixtures.hpp"
#include "trireme/trireme.hpp"

// What the reference training runs of all models share.
namespace trireme::tests {

template <typename P>
const char* name_of_precision() {
  if constexpr (std::same_as<P, MixedBfloat16>) return "bfloat16";
  if constexpr (std::same_as<P, MixedFloat16>) return "float16";
  return std::same_as<P, Float64> ? "float64" : "float32";
}

// Counts what is out of bounds on this rank.
class RunReport {
 public:
  RunReport(const Group& world, std::string run) : world_(world), run_(std::move(run)) {}

  void expect(bool ok, const std::string& text);
  int failures() const { return failures_; }

 private:
  const Group& world_;
  std::string run_;
  int failures_ = 0;
};

template <typename P>
std::unique_ptr<optim::Optimizer<P>> make_optimizer(const nlohmann::json& hyper, FlatStore& store);
optim::Schedule make_schedule(const nlohmann::json& hyper);
double clip_norm_of(const nlohmann::json& hyper);  // 0: the run does not clip

// Of [steps, batch, time] the samples [first, first + count) of one step.
Tensor<std::int32_t> rows_of(const std::vector<std::int64_t>& all, const Shape& shape, std::int64_t step, std::int64_t first,
                             std::int64_t count);

// Compares loss and gradient norm of a step with the index; returns how far the loss is off. In mixed precision only the loss,
// which may be off by `mixed_bound`.
double compare_step(const Fixture& fixture, std::int64_t step, const StepSummary& summary, RunReport& report,
                    double mixed_bound = 0);

// The values of a parameter, and a last change to them and to those that are wanted.
using ValuesOf = std::function<std::vector<float>(int parameter)>;
ValuesOf values_in(FlatStore& store);
using Adapt = std::function<void(const ParameterInfo& parameter, std::vector<float>& got, std::vector<float>& wanted)>;

// Compares the tensors "<prefix><parameter>" or "<prefix><buffer>" with those of the fixture: it has to hold all parameters, if
// it holds any tensor "<prefix>*", and nothing else but buffers; and all buffers.
void compare_tensors(const Fixture& fixture, const std::string& prefix, Tolerance tolerance, FlatStore& store,
                     const ValuesOf& values_of, RunReport& report, const Adapt& adapt = {});
void compare_buffers(const Fixture& fixture, const std::string& prefix, Tolerance tolerance, FlatStore& store,
                     RunReport& report);

// Runs run(fixture) for every training run of a model and says whether any ran and none failed, on all ranks together.
int run_fixtures(const Group& world, const std::string& model, const std::function<int(const Fixture&)>& run);

// The main of a program of such runs: PROGRAM thread N | mpi       (under mpirun).
int run_on_ranks(int argc, char** argv, const std::function<int(const Group&)>& run);

}  // namespace trireme::tests

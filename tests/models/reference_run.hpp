#pragma once

#include <concepts>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "fixtures.hpp"
#include "trireme/trireme.hpp"

// Code that the reference training runs of all models share.
namespace trireme::tests {

template <typename P>
const char* name_of_precision() {
  if constexpr (std::same_as<P, MixedBfloat16>) return "bfloat16";
  if constexpr (std::same_as<P, MixedFloat16>) return "float16";
  return std::same_as<P, Float64> ? "float64" : "float32";
}

// Counts values out of bounds on this rank.
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

// Skips a run whose model or training has options beside these and those of make_optimizer.
void know_run_options(const Fixture& run, std::initializer_list<std::string_view> config,
                      std::initializer_list<std::string_view> hyper);

// Skips the run when there is no such optimizer.
template <typename P>
std::unique_ptr<optim::Optimizer<P>> make_optimizer(const nlohmann::json& hyper, Model& model);
optim::LearningRate make_schedule(const nlohmann::json& hyper);
double clip_norm_of(const nlohmann::json& hyper);  // 0: the run does not clip

// The initial values and the batches of a run: "<folder>/init" and "<folder>/batches" of the fixture "<folder>/<run>".
Fixture init_of(const Fixture& run);
Fixture batches_of(const Fixture& run);

// How many steps a run has: as many as it has losses of this name, no more than there are batches.
std::int64_t steps_of(const Fixture& run, const std::string& losses, std::int64_t num_batches);

// The tokens and targets of a run, cut into as many micro-batches as all ranks have together. Where these do not divide the
// rows of a batch, some get rows whose targets are all ignored: all micro-batches have one shape.
class TokenBatches {
 public:
  // `rows_divide`: the number of a micro-batch's tokens must be a multiple of this.
  TokenBatches(const Fixture& run, const SafetensorsFile& batches, int num_parts, std::int64_t rows_divide = 1);

  std::int64_t rows() const { return rows_; }  // of a micro-batch
  std::int64_t time() const { return shape_[2]; }
  std::int64_t num_steps() const { return num_steps_; }

  // [rows, time]
  Tensor<std::int32_t> tokens(std::int64_t step, int part) const { return part_of(tokens_, step, part, 0); }
  Tensor<std::int32_t> targets(std::int64_t step, int part) const { return part_of(targets_, step, part, ops::ignored_target); }

 private:
  Tensor<std::int32_t> part_of(const std::vector<std::int64_t>& all, std::int64_t step, int part, std::int32_t otherwise) const;

  std::vector<std::int64_t> tokens_;
  std::vector<std::int64_t> targets_;
  Shape shape_;  // [batches, batch, time]
  std::int64_t rows_;
  std::int64_t start_;  // the batch of the first step
  std::int64_t num_steps_;
};

// The samples of a part of a batch, in order; parts are as equal as possible, and some are empty where there are fewer samples.
// For models whose samples meet in a batch norm.
Range part_of_batch(std::int64_t batch, int part, int num_parts);

// Targets of every part: Loss::nominal_targets is the same on all ranks.
inline std::int64_t count_of_part(std::int64_t batch, int num_parts) { return (batch + num_parts - 1) / num_parts; }

// Compares loss and gradient norm of a step with the index; returns how far the loss is off. In mixed precision only the loss,
// which may be off by `mixed_bound`.
double compare_step(const Fixture& fixture, std::int64_t step, const StepSummary& summary, RunReport& report,
                    double mixed_bound = 0);

// The values of a parameter, and a last change to them and to those that are wanted.
using ValuesOf = std::function<std::vector<float>(int parameter)>;
ValuesOf values_in(FlatStore& store);
ValuesOf gradients_in(FlatStore& store, double scale);
using Adapt = std::function<void(const ParameterInfo& parameter, std::vector<float>& got, std::vector<float>& wanted)>;

// Compares the tensors "<prefix><parameter>" or "<prefix><buffer>" with those of the fixture: it has to hold all parameters, if
// it holds any tensor "<prefix>*", and nothing else but buffers; and all buffers then.
void compare_tensors(const Fixture& fixture, const std::string& prefix, Tolerance tolerance, FlatStore& store,
                     const ValuesOf& values_of, RunReport& report, const Adapt& adapt = {});
void compare_first_gradients(const Fixture& fixture, FlatStore& store, const ValuesOf& gradients_of, RunReport& report);
void compare_buffers(const Fixture& fixture, const std::string& prefix, Tolerance tolerance, FlatStore& store,
                     RunReport& report);

// Runs run(fixture), which returns the number of errors, for every training run of a model, and returns the sum over all ranks.
int run_fixtures(const Group& world, const std::string& model, const std::function<int(const Fixture&)>& run);

// The main of a program for the training runs of some models: PROGRAM thread N | mpi       (under mpirun). Skipped where there
// is none.
int run_on_ranks(int argc, char** argv, const std::vector<std::string>& models, const std::function<int(const Group&)>& run);

}  // namespace trireme::tests

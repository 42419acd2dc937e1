#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "trainer/decisions.hpp"
#include "trireme/autograd/model.hpp"
#include "trireme/core/state.hpp"
#include "trireme/optim/any_optimizer.hpp"
#include "trireme/parallel/data_parallel.hpp"

namespace trireme::trainer {

// A model of a run.
struct RunModel {
  Model* model;
  optim::AnyOptimizer* optimizer;  // null: the model is only evaluated
  std::string prefix;
  double learning_rate = 0;                          // the optimizer's own
  std::unique_ptr<parallel::DataParallel> replicas;  // null without an optimizer
  Decisions decisions;

  // The start of lines about it: "generator: ".
  std::string title() const { return prefix.empty() ? "" : prefix.substr(0, prefix.size() - 1) + ": "; }
};

// The models of a run, and other objects that its checkpoints keep.
class RunModels {
 public:
  // Error{invalid_argument} if the model, the optimizer or the prefix was added before.
  void require_free(const Model& model, const optim::AnyOptimizer* optimizer, const std::string& prefix) const;
  void add(RunModel model) { models_.push_back(std::move(model)); }
  void keep(std::function<void(State&)> add_to) { kept_.push_back(std::move(add_to)); }

  bool empty() const { return models_.empty(); }
  std::deque<RunModel>& all() { return models_; }
  const std::deque<RunModel>& all() const { return models_; }

  // The model whose steps the loop runs; null if none is trained.
  const RunModel* first_trained() const;

  void add_to(State& state);  // adds everything that a checkpoint keeps

 private:
  std::deque<RunModel> models_;
  std::vector<std::function<void(State&)>> kept_;
};

}  // namespace trireme::trainer

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
  optim::AnyOptimizer* optimizer;  // null: it is evaluated only
  std::string prefix;
  double learning_rate = 0;                          // the optimizer's own
  std::unique_ptr<parallel::DataParallel> replicas;  // null without an optimizer
  Decisions decisions;

  // Before what is told of it: "generator: ".
  std::string title() const { return prefix.empty() ? "" : prefix.substr(0, prefix.size() - 1) + ": "; }
};

// The models of a run, and what else its checkpoints keep.
class RunModels {
 public:
  // Error{invalid_argument} where one of the three is taken.
  void require_free(const Model& model, const optim::AnyOptimizer* optimizer, const std::string& prefix) const;
  void add(RunModel model) { models_.push_back(std::move(model)); }
  void keep(std::function<void(State&)> add_to) { kept_.push_back(std::move(add_to)); }

  bool empty() const { return models_.empty(); }
  std::deque<RunModel>& all() { return models_; }
  const std::deque<RunModel>& all() const { return models_; }

  // Whose step is that of the loop. Null: nothing is trained.
  const RunModel* first_trained() const;

  void add_to(State& state);  // all that a checkpoint keeps

 private:
  std::deque<RunModel> models_;
  std::vector<std::function<void(State&)>> kept_;
};

}  // namespace trireme::trainer

#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "trireme/core/export.hpp"
#include "trireme/trainer/run.hpp"

namespace trireme TRIREME_EXPORT {
namespace trainer {

struct FitOptions {
  // A number that tells how good the model is, the same on all ranks, as Run::evaluate gives it; inf and nan are no better than
  // any. Empty: nothing is validated.
  std::function<double()> validate = {};
  Place validate_every = Epochs{1};      // and after the last step
  std::string name = "validation_loss";  // of the metric
  bool higher_is_better = false;
  int patience = 0;        // after so many validations without a better one the run stops; 0: never
  bool keep_best = false;  // the model ends with its best values; needs checkpoints, and keeps these in the folder "best" there
};

// Why training has ended.
enum class FitEnd : std::uint8_t {
  finished,     // the run has lasted as long as it was to
  patience,     // so many validations brought nothing better
  interrupted,  // by a signal, stop() or ask(): the same command goes on
};

struct FitReport {
  FitEnd end = FitEnd::finished;
  std::optional<double> best = {};  // validation; nothing where none was finite
  std::int64_t best_step = 0;       // after how many steps
  std::optional<double> last = {};  // nothing where there was none
};

// Validations of a run and what follows from them; a part of its checkpoints.
class Validations {
 public:
  // Before the run's loop.
  Validations(Run& run, Model& model, const FitOptions& options);
  ~Validations();
  Validations(const Validations&) = delete;
  Validations& operator=(const Validations&) = delete;

  void after_update();  // validates where it is due
  FitReport finish();   // after the loop

 private:
  class Impl;
  std::shared_ptr<Impl> impl_;
};

// The whole training of one model, for those who want no loop:
//
//   trainer::fit(run, net, optimizer, rows, {.validate = [&] { return run.evaluate(net, test); }, .patience = 3});
//
// The model has loss(output, batch), where output is what its forward(batch) gives. It is added to the run, see Run::add.
template <typename Net, typename Loader>
FitReport fit(Run& run, Net& model, optim::AnyOptimizer& optimizer, const Loader& loader, const FitOptions& options = {}) {
  data::require_batch_loader<Loader>();
  Validations validations(run, model.model(), options);
  run.add(model, optimizer);
  for (auto& step : run.steps(loader)) {
    step.backward(model, step.batches());
    step.update(optimizer);
    validations.after_update();
  }
  return validations.finish();
}

}  // namespace trainer
}  // namespace trireme

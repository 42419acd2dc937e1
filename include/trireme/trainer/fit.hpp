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
  // Returns the quality of the model, for example from Run::evaluate; only the value of rank 0 counts. inf and nan never count
  // as an improvement. Empty: no validation.
  std::function<double()> validate = {};
  Place validate_every = Epochs{1};      // a validation also follows the last step
  std::string name = "validation_loss";  // of the metric
  bool higher_is_better = false;
  int patience = 0;        // stops after this many validations in a row without an improvement; 0: never
  bool keep_best = false;  // ends with the best values of the model; they are kept in the folder "best" of the checkpoints
};

// Why training has ended.
enum class FitEnd : std::uint8_t {
  finished,     // the run has reached Options::until
  patience,     // FitOptions::patience validations brought no improvement
  interrupted,  // by a signal, stop() or ask(); the same command resumes the run
};

struct FitReport {
  FitEnd end = FitEnd::finished;
  std::optional<double> best = {};  // the best finite result of a validation; nothing if no result was finite
  std::int64_t best_step = 0;       // the number of steps before the best validation
  std::optional<double> last = {};  // the result of the last validation, if there was one
};

// Validates a model during a run, keeps its best values and stops the run by FitOptions::patience. Checkpoints of the run hold
// the state of the validations.
class Validations {
 public:
  // Construct it before the run's loop.
  Validations(Run& run, Model& model, const FitOptions& options);
  ~Validations();
  Validations(const Validations&) = delete;
  Validations& operator=(const Validations&) = delete;

  void after_update();  // call it after each step.update(); validates if a validation is due
  FitReport finish();   // call it after the loop

 private:
  class Impl;
  std::shared_ptr<Impl> impl_;
};

// Trains one model without a loop of your own:
//
//   trainer::fit(run, net, optimizer, rows, {.validate = [&] { return run.evaluate(net, test); }, .patience = 3});
//
// The model has loss(output, batch), where output is the result of forward(batch). fit() adds the model to the run, see
// Run::add.
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

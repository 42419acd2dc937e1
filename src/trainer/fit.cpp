#include "trireme/trainer/fit.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <span>

#include "trireme/checkpoint/checkpoints.hpp"
#include "trireme/core/error.hpp"

namespace trireme::trainer {

// The state holds plain values, since a checkpoint keeps them; best_step is -1 before the first finite validation.
class Validations::Impl {
 public:
  Impl(Run& of_run, Model& of_model, const FitOptions& with_options) : run(of_run), model(of_model), options(with_options) {}

  bool is_better(double value) const {
    if (!std::isfinite(value)) return false;
    return best_step < 0 || (options.higher_is_better ? value > best : value < best);
  }

  void add(double of_this_rank) {
    std::array<double, 1> of_first{of_this_rank};  // rank 0's value counts, so that all ranks decide alike
    run.world().broadcast(std::span(of_first), 0, "validation").wait_on_host();
    const double value = of_first[0];
    last = value;
    run.report({{options.name, value}});
    if (is_better(value)) {
      best = value;
      best_step = run.done();
      without_better = 0;
      if (checkpoints) save_or_tell();
      return;
    }
    ++without_better;
    if (!is_out_of_patience()) return;
    run.note(fmt::format("{} has not got better for {} validations: training stops", options.name, without_better));
    run.stop();
  }

  bool is_out_of_patience() const { return options.patience > 0 && without_better >= options.patience; }

  FitEnd end() const {
    const auto steps = run.total_steps();
    if (!run.stopped() || (steps && run.done() >= *steps)) return FitEnd::finished;
    return is_out_of_patience() ? FitEnd::patience : FitEnd::interrupted;
  }

  // After loading a checkpoint: a run that ended for lack of patience ends again.
  void stop_again() {
    if (!is_out_of_patience()) return;
    run.note(fmt::format("{} had not got better for {} validations: training has ended", options.name, without_better));
    run.stop();
  }

  void add_model(State& state) { model.store().add_to(state, "model."); }

  // As for any checkpoint: if the disk fails, which all ranks learn, training goes on.
  void save_or_tell() {
    try {
      save();
    } catch (const Error& error) {
      if (error.code() != ErrorCode::io) throw;
      run.note(fmt::format("note: the best values were not saved: {}", error.what()));
    }
  }

  void save() {
    State state;
    add_model(state);
    checkpoints->save(best_step, state, run.settings());
  }

  void load_best() {
    const auto kept = checkpoints->steps();
    if (std::ranges::find(kept, best_step) == kept.end()) {  // the run resumed from an earlier step since
      run.note(fmt::format("the best values, of step {}, are no longer kept: the model has those of the last step", best_step));
      return;
    }
    State state;
    add_model(state);
    checkpoints->load(best_step, state);
    run.note(fmt::format("the model has the values of step {} again: {} {:.4f}", best_step, options.name, best));
  }

  Run& run;
  Model& model;
  FitOptions options;
  std::optional<checkpoint::Checkpoints> checkpoints;  // of the best values
  double best = 0;
  double last = 0;
  std::int64_t best_step = -1;
  std::int64_t without_better = 0;
};

Validations::Validations(Run& run, Model& model, const FitOptions& options)
    : impl_(std::make_shared<Impl>(run, model, options)) {
  if (!options.validate) {
    require(options.patience == 0 && !options.keep_best,
            "fit() with patience or keep_best needs a validation to go by: FitOptions::validate");
    return;
  }
  require(options.patience >= 0, "the patience of fit() is a number of validations, or 0 for no end, not {}", options.patience);
  if (options.keep_best) {
    const auto& directory = run.options().checkpoints.directory;
    require(!directory.empty(), "keep_best keeps the best values beside the checkpoints: give the run a directory for them");
    checkpoint::CheckpointOptions of_best = run.options().checkpoints;
    of_best.directory = directory / "best";
    of_best.keep = 2;
    of_best.asynchronous = false;
    impl_->checkpoints.emplace(run.world(), of_best);
    impl_->checkpoints->prepare();
  }
  run.keep([impl = impl_](State& state) {
    state.add("validations.best", &impl->best);
    state.add("validations.last", &impl->last);
    state.add("validations.best_step", &impl->best_step);
    state.add("validations.without_better", &impl->without_better);
    state.after_load([impl] { impl->stop_again(); });
  });
}

Validations::~Validations() = default;

void Validations::after_update() {
  if (impl_->options.validate && impl_->run.due(impl_->options.validate_every)) impl_->add(impl_->options.validate());
}

FitReport Validations::finish() {
  FitReport report{.end = impl_->end()};
  if (impl_->best_step >= 0 || impl_->without_better > 0) report.last = impl_->last;
  if (impl_->best_step < 0) return report;
  if (impl_->checkpoints && impl_->best_step != impl_->run.done()) impl_->load_best();
  report.best = impl_->best;
  report.best_step = impl_->best_step;
  return report;
}

}  // namespace trireme::trainer

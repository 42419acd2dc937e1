#include "training/training.hpp"

#include <fmt/format.h>

#include <chrono>
#include <concepts>
#include <utility>

#include "trireme/optim/named.hpp"

using namespace trireme;

namespace {

std::string validation_text(const StepMetrics& metrics) {
  const std::string loss = fmt::format("validation loss {:.4f}", *metrics.validation_loss);
  if (!metrics.validation_accuracy) return loss;
  return fmt::format("{}, accuracy {:.2f} %", loss, 100 * *metrics.validation_accuracy);
}

}  // namespace

template <typename P, typename D>
Training<P, D>::Training(const TrainingOptions& options, const optim::Settings& settings, const ProcessMesh& mesh, Model& model,
                         std::string unit)
    : options_(options),
      mesh_(mesh),
      unit_(std::move(unit)),
      model_(model),
      checkpoints_(options, mesh.world(), settings),
      data_parallel_(model, mesh, options.data_parallel()),
      optimizer_(optim::make_optimizer<P, D>(options.optimizer, model, options.optimizer_options())),
      schedule_(options.schedule()) {
  const auto open = [&] {
    metrics_ = std::make_unique<MetricsFile>(mesh.world().rank() == 0 ? options.metrics : std::string(), unit_,
                                             checkpoints_.first_step());
  };
  mesh.world().agree(open, "open the metrics file");
}

template <typename P, typename D>
bool Training<P, D>::run(const TrainingWork& work) {
  return run_steps(
      options_, mesh_.world(), unit_, checkpoints_,
      {.step = [&](std::int64_t index, Progress& progress) { return step(work, index, progress); },
       .add_to = [&](State& state) { add_to(state, work); },
       .save =
           [&] {
             if (mesh_.data().rank() == 0) work.save();
           },
       .print_end = [&](double seconds, std::int64_t steps) { print_end(seconds, steps, steps * work.samples_per_step); }});
}

template <typename P, typename D>
StepRequests Training<P, D>::step(const TrainingWork& work, std::int64_t step, Progress& progress) {
  const std::int64_t done = step + 1;
  const auto start = std::chrono::steady_clock::now();
  const std::uint64_t sent_before = data_parallel_.bytes_sent();
  const StepSummary summary = train_step(work, step);
  for (const std::string& line : decisions_.take()) progress.note(line);
  StepMetrics metrics{.step = step,
                      .loss = summary.loss(),
                      .learning_rate = optimizer_->learning_rate(),
                      .gradient_norm = summary.gradient_norm,
                      .seconds = seconds_since(start),
                      .exposed_communication_seconds = summary.exposed_communication_seconds,
                      .bytes_sent = data_parallel_.bytes_sent() - sent_before};
  metrics.samples_per_second = static_cast<double>(work.samples_per_step) / metrics.seconds;
  metrics.compute_seconds = metrics.seconds - metrics.exposed_communication_seconds;
  if constexpr (std::same_as<P, MixedFloat16>) metrics.loss_scale = data_parallel_.scaler().scale();
  metrics.skipped_steps = optimizer_->skipped_steps();
  if (!summary.is_finite()) progress.note(fmt::format("step {} is skipped: its loss or gradients are not finite", done));
  const bool validates = options_.validation_interval > 0 && work.validate;
  if (validates && (done == options_.steps || done % options_.validation_interval == 0)) {
    const Validation validation = work.validate();
    metrics.validation_loss = validation.loss;
    metrics.validation_accuracy = validation.accuracy;
  }
  report(metrics, progress);
  checkpoints_.note_loss(fmt::format("{:.4f}", metrics.loss));
  return summary.requests;
}

template <typename P, typename D>
void Training<P, D>::add_to(State& state, const TrainingWork& work) {
  data_parallel_.add_to(state);
  optimizer_->add_to(state);
  if (work.add_to) work.add_to(state);
}

template <typename P, typename D>
StepSummary Training<P, D>::train_step(const TrainingWork& work, std::int64_t number) {
  parallel::Step step = data_parallel_.begin(number, work.micro_batches);
  step.ask(checkpoints_.requests());
  work.backward(step);
  optim::UpdateOptions update = options_.update_options();
  update.learning_rate = schedule_(number);
  step.update(*optimizer_, update);
  return step.finish();
}

template <typename P, typename D>
void Training<P, D>::report(const StepMetrics& metrics, Progress& progress) {
  if (metrics.step == checkpoints_.first_step()) first_ = metrics;
  if (metrics.validation_loss) validation_ = validation_text(metrics);
  last_ = metrics;
  exposed_seconds_ += metrics.exposed_communication_seconds;
  metrics_->write(metrics);
  if (metrics.validation_loss) {
    progress.note(fmt::format("step {}: {}", metrics.step + 1, validation_));
  }
  progress.step(metrics.step, fmt::format("loss {:.4f}", metrics.loss), metrics.samples_per_second, metrics.bytes_sent);
}

template <typename P, typename D>
void Training<P, D>::print_end(double seconds, std::int64_t steps, std::int64_t samples) const {
  fmt::print("{} steps in {:.1f} s: loss {:.4f} -> {:.4f}, {:.0f} {}/s, {:.1f} % of the time waiting for other ranks\n", steps,
             seconds, first_.loss, last_.loss, static_cast<double>(samples) / seconds, unit_, 100 * exposed_seconds_ / seconds);
  if (data_parallel_.bytes_sent() > 0) {
    fmt::print("{:.3f} MB sent to other nodes in the last step\n", 1e-6 * static_cast<double>(last_.bytes_sent));
  }
  if (last_.loss_scale) fmt::print("loss scale {}\n", *last_.loss_scale);
  if (last_.loss_scale || last_.skipped_steps > 0) fmt::print("{} steps skipped\n", last_.skipped_steps);
  if (!validation_.empty()) fmt::print("{}\n", validation_);
}

template class Training<Float32, TRIREME_DEVICE>;
template class Training<MixedBfloat16, TRIREME_DEVICE>;
template class Training<MixedFloat16, TRIREME_DEVICE>;

#include "training/training.hpp"

#include <fmt/format.h>
#include <sched.h>
#include <unistd.h>

#include <chrono>
#include <concepts>
#include <utility>

#include "trireme/optim/named.hpp"

using namespace trireme;

namespace {

// mpirun binds each rank of a small job to one core; the others then idle.
std::string binding_notice(const Group& world) {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  if (sched_getaffinity(0, sizeof mask, &mask) != 0) return {};
  const long cores = sysconf(_SC_NPROCESSORS_ONLN);
  const int bound = CPU_COUNT(&mask);
  if (bound * world.size() >= cores) return {};
  return fmt::format("note: mpirun has bound every rank to {} of {} cores; mpirun --bind-to none lets them use all", bound,
                     cores);
}

std::string validation_text(const StepMetrics& metrics) {
  const std::string loss = fmt::format("validation loss {:.4f}", *metrics.validation_loss);
  if (!metrics.validation_accuracy) return loss;
  return fmt::format("{}, accuracy {:.2f} %", loss, 100 * *metrics.validation_accuracy);
}

}  // namespace

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

void print_binding(const TrainingOptions& options, const Group& world) {
  if (world.rank() != 0 || options.backend != BackendKind::mpi || options.threads != 0) return;
  const std::string notice = binding_notice(world);
  if (!notice.empty()) fmt::print("{}\n", notice);
}

template <typename P>
Training<P>::Training(const TrainingOptions& options, const optim::Settings& settings, const ProcessMesh& mesh,
                      FlatStore& store, std::string unit)
    : options_(options),
      mesh_(mesh),
      unit_(std::move(unit)),
      store_(store),
      checkpoints_(options, mesh.world(), settings),
      data_parallel_(store, mesh, options.data_parallel(checkpoints_.first_step())),
      optimizer_(optim::make_optimizer<P>(options.optimizer, store, options.optimizer_options())),
      scaler_({.enabled = std::same_as<P, MixedFloat16>}),
      schedule_(options.schedule()) {
  const auto open = [&] {
    metrics_ = std::make_unique<MetricsFile>(mesh.world().rank() == 0 ? options.metrics : std::string(), unit_,
                                             checkpoints_.first_step());
  };
  mesh.world().agree(open, "open the metrics file");
}

template <typename P>
bool Training<P>::run(const TrainingWork& work) {
  print_binding(options_, mesh_.world());
  progress_ = std::make_unique<Progress>(options_.steps, unit_, mesh_.world().rank() == 0);
  const auto add_to = [&](State& state) { this->add_to(state, work); };
  for (const std::string& line : checkpoints_.load(add_to)) progress_->note(line);
  const auto start = std::chrono::steady_clock::now();
  const std::int64_t first_step = checkpoints_.first_step();
  std::int64_t done = first_step;
  bool stopped = false;
  while (done < options_.steps && !stopped) {
    const std::int64_t step = done++;
    const auto step_start = std::chrono::steady_clock::now();
    const std::uint64_t sent_before = data_parallel_.bytes_sent();
    const StepSummary summary = train_step(work, step);
    for (const std::string& line : decisions_.take()) progress_->note(line);
    StepMetrics metrics{.step = step,
                        .loss = summary.loss(),
                        .learning_rate = optimizer_->learning_rate(),
                        .gradient_norm = summary.gradient_norm,
                        .seconds = seconds_since(step_start),
                        .exposed_communication_seconds = summary.exposed_communication_seconds,
                        .bytes_sent = data_parallel_.bytes_sent() - sent_before};
    metrics.samples_per_second = static_cast<double>(work.samples_per_step) / metrics.seconds;
    metrics.compute_seconds = metrics.seconds - metrics.exposed_communication_seconds;
    if constexpr (std::same_as<P, MixedFloat16>) metrics.loss_scale = scaler_.scale();
    metrics.skipped_steps = optimizer_->skipped_steps();
    if (!summary.is_finite()) progress_->note(fmt::format("step {} is left out: its loss or gradients are not finite", done));
    const bool last = done == options_.steps;
    const bool validates = options_.validation_interval > 0 && work.validate;
    if (validates && (last || done % options_.validation_interval == 0)) {
      const Validation validation = work.validate();
      metrics.validation_loss = validation.loss;
      metrics.validation_accuracy = validation.accuracy;
    }
    report(metrics);
    const auto after = checkpoints_.after_step(done, summary.requests, add_to);
    for (const std::string& line : after.notes) progress_->note(line);
    stopped = after.stop;
  }
  progress_.reset();
  if (stopped) return false;
  mesh_.world().agree([&] {
    if (mesh_.data().rank() == 0 && !options_.save.empty()) work.save();
  });
  print_end(seconds_since(start), done - first_step, static_cast<double>(work.samples_per_step));
  checkpoints_.finished();
  return true;
}

template <typename P>
void Training<P>::add_to(State& state, const TrainingWork& work) {
  store_.add_to(state, "model.");
  optimizer_->add_to(state);
  scaler_.add_to(state);
  data_parallel_.add_to(state);
  if (work.add_to) work.add_to(state);
}

template <typename P>
StepSummary Training<P>::train_step(const TrainingWork& work, std::int64_t step) {
  auto reduction = data_parallel_.begin_step(work.micro_batches);
  reduction.request(checkpoints_.requests());
  if (work.pipeline) {
    work.pipeline(step, reduction, scaler_);
  } else {
    for (int micro = 0; micro < work.micro_batches; ++micro) work.backward(step, micro, reduction, scaler_);
  }
  StepSummary summary = reduction.finish();
  optimizer_->set_learning_rate(schedule_(step));
  scaler_.unscale(*optimizer_, summary);
  scaler_.step(*optimizer_, summary, options_.step_options());
  scaler_.update();
  return summary;
}

template <typename P>
void Training<P>::report(const StepMetrics& metrics) {
  if (metrics.step == checkpoints_.first_step()) first_ = metrics;
  if (metrics.validation_loss) validation_ = validation_text(metrics);
  last_ = metrics;
  exposed_seconds_ += metrics.exposed_communication_seconds;
  metrics_->write(metrics);
  if (metrics.validation_loss) {
    progress_->note(fmt::format("step {}: {}", metrics.step + 1, validation_));
  }
  progress_->step(metrics.step, fmt::format("loss {:.4f}", metrics.loss), metrics.samples_per_second, metrics.bytes_sent);
}

template <typename P>
void Training<P>::print_end(double seconds, std::int64_t steps, double samples_per_step) const {
  if (mesh_.world().rank() != 0) return;
  if (steps == 0) {
    fmt::print("all {} steps were done before\n", options_.steps);
    return;
  }
  const double samples = static_cast<double>(steps) * samples_per_step;
  fmt::print("{} steps in {:.1f} s: loss {:.4f} -> {:.4f}, {:.0f} {}/s, {:.1f} % of the time waiting for other ranks\n", steps,
             seconds, first_.loss, last_.loss, samples / seconds, unit_, 100 * exposed_seconds_ / seconds);
  if (data_parallel_.bytes_sent() > 0) {
    fmt::print("{:.3f} MB sent to other nodes in the last step\n", 1e-6 * static_cast<double>(last_.bytes_sent));
  }
  if (last_.loss_scale) fmt::print("loss scale {}\n", *last_.loss_scale);
  if (last_.loss_scale || last_.skipped_steps > 0) fmt::print("{} steps skipped\n", last_.skipped_steps);
  if (!validation_.empty()) fmt::print("{}\n", validation_);
  if (!options_.save.empty()) fmt::print("weights written to {}\n", options_.save);
}

template class Training<Float32>;
template class Training<MixedBfloat16>;
template class Training<MixedFloat16>;

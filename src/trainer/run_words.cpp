#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "trainer/run_impl.hpp"

// What a run tells in words.
namespace trireme::trainer {

void Run::Impl::tell_of_steps() {
  if (std::exchange(steps_are_told, true)) return;
  std::string line = steps ? fmt::format("{} of {} samples", to_text(Steps{*steps}), options.batch_size)
                           : fmt::format("steps of {} samples for {}", options.batch_size, to_text(options.until));
  if (options.learning_rate) {
    line += ", learning rate by a function of the step";
  } else {
    for (const Trained& each : models) {
      if (each.optimizer != nullptr) line += fmt::format(", {}learning rate {}", each.title(), each.learning_rate);
    }
    const std::int64_t warmup = std::min(options.warmup, steps.value_or(options.warmup));
    if (warmup > 0) line += fmt::format(" after a warm-up of {}", to_text(Steps{warmup}));
    const double ratio = options.minimum_learning_rate_ratio;
    if (steps && ratio < 1) {
      line += fmt::format(", then half a cosine down to {} at step {}", ratio > 0 ? fmt::format("{} times that", ratio) : "0",
                          *steps);
    }
  }
  line += options.clip_norm > 0 ? fmt::format("; the norm of the gradients is clipped to {}", options.clip_norm)
                                : "; the norm of the gradients is not clipped";
  if (options.clip_value > 0) line += fmt::format(", their elements to {}", options.clip_value);
  note(line);
}

void Run::Impl::tell_of_short_grace() {
  if (done != first_step + 2 || !listens() || step_seconds < 0.5 || std::getenv("OMPI_COMM_WORLD_SIZE") == nullptr) return;
  note(fmt::format(
      "note: mpirun ends its ranks 1 s after Ctrl-C or SIGTERM, and a step takes {:.1f} s: to save then, give them more by "
      "mpirun --mca odls_base_sigkill_timeout 60, or send SIGUSR1",
      step_seconds));
}

void Run::Impl::tell_decisions() {
  for (Trained& each : models) {
    if (each.replicas == nullptr) continue;
    for (const std::string& line : each.decisions.take(*each.replicas)) note(each.title() + line);
  }
}

std::vector<std::string> Run::Impl::last_words() const {
  const double seconds = since_start.seconds();
  const auto samples = static_cast<double>(place.samples_of(done) - place.samples_of(first_step));
  const std::int64_t tokens = place.shape().tokens_per_sample;
  std::string line = fmt::format("{} steps in {:.1f} s", done - first_step, seconds);
  if (first_loss) line += fmt::format(": {}loss {:.4f} -> {:.4f}", first_trained()->title(), *first_loss, last_loss);
  line += tokens > 0 ? fmt::format(", {:.0f} tokens/s", samples * static_cast<double>(tokens) / seconds)
                     : fmt::format(", {:.0f} samples/s", samples / seconds);
  line += fmt::format(", {:.1f} % of the time waiting for other ranks", 100 * exposed_seconds / seconds);
  std::vector<std::string> lines{std::move(line)};
  for (const Trained& each : models) {
    if (each.optimizer == nullptr) continue;
    const std::string of = each.title();
    const bool scaled = each.model->store().compute_dtype() == DType::float16;
    if (scaled) lines.push_back(fmt::format("{}loss scale {}", of, each.replicas->scaler().scale()));
    const std::int64_t skipped = each.optimizer->skipped_steps();
    if (scaled || skipped > 0) lines.push_back(fmt::format("{}{} steps skipped", of, skipped));
  }
  return lines;
}

}  // namespace trireme::trainer

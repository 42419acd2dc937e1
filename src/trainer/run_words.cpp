#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "trainer/run_impl.hpp"

// The lines that a run prints.
namespace trireme::trainer {

void Run::Impl::tell_of_steps() {
  if (std::exchange(this_start.steps_are_told, true)) return;
  std::string rates;
  for (const RunModel& each : models.all()) {
    if (each.optimizer != nullptr) rates += fmt::format(", {}learning rate {}", each.title(), each.learning_rate);
  }
  note(words_of(options, rates, steps));
}

void Run::Impl::tell_of_short_grace() {
  if (done != this_start.first_step + 2 || !listening || this_start.step_seconds < 0.5 ||
      std::getenv("OMPI_COMM_WORLD_SIZE") == nullptr)
    return;
  note(fmt::format(
      "note: mpirun ends its ranks 1 s after Ctrl-C or SIGTERM, and a step takes {:.1f} s: to save then, give them more by "
      "mpirun --mca odls_base_sigkill_timeout 60, or send SIGUSR1",
      this_start.step_seconds));
}

void Run::Impl::tell_decisions() {
  for (RunModel& each : models.all()) {
    if (each.replicas == nullptr) continue;
    for (const std::string& line : each.decisions.take(*each.replicas)) note(each.title() + line);
  }
}

std::vector<std::string> Run::Impl::last_words(std::int64_t bad_samples) const {
  const double seconds = this_start.since_start.seconds();
  const auto samples = static_cast<double>(place.samples_of(done) - place.samples_of(this_start.first_step));
  const std::int64_t tokens = place.shape().tokens_per_sample;
  std::string line = fmt::format("{} steps in {:.1f} s", done - this_start.first_step, seconds);
  if (this_start.first_loss) {
    line +=
        fmt::format(": {}loss {:.4f} -> {:.4f}", models.first_trained()->title(), *this_start.first_loss, this_start.last_loss);
  }
  line += tokens > 0 ? fmt::format(", {:.0f} tokens/s", samples * static_cast<double>(tokens) / seconds)
                     : fmt::format(", {:.0f} samples/s", samples / seconds);
  line += fmt::format(", {:.1f} % of the time waiting for other ranks", 100 * this_start.exposed_seconds / seconds);
  const double of_data = 100 * this_start.waiting_for_data_seconds / seconds;
  if (of_data >= 0.05) line += fmt::format(", {:.1f} % for data", of_data);
  std::vector<std::string> lines{std::move(line)};
  if (bad_samples > 0) {
    lines.push_back(fmt::format("{} bad sample{}: the log names each", bad_samples,
                                bad_samples == 1 ? " was replaced by a good one" : "s were replaced by good ones"));
  }
  for (const RunModel& each : models.all()) {
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

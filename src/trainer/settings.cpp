#include "trainer/settings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <variant>

#include "trireme/core/error.hpp"
#include "trireme/core/units.hpp"

namespace trireme::trainer {

namespace {

// Settings that may change when a run goes on: who computes what, which changes no more than rounding, and what is told...
constexpr auto of_layout =
    std::to_array<std::string_view>({"micro_batch_size", "pipeline_parallel", "tensor_parallel", "expert_parallel",
                                     "data_parallel", "sequence_parallel", "chunks", "fixed_bits"});
// ...and how the rest is trained, which is worth a line.
constexpr auto of_training =
    std::to_array<std::string_view>({"until", "learning_rate_schedule", "base_learning_rate", "warmup",
                                     "minimum_learning_rate_ratio", "clip_norm", "clip_value", "non_finite", "max_skipped"});

constexpr int most_chunks = 4096;

constexpr const char* hint =
    "give the run the checkpoint's settings, or its checkpoints another directory; for weights alone, trireme-ckpt export "
    "FOLDER "
    "FILE writes a file for --init";
constexpr const char* hint_of_data =
    "give the run the data of its checkpoint, or its checkpoints another directory; --allow-other-data, "
    "Options::allow_other_data, goes on with these";

bool contains(std::span<const std::string_view> names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

// Of a setting of every run.
OwnSetting of_run(const std::string& name) {
  const optim::Settings defaults = settings_of({});
  const auto found = std::ranges::find(defaults, name, &Setting::name);
  return {.differs = contains(of_layout, name)     ? Differs::allowed
                     : contains(of_training, name) ? Differs::told
                                                   : Differs::refused,
          .absent = found == defaults.end() ? std::nullopt : std::optional(found->value)};
}

}  // namespace

void check(const Options& options) {
  const auto is_something = [](const auto& amount) { return amount.count > 0; };
  constexpr std::int64_t most_samples = std::numeric_limits<std::int32_t>::max();
  require(options.batch_size > 0 && options.batch_size <= most_samples && options.micro_batch_size >= 0 &&
              options.micro_batch_size <= options.batch_size,
          "a run's batch_size lies in [1, {}] and its micro_batch_size in [0, batch_size]: {} and {} do not", most_samples,
          options.batch_size, options.micro_batch_size);
  require(options.chunks > 0 && options.chunks <= most_chunks, "a rank of a pipeline has 1 to {} stages (chunks), not {}",
          most_chunks, options.chunks);
  require(std::visit(is_something, options.until), "a run lasts longer than {}: Options::until", to_text(options.until));
  require(std::visit(is_something, options.checkpoint_every),
          "checkpoints are further apart than {}: Options::checkpoint_every", to_text(options.checkpoint_every));
  require(!options.base_learning_rate || (std::isfinite(*options.base_learning_rate) && *options.base_learning_rate > 0),
          "a run's learning rate is above 0, not {}", options.base_learning_rate.value_or(0));
  require(!options.base_learning_rate || !options.learning_rate,
          "the learning rate of this run is a function of the step: one of {} for all steps would change nothing, leave it out",
          options.base_learning_rate.value_or(0));
  require(options.warmup >= 0 && options.minimum_learning_rate_ratio >= 0 && options.minimum_learning_rate_ratio <= 1,
          "a run's warmup is 0 or more steps, and its minimum_learning_rate_ratio lies in [0, 1]: {} and {} are not",
          options.warmup, options.minimum_learning_rate_ratio);
  require(options.clip_norm >= 0 && options.clip_value >= 0 && options.max_skipped >= 0,
          "clip_norm, clip_value and max_skipped are 0 or more, not {}, {} and {}", options.clip_norm, options.clip_value,
          options.max_skipped);
}

optim::Settings settings_of(const Options& options) {
  const auto* fixed = std::get_if<parallel::FixedBits>(&options.parallel.sum);
  return {
      {"until", to_text(options.until)},
      {"batch_size", options.batch_size},
      {"micro_batch_size", options.micro_batch_size},
      {"seed", options.seed},
      {"learning_rate_schedule", options.learning_rate ? "a function of the step" : "warmup and cosine"},
      {"base_learning_rate", options.base_learning_rate ? Setting::text_of(*options.base_learning_rate) : "the optimizer's"},
      {"warmup", options.warmup},
      {"minimum_learning_rate_ratio", options.minimum_learning_rate_ratio},
      {"clip_norm", options.clip_norm},
      {"clip_value", options.clip_value},
      {"non_finite", options.non_finite == optim::NonFinitePolicy::stop ? "stop" : "skip"},
      {"max_skipped", options.max_skipped},
      {"data_parallel", options.mesh.data},
      {"pipeline_parallel", options.mesh.pipeline},
      {"tensor_parallel", options.mesh.tensor},
      {"expert_parallel", options.mesh.expert},
      {"sequence_parallel", options.sequence_parallel},
      {"chunks", options.chunks},
      {"fixed_bits", fixed == nullptr ? 0 : fixed->micro_batches}};
}

std::vector<std::string> compare(const checkpoint::Configuration& before, const checkpoint::Configuration& now,
                                 const std::map<std::string, OwnSetting>& own, std::int64_t step) {
  std::vector<std::string> notes;
  for (const auto& [name, value] : now) {
    const auto found = before.find(name);
    const auto of_program = own.find(name);
    const OwnSetting setting = of_program != own.end() ? of_program->second : of_run(name);
    const Differs differs = setting.differs;
    const bool is_same = found == before.end() ? setting.absent == value : found->second == value;
    if (is_same || differs == Differs::allowed) continue;
    const std::string had = found != before.end() ? found->second
                            : setting.absent      ? fmt::format("{}, the default of a setting that it lacks",
                                                           setting.absent->empty() ? "nothing" : *setting.absent)
                                                  : "not there";
    if (differs == Differs::told) {
      notes.push_back(fmt::format("note: {} was {} in the checkpoint, is {} now", name, had, value));
      continue;
    }
    throw Error(
        {.code = ErrorCode::invalid_argument,
         .message = fmt::format("the checkpoint of step {} was made with another {}", step, name),
         .name = name,
         .wanted = value,
         .had = had,
         .hint = fmt::format(
             "{}{}", setting.of_data ? hint_of_data : hint,
             of_program == own.end() || setting.of_data ? "" : "; a program lets it differ by CommandLine::set_differs")});
  }
  return notes;
}

}  // namespace trireme::trainer

#include "trainer/option_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "trainer/command_line_impl.hpp"
#include "trainer/gradient_words.hpp"
#include "trainer/option_rows.hpp"
#include "trireme/autograd/model.hpp"
#include "trireme/core/error.hpp"
#include "trireme/core/parse_number.hpp"
#include "trireme/core/units.hpp"
#include "trireme/parallel/pipeline/pipeline_schedule.hpp"

namespace trireme::trainer {

namespace {

using Value = OptionValue;
using RunRow = OptionRow<Options>;

constexpr std::int64_t most_samples = std::numeric_limits<std::int32_t>::max();
constexpr int most_chunks = 4096;

void require_not_negative(const char* name, double value) { require(value >= 0, "{} is 0 or more, not {}", name, value); }

bool is_something(const Amount& amount) {
  return std::visit([](const auto& one) { return one.count > 0; }, amount);
}

// An option that sets the length of a run as a number of `unit`.
Words length_in(Amount& until, const char* unit) {
  return {.shown = [] { return std::string(); },
          .take = [&until, unit](const std::string& given) { until = parse_amount(fmt::format("{} {}", given, unit)); }};
}

// A number of layers, or all of them.
Words layers_in_words(int& layers) {
  return {.shown = [&layers] { return layers == all_layers ? std::string("all") : fmt::to_string(layers); },
          .take =
              [&layers](const std::string& given) {
                const auto number = given == "all" ? std::optional(all_layers) : parse_number<int>(given);
                require(number.has_value(), "--recompute-layers {} is neither a number of layers nor all", given);
                layers = *number;
              }};
}

constexpr std::array<NamedValue<optim::NonFinitePolicy>, 2> policies{
    {{"stop", optim::NonFinitePolicy::stop}, {"skip", optim::NonFinitePolicy::skip}}};
constexpr std::array<NamedValue<RateScaling>, 3> scalings{
    {{"none", RateScaling::none}, {"linear", RateScaling::linear}, {"sqrt", RateScaling::square_root}}};
constexpr std::array<NamedValue<parallel::Sharding>, 3> shardings{
    {{"auto", parallel::Sharding::automatic}, {"on", parallel::Sharding::optimizer}, {"off", parallel::Sharding::none}}};

constexpr auto training_rows = std::to_array<RunRow>({
    {.name = "until",
     .value = [](Options& o) -> Value { return &o.until; },
     .text = "how long: 600 steps, 20 epochs, 1000000 tokens, 5000 samples, 90s, 10min, 2h",
     .setting = "until",
     .differs = Differs::told,
     .check = [](const Options& o) { require(is_something(o.until), "Options::until is above 0, not {}", to_text(o.until)); }},
    {.name = "steps",
     .value = [](Options& o) -> Value { return length_in(o.until, "steps"); },
     .text = "the same in steps",
     .instead_of = "until"},
    {.name = "epochs",
     .value = [](Options& o) -> Value { return length_in(o.until, "epochs"); },
     .text = "the same in passes over the data; 0.5 is half of one",
     .instead_of = "until"},
    {.name = "batch-size",
     .value = [](Options& o) -> Value { return &o.batch_size; },
     .text = "samples of a step, all ranks together",
     .setting = "batch_size",
     .check =
         [](const Options& o) {
           require(o.batch_size > 0 && o.batch_size <= most_samples, "a run's batch_size lies in [1, {}], and {} does not",
                   most_samples, o.batch_size);
         }},
    {.name = "batch-size-from-step",
     .value = [](Options& o) -> Value {
       auto& sizes = o.batch_size_from_step;
       return Words{.shown = [&sizes] { return data::to_text(sizes); },
                    .take = [&sizes](const std::string& given) { sizes = data::parse_batch_sizes(given); }};
     },
     .text =
         "other batch sizes for later steps: 64@1000,128@5000 is 64 samples from step 1000 on, 128 from step 5000 on; a step "
         "keeps its number of micro-batches",
     .setting = "batch_size_from_step",
     .check =
         [](const Options& o) {
           std::int64_t last = 0;
           for (const auto& [step, size] : o.batch_size_from_step) {
             require(
                 size > 0 && size <= most_samples && step > last,
                 "a run's batch_size_from_step has sizes in [1, {}] for steps that ascend from 1 on, and {}@{} is none of them",
                 most_samples, size, step);
             last = step;
           }
         }},
    {.name = "micro-batch-size",
     .value = [](Options& o) -> Value { return &o.micro_batch_size; },
     .text = "samples that a rank computes at once, in steps of --batch-size; 0: all of its share",
     .setting = "micro_batch_size",
     .differs = Differs::allowed,
     .check =
         [](const Options& o) {
           require(o.micro_batch_size >= 0 && o.micro_batch_size <= o.batch_size,
                   "a run's micro_batch_size lies in [0, batch_size], here {}, and {} does not", o.batch_size,
                   o.micro_batch_size);
         }},
    {.name = "seed",
     .value = [](Options& o) -> Value { return &o.seed; },
     .text = "of initial values, the order of the data, and dropout",
     .setting = "seed"},
    {.value = [](Options& o) -> Value {
       return Words{.shown = [&o] { return std::string(o.learning_rate ? "a function of the step" : "warmup and cosine"); },
                    .take = {}};
     },
     .setting = "learning_rate_schedule",
     .differs = Differs::told},
    {.name = "learning-rate",
     .value = [](Options& o) -> Value { return &o.base_learning_rate; },
     .text = "highest learning rate; not given: the optimizer's own",
     .setting = "base_learning_rate",
     .differs = Differs::told,
     .check =
         [](const Options& o) {
           const double rate = o.base_learning_rate.value_or(1);
           require(std::isfinite(rate) && rate > 0, "a run's learning rate is above 0, not {}", rate);
           require(
               !o.base_learning_rate || !o.learning_rate,
               "the learning rate of this run is a function of the step, so a rate of {} would have no effect: leave it out",
               rate);
         },
     .unset = "the optimizer's",
     .yields = true},
    {.name = "warmup",
     .value = [](Options& o) -> Value { return &o.warmup; },
     .text = "steps over which the learning rate rises",
     .setting = "warmup",
     .differs = Differs::told,
     .check = [](const Options& o) { require(o.warmup >= 0, "a run's warmup is 0 or more steps, not {}", o.warmup); }},
    {.name = "min-learning-rate-ratio",
     .value = [](Options& o) -> Value { return &o.minimum_learning_rate_ratio; },
     .text = "the last learning rate, as a share of the highest",
     .setting = "minimum_learning_rate_ratio",
     .differs = Differs::told,
     .check =
         [](const Options& o) {
           require(o.minimum_learning_rate_ratio >= 0 && o.minimum_learning_rate_ratio <= 1,
                   "a run's minimum_learning_rate_ratio lies in [0, 1], and {} does not", o.minimum_learning_rate_ratio);
         }},
    {.name = "scale-learning-rate",
     .value = [](Options& o) -> Value { return choice_of<RateScaling>(o.scale_learning_rate, scalings); },
     .text = "what --batch-size-from-step does to the learning rate: none, linear or sqrt",
     .setting = "scale_learning_rate",
     .differs = Differs::told},
    {.name = "clip",
     .value = [](Options& o) -> Value { return &o.clip_norm; },
     .text = "largest norm of all gradients together; 0: no limit",
     .setting = "clip_norm",
     .differs = Differs::told,
     .check = [](const Options& o) { require_not_negative("clip_norm", o.clip_norm); }},
    {.name = "clip-value",
     .value = [](Options& o) -> Value { return &o.clip_value; },
     .text = "largest magnitude of a gradient's element, clipped after --clip; 0: no limit",
     .setting = "clip_value",
     .differs = Differs::told,
     .check = [](const Options& o) { require_not_negative("clip_value", o.clip_value); }},
    {.name = "non-finite",
     .value = [](Options& o) -> Value { return choice_of<optim::NonFinitePolicy>(o.non_finite, policies); },
     .text = "a step whose loss or gradients are inf or nan: stop, or skip it",
     .setting = "non_finite",
     .differs = Differs::told},
    {.name = "max-skipped",
     .value = [](Options& o) -> Value { return &o.max_skipped; },
     .text = "the most steps in a row that --non-finite skip leaves out before the run stops",
     .setting = "max_skipped",
     .differs = Differs::told,
     .check = [](const Options& o) { require_not_negative("max_skipped", o.max_skipped); }},
});

constexpr auto checkpoint_rows = std::to_array<RunRow>({
    {.name = "checkpoint-dir",
     .value = [](Options& o) -> Value {
       return Words{.shown = [&o] { return o.checkpoints.directory.string(); },
                    .take = [&o](const std::string& given) { o.checkpoints.directory = given; }};
     },
     .text = "save checkpoints in this folder, which all ranks see, and go on from them; Ctrl-C, SIGTERM, SIGUSR1 and SIGHUP "
             "save and stop"},
    {.name = "checkpoint-interval",
     .value = [](Options& o) -> Value { return &o.checkpoint_every; },
     .text = "between checkpoints: 100 steps, 1 epoch, 10min",
     .check =
         [](const Options& o) {
           require(is_something(o.checkpoint_every), "Options::checkpoint_every is above 0, not {}",
                   to_text(o.checkpoint_every));
         }},
    {.name = "keep",
     .value = [](Options& o) -> Value { return &o.checkpoints.keep; },
     .text = "how many of the newest checkpoints are kept; 2 or more"},
    {.name = "resume",
     .value = [](Options& o) -> Value { return &o.resume; },
     .text = "where to go on: auto (the newest checkpoint, if there is one), a step, or none"},
    {.name = "allow-other-data",
     .value = [](Options& o) -> Value { return &o.allow_other_data; },
     .text = "resume from a checkpoint of other data, and print a line about it"},
    {.name = "metrics",
     .value = [](Options& o) -> Value { return &o.metrics; },
     .text = "write metrics to this file after each step: CSV where it ends in .csv, else JSON lines"},
});

constexpr auto mesh_rows = std::to_array<RunRow>({
    {.name = "data-parallel",
     .value = [](Options& o) -> Value { return &o.mesh.data; },
     .text = "replicas of the model; 0: what the other axes leave of the ranks",
     .setting = "data_parallel",
     .differs = Differs::allowed},
    {.name = "pipeline-parallel",
     .value = [](Options& o) -> Value { return &o.mesh.pipeline; },
     .text = "ranks of a replica that divide its layers into stages",
     .setting = "pipeline_parallel",
     .differs = Differs::allowed},
    {.name = "schedule",
     .value = [](Options& o) -> Value {
       std::string& name = o.parallel.schedule;
       return Words{.shown = [&name] { return name.empty() ? "1f1b, or interleaved where ranks have several stages" : name; },
                    .take = [&name](const std::string& given) { name = given; },
                    .choices = parallel::pipeline_schedule_names()};
     },
     .text = "in which order stages run a step's micro-batches; see trireme-schedule"},
    {.name = "chunks",
     .value = [](Options& o) -> Value { return &o.chunks; },
     .text = "stages of each rank of the pipeline",
     .setting = "chunks",
     .differs = Differs::allowed,
     .check =
         [](const Options& o) {
           require(o.chunks > 0 && o.chunks <= most_chunks, "a rank of a pipeline has 1 to {} stages (chunks), not {}",
                   most_chunks, o.chunks);
         }},
    {.name = "tensor-parallel",
     .value = [](Options& o) -> Value { return &o.mesh.tensor; },
     .text = "ranks that divide each layer",
     .setting = "tensor_parallel",
     .differs = Differs::allowed},
    {.name = "expert-parallel",
     .value = [](Options& o) -> Value { return &o.mesh.expert; },
     .text = "ranks that divide the experts of each mixture",
     .setting = "expert_parallel",
     .differs = Differs::allowed},
    {.name = "sequence-parallel",
     .value = [](Options& o) -> Value { return &o.sequence_parallel; },
     .text = "the ranks of --tensor-parallel divide activations between their layers too: less memory",
     .setting = "sequence_parallel",
     .differs = Differs::allowed},
    {.name = "recompute-layers",
     .value = [](Options& o) -> Value { return layers_in_words(o.recompute_layers); },
     .text = "how many layers of each stage keep only their input and are computed again in the backward pass: a number, or "
             "all; less memory, about a third more time",
     .setting = "recompute_layers",
     .differs = Differs::allowed,
     .check =
         [](const Options& o) {
           require(o.recompute_layers >= 0, "recompute_layers is a number of layers or all, not {}", o.recompute_layers);
         }},
});

constexpr auto replica_rows = std::to_array<RunRow>({
    {.name = "optimizer-sharding",
     .value = [](Options& o) -> Value { return choice_of<parallel::Sharding>(o.parallel.sharding, shardings); },
     .text = "whether a rank updates only its part of the parameters; auto: on where all ranks share a node's memory"},
    {.name = "check-replicas",
     .value = [](Options& o) -> Value { return &o.parallel.check_replicas; },
     .text = "in how many steps all weights are compared between replicas, a part in each step; 0: never"},
});

constexpr auto run_rows = std::to_array<std::span<const RunRow>>({training_rows, checkpoint_rows, mesh_rows, replica_rows});

// Of batches of several sizes: one that the ranks do not share equally, or else 0, since no layer can carry their rows.
std::int64_t batch_size_of_context(const Options& options, int ranks) {
  if (options.batch_size_from_step.empty() || options.batch_size % ranks != 0) return options.batch_size;
  const auto uneven = std::ranges::find_if(options.batch_size_from_step,
                                           [ranks](const data::BatchSizeFrom& from) { return from.batch_size % ranks != 0; });
  return uneven == options.batch_size_from_step.end() ? 0 : uneven->batch_size;
}

// Calls action(row, value of the row) for all settings.
template <typename F>
void for_each_setting(const Options& options, const F& action) {
  Options copy = options;
  for (const std::span<const RunRow> rows : run_rows) {
    for (const RunRow& row : rows) {
      if (row.setting != nullptr) action(row, row.value(copy));
    }
  }
  GradientWords words = gradient_words_of(options.parallel.sum);
  for (const OptionRow<GradientWords>& row : gradient_rows()) {
    if (row.setting != nullptr) action(row, row.value(words));
  }
}

std::string text_of_setting(const auto& row, const OptionValue& value) {
  const auto* number = std::get_if<std::optional<double>*>(&value);
  return number != nullptr && !**number ? row.unset : text_of_value(value);
}

}  // namespace

void CommandLine::add_run(Options& options) {
  const auto words = std::make_shared<GradientWords>();
  impl_->add_rows<Options>("Training", training_rows, options);
  impl_->add_rows<Options>("Checkpoints and metrics", checkpoint_rows, options);
  impl_->add_rows<Options>("Mesh", mesh_rows, options);
  impl_->add_rows<GradientWords>("Gradients", gradient_rows(), *words);
  impl_->add_rows<Options>("Gradients", replica_rows, options);
  after_parsing([this, &options, words] {
    require(options.mesh.pipeline > 1 || options.chunks == 1, "--chunks divides the layers of --pipeline-parallel, which is {}",
            options.mesh.pipeline);
    require(options.mesh.tensor > 1 || !options.sequence_parallel,
            "--sequence-parallel divides the rows among the ranks of --tensor-parallel, which is {}", options.mesh.tensor);
    apply(
        *words, [this](const char* name) { return given(name); }, options);
  });
}

void check(const Options& options) {
  for (const std::span<const RunRow> rows : run_rows) {
    for (const RunRow& row : rows) {
      if (row.check != nullptr) row.check(options);
    }
  }
}

optim::Settings settings_of(const Options& options) {
  optim::Settings settings;
  for_each_setting(options, [&](const auto& row, const OptionValue& value) {
    settings.emplace_back(row.setting, text_of_setting(row, value));
  });
  return settings;
}

SettingRule rule_of_setting(const std::string& name) {
  SettingRule rule;
  for_each_setting({}, [&](const auto& row, const OptionValue& value) {
    if (name == row.setting) rule = {.differs = row.differs, .absent = text_of_setting(row, value)};
  });
  return rule;
}

optim::UpdateOptions update_of(const Options& options) {
  return {.clip_norm = options.clip_norm,
          .clip_value = options.clip_value,
          .non_finite = options.non_finite,
          .max_skipped = options.max_skipped};
}

parallel::ModelContextOptions context_of(const Options& options, const ProcessMesh& mesh) {
  return {.sequence_parallel = options.sequence_parallel,
          .num_chunks = options.chunks,
          .recompute_layers = options.recompute_layers,
          .seed = options.seed,
          .batch_size = batch_size_of_context(options, mesh.batch().size())};
}

// With fixed bits the size of a micro-batch follows from their number. A loader refuses numbers that do not divide.
data::BatchOptions batch_of(const Options& options, const ProcessMesh& mesh, const Group& ranks) {
  data::BatchOptions batch{.batch_size = options.batch_size,
                           .batch_size_from_step = options.batch_size_from_step,
                           .micro_batch_size = options.micro_batch_size,
                           .seed = options.seed,
                           .index = ranks.rank(),
                           .count = ranks.size(),
                           .uneven = true};
  const auto* fixed = std::get_if<parallel::FixedBits>(&options.parallel.sum);
  if (fixed == nullptr || options.micro_batch_size > 0) return batch;
  require(fixed->micro_batches > 0 && options.batch_size % fixed->micro_batches == 0,
          "a batch of {} samples does not divide into the {} micro-batches of FixedBits", options.batch_size,
          fixed->micro_batches);
  const int replicas = mesh.data().size();
  require(fixed->micro_batches % replicas == 0,
          "{} micro-batches of fixed bits cannot be shared equally by {} ranks; use a multiple of {}", fixed->micro_batches,
          replicas, replicas);
  batch.micro_batch_size = options.batch_size / fixed->micro_batches;
  return batch;
}

double highest_rate_of(const Options& options, double own) { return options.base_learning_rate.value_or(own); }

void check_several_models(const Options& options) {
  require(!options.base_learning_rate,
          "a run with several models takes no learning rate of {}: each optimizer has its own; leave it out",
          options.base_learning_rate.value_or(0));
}

Differs other_data_of(const Options& options) { return options.allow_other_data ? Differs::told : Differs::refused; }

double rate_factor_of(const Options& options, std::int64_t step) {
  const data::BatchOptions sizes{.batch_size = options.batch_size, .batch_size_from_step = options.batch_size_from_step};
  const double ratio = static_cast<double>(batch_size_of(sizes, step)) / static_cast<double>(options.batch_size);
  switch (options.scale_learning_rate) {
    case RateScaling::none: break;
    case RateScaling::linear: return ratio;
    case RateScaling::square_root: return std::sqrt(ratio);
  }
  return 1;
}

optim::LearningRate rate_of(const Options& options, double highest, const std::optional<std::int64_t>& steps) {
  if (options.learning_rate) return options.learning_rate;
  if (!steps) {  // the end is not known, so the rate does not fall
    return optim::warmup_stable_decay(
        {.base = highest, .warmup = options.warmup, .total = std::numeric_limits<std::int64_t>::max()});
  }
  return optim::warmup_cosine({.base = highest,
                               .warmup = std::min(options.warmup, *steps),
                               .total = *steps,
                               .minimum = highest * options.minimum_learning_rate_ratio});
}

std::string words_of(const Options& options, const std::string& rates, const std::optional<std::int64_t>& steps) {
  std::string samples = fmt::format("{} samples", options.batch_size);
  for (const auto& [step, size] : options.batch_size_from_step) samples += fmt::format(", {} from step {} on", size, step);
  std::string line = steps ? fmt::format("{} of {}", to_text(Steps{*steps}), samples)
                           : fmt::format("steps of {} for {}", samples, to_text(options.until));
  if (options.learning_rate) {
    line += ", learning rate by a function of the step";
  } else {
    line += rates;
    const std::int64_t warmup = std::min(options.warmup, steps.value_or(options.warmup));
    if (warmup > 0) line += fmt::format(" after a warm-up of {}", to_text(Steps{warmup}));
    const double ratio = options.minimum_learning_rate_ratio;
    if (steps && ratio < 1) {
      line += fmt::format(", then half a cosine down to {} at step {}", ratio > 0 ? fmt::format("{} times that", ratio) : "0",
                          *steps);
    }
  }
  if (options.scale_learning_rate == RateScaling::linear) line += "; the rate is scaled with the batch size";
  if (options.scale_learning_rate == RateScaling::square_root) line += "; the rate is scaled with the root of the batch size";
  line += options.clip_norm > 0 ? fmt::format("; the norm of the gradients is clipped to {}", options.clip_norm)
                                : "; the norm of the gradients is not clipped";
  if (options.clip_value > 0) line += fmt::format(", their elements to {}", options.clip_value);
  return line;
}

}  // namespace trireme::trainer

#include "options.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <charconv>

#include "trireme/autograd/float8.hpp"
#include "trireme/core/error.hpp"
#include "trireme/ops/matmul/float8.hpp"
#include "trireme/parallel/pipeline/pipeline_schedule.hpp"

using trireme::require;

namespace {

void add_model(CLI::App& app, Options& options) {
  app.add_option("--layers", options.layers, "transformer blocks")->group("Model")->capture_default_str();
  app.add_option("--heads", options.heads, "attention heads; must divide the width")->group("Model")->capture_default_str();
  app.add_option("--width", options.width, "size of the residual stream")->group("Model")->capture_default_str();
  app.add_option("--block", options.block, "tokens the model sees")->group("Model")->capture_default_str();
  app.add_option("--dropout", options.dropout, "of the embedding and of each block's output")
      ->group("Model")
      ->capture_default_str();
}

void add_fp8(CLI::App& app, Options& options) {
  app.add_option(
         "--fp8", options.fp8,
         "none, current or delayed: 8-bit products in the blocks' linear layers, with --precision bf16; how their operands "
         "are scaled")
      ->group("Training")
      ->check(CLI::IsMember({"none", "current", "delayed"}))
      ->capture_default_str();
}

void add_mesh(CLI::App& app, Options& options) {
  app.add_option("--data-parallel", options.data_parallel, "replicas of the model [what the other two leave of the ranks]")
      ->group("Run");
  app.add_option("--pipeline-parallel", options.pipeline_parallel, "ranks of a replica that divide its layers into stages")
      ->group("Run")
      ->capture_default_str();
  app.add_option("--schedule", options.schedule, "in which order stages run a step's micro-batches; see trireme-schedule")
      ->group("Run")
      ->check(CLI::IsMember(trireme::parallel::pipeline_schedule_names()))
      ->capture_default_str();
  app.add_option("--chunks", options.chunks, "stages of each rank, above 1 with --schedule interleaved")
      ->group("Run")
      ->capture_default_str();
  app.add_option("--layer-costs", options.layer_costs,
                 "by which stages are cut: equal: as many blocks each; measured: before the first step; or numbers with commas "
                 "between them for the embedding, each block and the output layer")
      ->group("Run")
      ->capture_default_str();
  app.add_option("--tensor-parallel", options.tensor_parallel,
                 "ranks that divide heads, hidden features and vocabulary of a replica")
      ->group("Run")
      ->capture_default_str();
  app.add_flag("--sequence-parallel", options.sequence_parallel,
               "these ranks divide what lies between their layers too: less memory")
      ->group("Run");
}

void check(const Options& options) {
  require(options.tokenizer == "byte", "--tokenizer {}: only byte is known", options.tokenizer);
  require(options.layers > 0 && options.heads > 0 && options.width > 0 && options.block > 0,
          "--layers, --heads, --width and --block are above 0");
  require(options.width % options.heads == 0, "--heads {} does not divide --width {}", options.heads, options.width);
  require(options.data_parallel >= 0 && options.pipeline_parallel > 0 && options.chunks > 0 && options.tensor_parallel > 0,
          "--pipeline-parallel, --chunks and --tensor-parallel are above 0, and so is --data-parallel where it is given");
  require(options.pipeline_parallel * options.chunks <= options.layers,
          "--pipeline-parallel {} with --chunks {} makes more stages than there are --layers {}", options.pipeline_parallel,
          options.chunks, options.layers);
  const std::size_t costs = options.given_layer_costs().size();
  require(costs == 0 || costs == static_cast<std::size_t>(options.layers) + 2,
          "--layer-costs has {} numbers, with --layers {} it needs {}: embedding, blocks, output layer", costs, options.layers,
          options.layers + 2);
  require(options.pipeline_parallel > 1 || options.chunks == 1,
          "--chunks divides the layers of --pipeline-parallel, which is 1");
  require(options.heads % options.tensor_parallel == 0, "--tensor-parallel {} does not divide --heads {}",
          options.tensor_parallel, options.heads);
  const std::int64_t rows = options.block / options.tensor_parallel;
  require(!options.sequence_parallel || (options.block % options.tensor_parallel == 0 && rows * options.width % 16 == 0),
          "--sequence-parallel gives each rank of --tensor-parallel {} equally many tokens of a sequence, in multiples of 16 "
          "numbers: --block {} and --width {} don't allow that",
          options.tensor_parallel, options.block, options.width);
  require(!options.sequence_parallel || options.tensor_parallel > 1,
          "--sequence-parallel divides the rows among the ranks of --tensor-parallel, which is 1");
  const bool fp8 = trireme::float8_scaling_named(options.fp8) != trireme::Float8Scaling::none;
  require(!fp8 || options.training.precision == "bf16", "--fp8 {} needs --precision bf16, not {}", options.fp8,
          options.training.precision);
  require(!fp8 || options.tensor_parallel == 1, "--fp8 {} is for layers that --tensor-parallel does not divide", options.fp8);
  constexpr std::int64_t multiple = trireme::ops::float8_multiple;
  require(!fp8 || (options.width % multiple == 0 && options.block % multiple == 0),
          "--fp8 {} needs --width {} and --block {} to be multiples of {}", options.fp8, options.width, options.block,
          multiple);
  require(options.dropout >= 0 && options.dropout < 1, "--dropout {} does not lie in [0, 1)", options.dropout);
}

}  // namespace

Options parse_options(int argc, char** argv, std::string& help) {
  Options options;
  CLI::App app{"Trains a GPT on text, on one rank or on many: mpirun -n N train_gpt --data FILE"};
  TrainingParser parser(app, "train_gpt", options.training);
  parser.add_text();
  parser.add_precision();
  parser.add_device();
  app.add_option("--tokenizer", options.tokenizer, "byte: every byte is a token")->capture_default_str();
  add_model(app, options);
  add_fp8(app, options);
  add_mesh(app, options);
  if (parser.parse(argc, argv, help)) check(options);
  return options;
}

std::vector<double> Options::given_layer_costs() const {
  if (layer_costs == "equal" || layer_costs == "measured") return {};
  std::vector<double> costs;
  const char* const end = layer_costs.data() + layer_costs.size();
  for (const char* begin = layer_costs.data(); begin <= end;) {
    const auto [after, failure] = std::from_chars(begin, end, costs.emplace_back());
    require(failure == std::errc() && costs.back() >= 0 && (after == end || *after == ','),
            "--layer-costs {} is not equal, measured or numbers from 0 on with commas between them", layer_costs);
    begin = after + 1;
  }
  return costs;
}

trireme::optim::Settings Options::settings() const {
  const auto text = [](const auto& value) { return fmt::format("{}", value); };
  trireme::optim::Settings settings = training.settings();
  settings.insert(settings.end(), {{"layers", text(layers)},
                                   {"heads", text(heads)},
                                   {"width", text(width)},
                                   {"block", text(block)},
                                   {"dropout", text(dropout)},
                                   {"fp8", fp8},
                                   {"data_parallel", text(data_parallel)},
                                   {"pipeline_parallel", text(pipeline_parallel)},
                                   {"schedule", schedule},
                                   {"chunks", text(chunks)},
                                   {"layer_costs", layer_costs},
                                   {"tensor_parallel", text(tensor_parallel)},
                                   {"sequence_parallel", sequence_parallel ? "on" : "off"}});
  return settings;
}

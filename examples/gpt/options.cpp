#include "options.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <charconv>

#include "trireme/core/error.hpp"
#include "trireme/parallel/compression.hpp"

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
  app.add_option("--init", options.init, "start from these weights (safetensors, Hugging Face GPT-2 names)")->group("Model");
}

void add_training(CLI::App& app, Options& options) {
  const auto add = [&](const char* name, auto& value, const char* text) {
    app.add_option(name, value, text)->group("Training")->capture_default_str();
  };
  add("--batch-size", options.batch_size, "sequences of one step, all ranks together");
  app.add_option("--micro-batch-size", options.micro_batch_size, "sequences a rank computes at once [batch size / ranks]")
      ->group("Training");
  add("--steps", options.steps, "optimizer steps");
  add("--learning-rate", options.learning_rate, "highest learning rate");
  add("--min-learning-rate-ratio", options.min_learning_rate_ratio, "the last learning rate, as a share of the highest");
  add("--warmup", options.warmup, "steps over which the learning rate rises");
  add("--weight-decay", options.weight_decay, "of tensors with two or more dims");
  add("--beta1", options.beta1, "decay of AdamW's first moment");
  add("--beta2", options.beta2, "decay of AdamW's second moment");
  add("--clip", options.clip, "largest norm of the gradients together; 0: no limit");
  add("--seed", options.seed, "of first weights, data order, dropout and sample");
}

void add_run(CLI::App& app, Options& options, std::string& backend, std::string& bucket_mb) {
  const auto add = [&](const char* name, auto& value, const char* text) {
    app.add_option(name, value, text)->group("Run")->capture_default_str();
  };
  add("--bucket-mb", bucket_mb, "MiB of gradients that are reduced together; auto: the first 30 steps find the best buckets");
  app.add_option("--optimizer-sharding", options.optimizer_sharding,
                 "whether a rank updates only its part of the parameters; auto: on where all ranks share a node's memory")
      ->group("Run")
      ->check(CLI::IsMember({"auto", "on", "off"}))
      ->capture_default_str();
  app.add_option("--reduction", options.reduction,
                 "fixed: the same bits for any number of ranks, buckets and nodes, see --virtual-shards")
      ->group("Run")
      ->check(CLI::IsMember({"default", "fixed"}))
      ->capture_default_str();
  app.add_option("--virtual-shards", options.virtual_shards,
                 "of a batch with --reduction fixed: a power of two for each rank [number of ranks]")
      ->group("Run");
  add("--threads", options.threads, "threads of one rank; 0: OMP_NUM_THREADS, or its share of the cores");
  add("--backend", backend, "mpi (ranks are mpirun's processes) or thread (ranks are threads of this process)");
  add("--ranks", options.ranks, "ranks of the thread backend");
  add("--validation-fraction", options.validation_fraction, "share of the text, at its end, kept for validation");
  add("--validation-interval", options.validation_interval, "steps between validations; 0: none");
  add("--sample", options.sample, "characters to generate at the end");
  app.add_option("--save", options.save, "write the trained weights here (safetensors)")->group("Run");
  app.add_option("--metrics", options.metrics, "write a JSON object a step to this file")->group("Run");
  app.add_option("--flight-dir", options.flight_directory, "keep the ranks' last calls in this folder, for trireme-flight")
      ->group("Run");
}

void add_compression(CLI::App& app, Options& options) {
  const auto add = [&](const char* name, auto& value, const char* text) {
    return app.add_option(name, value, text)->group("Compression")->capture_default_str();
  };
  add("--compress", options.compress, "gradients between nodes: none, fp16, bf16, int8, topk:RATIO or powersgd:RANK");
  add("--compress-start", options.compress_start, "the first step with compression");
  add("--compress-warmup", options.compress_warmup,
      "steps each with 25, 6.3, 1.5 and 0.4 % of the elements before topk's RATIO");
  add("--compress-when", options.compress_when, "faster: only if a trial at the first such step was; always")
      ->check(CLI::IsMember({"faster", "always"}));
  add("--compress-between", options.compress_between, "nodes: their ranks sum their gradients first; ranks: each its own")
      ->check(CLI::IsMember({"nodes", "ranks"}));
}

double parse_bucket_mb(const std::string& text) {
  double value = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  require(failure == std::errc() && end == text.data() + text.size() && value > 0,
          "--bucket-mb {} is neither a number above 0 nor auto", text);
  return value;
}

void check(const Options& options) {
  require(options.tokenizer == "byte", "--tokenizer {}: only byte is known", options.tokenizer);
  require(options.layers > 0 && options.heads > 0 && options.width > 0 && options.block > 0,
          "--layers, --heads, --width and --block are above 0");
  require(options.width % options.heads == 0, "--heads {} does not divide --width {}", options.heads, options.width);
  require(options.dropout >= 0 && options.dropout < 1, "--dropout {} does not lie in [0, 1)", options.dropout);
  require(options.batch_size > 0 && options.micro_batch_size >= 0 && options.steps > 0,
          "--batch-size and --steps are above 0, --micro-batch-size too where it is given");
  require(options.learning_rate > 0, "--learning-rate {} is not above 0", options.learning_rate);
  require(options.min_learning_rate_ratio >= 0 && options.min_learning_rate_ratio <= 1,
          "--min-learning-rate-ratio {} does not lie in [0, 1]", options.min_learning_rate_ratio);
  require(options.warmup >= 0 && options.warmup <= options.steps, "--warmup {} does not lie in [0, --steps {}]", options.warmup,
          options.steps);
  require(options.beta1 >= 0 && options.beta1 < 1 && options.beta2 >= 0 && options.beta2 < 1,
          "--beta1 {} and --beta2 {} must lie in [0, 1)", options.beta1, options.beta2);
  require(options.weight_decay >= 0 && options.clip >= 0, "--weight-decay and --clip are 0 or more");
  require(options.validation_fraction >= 0 && options.validation_fraction < 1,
          "--validation-fraction {} does not lie in [0, 1)", options.validation_fraction);
  require(options.validation_interval >= 0 && options.sample >= 0 && options.threads >= 0,
          "--validation-interval, --sample and --threads are 0 or more");
  require(options.virtual_shards >= 0 && (options.virtual_shards == 0 || options.reduction == "fixed"),
          "--virtual-shards is above 0 and goes with --reduction fixed");
  require(options.reduction == "default" || options.micro_batch_size == 0,
          "--micro-batch-size follows from --virtual-shards with --reduction fixed; leave it out");
  require(options.compress_start >= 0 && options.compress_warmup >= 0, "--compress-start and --compress-warmup are 0 or more");
  trireme::parallel::parse_compression(options.compress, options.compress_warmup);
  require(options.ranks > 0, "--ranks {} is not above 0", options.ranks);
  require(options.ranks == 1 || options.backend == trireme::BackendKind::thread,
          "--ranks is for --backend thread; start more processes with mpirun -n {}", options.ranks);
}

}  // namespace

Options parse_options(int argc, char** argv, std::string& help) {
  Options options;
  std::string backend = "mpi";
  std::string bucket_mb = "25";
  CLI::App app{"Trains a GPT on text, on one rank or on many: mpirun -n N train_gpt --data FILE"};
  app.option_defaults()->take_last();  // of an option given twice
  app.add_option("--data", options.data, "a text file, or a folder of text files")->required();
  app.add_option("--tokenizer", options.tokenizer, "byte: every byte is a token")->capture_default_str();
  app.set_config("--config", "", "read options from this file (TOML: layers = 6)");
  app.allow_config_extras(CLI::config_extras_mode::error);
  add_model(app, options);
  add_training(app, options);
  add_run(app, options, backend, bucket_mb);
  add_compression(app, options);
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    help = app.help();
    return options;
  } catch (const CLI::ParseError& error) {
    throw trireme::Error(
        {.code = trireme::ErrorCode::invalid_argument, .message = error.what(), .hint = "train_gpt --help lists the options"});
  }
  options.backend = trireme::parse_backend(backend);
  options.bucket_mb = bucket_mb == "auto" ? 0 : parse_bucket_mb(bucket_mb);
  check(options);
  return options;
}

trireme::optim::Settings Options::settings() const {
  const auto text = [](const auto& value) { return fmt::format("{}", value); };
  return {{"layers", text(layers)},
          {"heads", text(heads)},
          {"width", text(width)},
          {"block", text(block)},
          {"batch_size", text(batch_size)},
          {"micro_batch_size", text(micro_batch_size)},
          {"steps", text(steps)},
          {"learning_rate", text(learning_rate)},
          {"min_learning_rate_ratio", text(min_learning_rate_ratio)},
          {"warmup", text(warmup)},
          {"weight_decay", text(weight_decay)},
          {"beta1", text(beta1)},
          {"beta2", text(beta2)},
          {"clip", text(clip)},
          {"dropout", text(dropout)},
          {"bucket_mb", text(bucket_mb)},
          {"optimizer_sharding", optimizer_sharding},
          {"reduction", reduction},
          {"virtual_shards", text(virtual_shards)},
          {"compress", compress},
          {"compress_start", text(compress_start)},
          {"compress_warmup", text(compress_warmup)},
          {"compress_when", compress_when},
          {"compress_between", compress_between},
          {"seed", text(seed)},
          {"validation_fraction", text(validation_fraction)},
          {"validation_interval", text(validation_interval)}};
}

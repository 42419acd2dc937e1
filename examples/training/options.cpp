#include "training/options.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <utility>

#include "command_line.hpp"
#include "trireme/core/error.hpp"
#include "trireme/parallel/compression.hpp"

using namespace trireme;

namespace {

double parse_bucket_mb(const std::string& text) {
  double value = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  require(failure == std::errc() && end == text.data() + text.size() && value > 0,
          "--bucket-mb {} is neither a number above 0 nor auto", text);
  return value;
}

// "100": steps; "30s", "10min", "2h".
CheckpointInterval parse_checkpoint_interval(const std::string& text) {
  std::int64_t count = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), count);
  const std::string_view unit(end, static_cast<std::size_t>(text.data() + text.size() - end));
  const bool known = unit.empty() || unit == "s" || unit == "min" || unit == "h";
  require(failure == std::errc() && known && count > 0 && count <= 1'000'000'000'000,
          "--checkpoint-interval {} is neither a number of steps, as 100, nor a time, as 30s, 10min or 2h", text);
  if (unit.empty()) return {.steps = count};
  return {.seconds = count * (unit == "s" ? 1 : unit == "min" ? 60 : 3600)};
}

std::string text_of_beta(const std::optional<double>& beta) { return beta ? fmt::format("{}", *beta) : "the optimizer's own"; }

parallel::Sharding parse_sharding(const std::string& text) {
  if (text == "auto") return parallel::Sharding::automatic;
  return text == "on" ? parallel::Sharding::optimizer : parallel::Sharding::none;
}

}  // namespace

TrainingParser::TrainingParser(CLI::App& app, std::string program, TrainingOptions& options)
    : app_(app), program_(std::move(program)), options_(options), recipe_optimizer_(options.optimizer) {
  app.name(program_);
  options.program = program_;
  add_version(app);
  app.option_defaults()->take_last();  // of an option given twice
  app.set_config("--config", "", "read options from this file (TOML: layers = 6)");
  app.allow_config_extras(CLI::config_extras_mode::error);
  add_training();
  add_run();
  add_checkpoints();
  add_compression();
}

void TrainingParser::add_training() {
  const auto add = [&](const char* name, auto& value, const char* text) {
    app_.add_option(name, value, text)->group("Training")->capture_default_str();
  };
  add("--batch-size", options_.batch_size, "samples of one step, all ranks together");
  app_.add_option("--micro-batch-size", options_.micro_batch_size, "samples a rank computes at once [batch size / ranks]")
      ->group("Training");
  add("--steps", options_.steps, "optimizer steps");
  app_.add_option("--optimizer", options_.optimizer, "what updates the weights")
      ->group("Training")
      ->check(CLI::IsMember(optim::optimizer_names()))
      ->capture_default_str();
  add("--learning-rate", options_.learning_rate, "highest learning rate");
  add("--min-learning-rate-ratio", options_.min_learning_rate_ratio, "the last learning rate, as a share of the highest");
  add("--warmup", options_.warmup, "steps over which the learning rate rises");
  add("--weight-decay", options_.weight_decay, "of tensors with two or more dims");
  const auto add_beta = [&](const char* name, std::optional<double>& value, const char* text) {
    app_.add_option(name, value, text)
        ->group("Training")
        ->default_str(fmt::format("{} for {}, else the optimizer's own", text_of_beta(value), recipe_optimizer_));
  };
  add_beta("--beta1", options_.beta1, "decay of the first moment, or the momentum");
  add_beta("--beta2", options_.beta2, "decay of the second moment, where there is one");
  add("--clip", options_.clip, "largest norm of the gradients together; 0: no limit");
  app_.add_option("--non-finite", options_.non_finite,
                  "a step whose loss or gradients are inf or nan: stop, or skip it. With fp16 the loss scale is lowered first")
      ->group("Training")
      ->check(CLI::IsMember({"stop", "skip"}))
      ->capture_default_str();
  add("--max-skipped", options_.max_skipped, "steps that --non-finite skip leaves out one after the other before it stops");
  add("--seed", options_.seed, "of first weights, data order, dropout and sample");
}

void TrainingParser::add_run() {
  const auto add = [&](const char* name, auto& value, const char* text) {
    app_.add_option(name, value, text)->group("Run")->capture_default_str();
  };
  add("--bucket-mb", bucket_mb_, "MiB of gradients that are reduced together; auto: the first 30 steps find the best buckets");
  app_.add_option("--bucket-profile", options_.bucket_profile,
                  "start with the tuned buckets in this file, or write there what tuning found")
      ->group("Run");
  add("--check-replicas", options_.check_replicas,
      "steps in which each weight is compared with those of its replicas; 0: never");
  app_.add_option("--optimizer-sharding", options_.optimizer_sharding,
                  "whether a rank updates only its part of the parameters; auto: on where all ranks share a node's memory")
      ->group("Run")
      ->check(CLI::IsMember({"auto", "on", "off"}))
      ->capture_default_str();
  add("--fixed-bits", options_.fixed_bits,
      "micro-batches of a step on all replicas, whose weights are then the same bits for any number of replicas, buckets and "
      "nodes: a power of two for each of them; 0: off");
  add("--threads", options_.threads, "threads of one rank; 0: OMP_NUM_THREADS, or its share of the cores");
  add("--backend", backend_, "mpi (ranks are mpirun's processes) or thread (ranks are threads of this process)");
  add("--ranks", options_.ranks, "ranks of the thread backend");
  app_.add_option("--init", options_.init, "start from these weights (safetensors)")->group("Run");
  app_.add_option("--save", options_.save, "write the trained weights here (safetensors)")->group("Run");
  app_.add_option("--metrics", options_.metrics, "write a JSON object a step to this file")->group("Run");
  app_.add_option("--flight-dir", options_.flight_directory, "keep the ranks' last calls in this folder, for trireme-flight")
      ->group("Run");
}

void TrainingParser::add_checkpoints() {
  app_.add_option(
          "--checkpoint-dir", options_.checkpoint_directory,
          "save checkpoints in this folder, which all ranks see, and go on from them; SIGTERM and SIGUSR1 save and stop")
      ->group("Checkpoints");
  app_.add_option("--checkpoint-interval", checkpoint_interval_,
                  "between checkpoints: steps, as 100, or a time, as 30s, 10min, 2h")
      ->group("Checkpoints")
      ->capture_default_str();
  app_.add_option("--keep", options_.keep, "checkpoints that stay, the newest ones; 2 or more")
      ->group("Checkpoints")
      ->capture_default_str();
  app_.add_option("--resume", options_.resume, "where to go on: auto (the newest checkpoint, if there is one), a step, or none")
      ->group("Checkpoints")
      ->capture_default_str();
  app_.add_flag("--allow-other-data", options_.allow_other_data, "go on with other --data than those of the checkpoint")
      ->group("Checkpoints");
}

void TrainingParser::add_validation() {
  app_.add_option("--validation-interval", options_.validation_interval, "steps between validations; 0: none")
      ->group("Run")
      ->capture_default_str();
}

void TrainingParser::add_images() {
  app_.add_option("--data", options_.data,
                  "a folder with MNIST's files, or a file or folder in CIFAR-10's binary format (data_batch_*.bin)")
      ->required();
}

void TrainingParser::add_text() {
  add_validation();
  app_.add_option("--data", options_.data, "a text file, or a folder of text files")->required();
  const auto add = [&](const char* name, auto& value, const char* text) {
    app_.add_option(name, value, text)->group("Run")->capture_default_str();
  };
  add("--validation-fraction", options_.validation_fraction, "share of the data, at its end, kept for validation");
  add("--sample", options_.sample, "tokens to generate at the end");
}

void TrainingParser::add_precision() {
  app_.add_option("--precision", options_.precision,
                  "fp32; bf16 or fp16: matrix products and convolutions in half the bytes, weights and sums in float32")
      ->group("Model")
      ->check(CLI::IsMember({"fp32", "bf16", "fp16"}))
      ->capture_default_str();
}

void TrainingParser::add_device() {
  app_.add_option("--device", options_.device, "cpu; cuda: each rank trains on an NVIDIA GPU")
      ->group("Run")
      ->check(CLI::IsMember({"cpu", "cuda"}))
      ->capture_default_str();
  app_.add_option(
          "--start-up", start_up_,
          "with --device cuda: what started the processes, mpi, torchrun, slurm or single; automatic: whose variables are set")
      ->group("Run")
      ->capture_default_str();
  app_.add_option("--memory-fraction", options_.memory_fraction, "of its GPU's memory that a rank may take")
      ->group("Run")
      ->capture_default_str();
  app_.add_flag("--allow-tf32", options_.allow_tf32, "with --device cuda: products of fp32 round their operands to TF32")
      ->group("Run");
}

void TrainingParser::add_compression() {
  const auto add = [&](const char* name, auto& value, const char* text) {
    return app_.add_option(name, value, text)->group("Compression")->capture_default_str();
  };
  add("--compress", options_.compress, "gradients between nodes: none, fp16, bf16, int8, topk:RATIO or powersgd:RANK");
  add("--compress-start", options_.compress_start, "the first step with compression");
  add("--compress-warmup", options_.compress_warmup,
      "steps each with 25, 6.3, 1.5 and 0.4 % of the elements before topk's RATIO");
  add("--compress-when", options_.compress_when, "faster: only if a trial at the first such step was; always")
      ->check(CLI::IsMember({"faster", "always"}));
  add("--compress-between", options_.compress_between, "nodes: their ranks sum their gradients first; ranks: each its own")
      ->check(CLI::IsMember({"nodes", "ranks"}));
}

void TrainingParser::check() const {
  require(options_.batch_size > 0 && options_.micro_batch_size >= 0 && options_.steps > 0,
          "--batch-size and --steps are above 0, --micro-batch-size too where it is given");
  require(options_.learning_rate > 0, "--learning-rate {} is not above 0", options_.learning_rate);
  require(options_.min_learning_rate_ratio >= 0 && options_.min_learning_rate_ratio <= 1,
          "--min-learning-rate-ratio {} does not lie in [0, 1]", options_.min_learning_rate_ratio);
  for (const auto& [name, beta] : {std::pair{"--beta1", options_.beta1}, {"--beta2", options_.beta2}}) {
    require(!beta || (*beta >= 0 && *beta < 1), "{} {} does not lie in [0, 1)", name, beta.value_or(0));
  }
  require(options_.weight_decay >= 0 && options_.clip >= 0, "--weight-decay and --clip are 0 or more");
  require(options_.max_skipped >= 0 && options_.check_replicas >= 0, "--max-skipped and --check-replicas are 0 or more");
  require(options_.validation_fraction >= 0 && options_.validation_fraction < 1,
          "--validation-fraction {} does not lie in [0, 1)", options_.validation_fraction);
  require(options_.validation_interval >= 0 && options_.sample >= 0 && options_.threads >= 0,
          "--validation-interval, --sample and --threads are 0 or more");
  require(options_.fixed_bits >= 0, "--fixed-bits is 0 or more");
  require(options_.fixed_bits == 0 || options_.micro_batch_size == 0,
          "--micro-batch-size follows from --fixed-bits; leave it out");
  require(
      options_.fixed_bits == 0 || options_.compress == "none",
      "--compress {} rounds gradients by what each node has, and --fixed-bits promises the same bits for any; give one of them",
      options_.compress);
  require(options_.bucket_mb > 0 || options_.compress == "none",
          "--bucket-mb auto measures reductions without --compress {}; give a number", options_.compress);
  require(options_.compress_start >= 0 && options_.compress_warmup >= 0,
          "--compress-start and --compress-warmup are 0 or more");
  parallel::parse_compression(options_.compress, options_.compress_warmup);
  require(options_.bucket_profile.empty() || options_.bucket_mb == 0, "--bucket-profile {} needs --bucket-mb auto",
          options_.bucket_profile);
  require(options_.keep >= 2, "--keep {}: one checkpoint must be left while the next is written; 2 or more", options_.keep);
  require(options_.memory_fraction > 0 && options_.memory_fraction <= 1, "--memory-fraction {} does not lie in (0, 1]",
          options_.memory_fraction);
  require(options_.device == "cpu" || options_.bucket_mb > 0,
          "--bucket-mb auto times the backward pass on the host; with --device cuda give a number");
  require(options_.device == "cpu" || options_.compress == "none",
          "--compress {} works on the host's memory, not with --device cuda", options_.compress);
  require(options_.start_up == StartUp::automatic || (options_.device == "cuda" && options_.backend == BackendKind::mpi),
          "--start-up {} is for processes with --device cuda", start_up_);
  require(options_.ranks > 0, "--ranks {} is not above 0", options_.ranks);
  require(options_.ranks == 1 || options_.backend == BackendKind::thread,
          "--ranks is for --backend thread; start more processes with mpirun -n {}", options_.ranks);
}

bool TrainingParser::parse(int argc, char** argv, std::string& help) {
  try {
    app_.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    help = app_.help();
    return false;
  } catch (const CLI::CallForVersion& version) {
    help = fmt::format("{}\n", version.what());
    return false;
  } catch (const CLI::ParseError& error) {
    throw Error({.code = ErrorCode::invalid_argument,
                 .message = text_of(error, app_),
                 .hint = fmt::format("{} --help lists the options", program_)});
  }
  options_.backend = parse_backend(backend_);
  options_.start_up = parse_start_up(start_up_);
  options_.checkpoint_interval = parse_checkpoint_interval(checkpoint_interval_);
  options_.bucket_mb = bucket_mb_ == "auto" ? 0 : parse_bucket_mb(bucket_mb_);
  if (options_.optimizer != recipe_optimizer_) {
    if (app_.count("--beta1") == 0) options_.beta1.reset();
    if (app_.count("--beta2") == 0) options_.beta2.reset();
  }
  check();
  return true;
}

optim::Settings TrainingOptions::settings() const {
  const auto text = [](const auto& value) { return fmt::format("{}", value); };
  return {{"data_content", data_content},
          {"batch_size", text(batch_size)},
          {"micro_batch_size", text(micro_batch_size)},
          {"steps", text(steps)},
          {"optimizer", optimizer},
          {"learning_rate", text(learning_rate)},
          {"min_learning_rate_ratio", text(min_learning_rate_ratio)},
          {"warmup", text(warmup)},
          {"weight_decay", text(weight_decay)},
          {"beta1", text_of_beta(beta1)},
          {"beta2", text_of_beta(beta2)},
          {"clip", text(clip)},
          {"non_finite", non_finite},
          {"max_skipped", text(max_skipped)},
          {"bucket_mb", text(bucket_mb)},
          {"optimizer_sharding", optimizer_sharding},
          {"fixed_bits", text(fixed_bits)},
          {"compress", compress},
          {"compress_start", text(compress_start)},
          {"compress_warmup", text(compress_warmup)},
          {"compress_when", compress_when},
          {"compress_between", compress_between},
          {"seed", text(seed)},
          {"device", device},
          {"allow_tf32", allow_tf32 ? "on" : "off"},
          {"precision", precision},
          {"validation_fraction", text(validation_fraction)},
          {"validation_interval", text(validation_interval)}};
}

void TrainingOptions::complete(const Group& world) {
  const std::int64_t size = world.size();
  require(batch_size % size == 0, "--batch-size {} does not divide by {} ranks; {} or {} would", batch_size, size,
          std::max<std::int64_t>(1, batch_size / size) * size, (batch_size / size + 1) * size);
  const std::int64_t share = batch_size / size;
  if (fixed_bits > 0) {
    require(fixed_bits % world.size() == 0, "--fixed-bits {} does not divide by {} ranks; {} or {} would", fixed_bits, size,
            size, 2 * size);
    require(batch_size % fixed_bits == 0, "--batch-size {} does not divide by --fixed-bits {}", batch_size, fixed_bits);
    micro_batch_size = batch_size / fixed_bits;
  }
  if (micro_batch_size == 0) micro_batch_size = share;
  require(share % micro_batch_size == 0, "--micro-batch-size {} does not divide a rank's {} of --batch-size {}",
          micro_batch_size, share, batch_size);
}

parallel::ParallelOptions TrainingOptions::data_parallel() const {
  parallel::ParallelOptions result{
      .sharding = parse_sharding(optimizer_sharding), .schedule = pipeline_schedule, .check_replicas = check_replicas};
  const parallel::Tuning tuning{.on = bucket_mb == 0, .profile = bucket_profile};
  if (compress != "none") {
    result.sum = parallel::Hooked{
        {.hook = parallel::parse_compression(compress, compress_warmup),
         .start = compress_start,
         .only_if_faster = compress_when == "faster",
         .between = compress_between == "nodes" ? parallel::CompressionBetween::nodes : parallel::CompressionBetween::ranks}};
  } else if (fixed_bits > 0) {
    result.sum = parallel::FixedBits{.micro_batches = fixed_bits, .tuning = tuning};
  } else {
    result.sum = parallel::Plain{.tuning = tuning};
  }
  if (bucket_mb > 0) {
    result.buckets.bytes = static_cast<std::int64_t>(std::ceil(bucket_mb * (1 << 20)));
    result.buckets.first_bytes = std::min<std::int64_t>(result.buckets.bytes, 1 << 20);
  }
  return result;
}

optim::NamedOptions TrainingOptions::optimizer_options() const {
  return {.learning_rate = learning_rate,
          .weight_decay = weight_decay,
          .beta1 = beta1,
          .beta2 = beta2,
          .decay = optim::Decay::matrices};
}

optim::UpdateOptions TrainingOptions::update_options() const {
  return {.clip_norm = clip,
          .non_finite = non_finite == "skip" ? optim::NonFinitePolicy::skip : optim::NonFinitePolicy::stop,
          .max_skipped = max_skipped};
}

optim::LearningRate TrainingOptions::schedule() const {
  require(warmup >= 0 && warmup <= steps, "--warmup {} does not lie in [0, {}], the steps of this run", warmup, steps);
  return optim::warmup_cosine(
      {.base = learning_rate, .warmup = warmup, .total = steps, .minimum = learning_rate * min_learning_rate_ratio});
}

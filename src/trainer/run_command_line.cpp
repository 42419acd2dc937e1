#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <variant>

#include "trainer/command_line_impl.hpp"
#include "trireme/core/error.hpp"
#include "trireme/core/parse_number.hpp"
#include "trireme/device/cuda.hpp"
#include "trireme/parallel/compression.hpp"
#include "trireme/parallel/pipeline/pipeline_schedule.hpp"

namespace trireme::trainer {

namespace {

// How gradients are summed, in the words of the command line.
struct Reduction {
  std::string bucket_mb = "25";
  std::string bucket_profile = {};
  int fixed_bits = 0;
  std::string compress = "none";
  std::int64_t compress_start = 0;
  std::int64_t compress_warmup = 0;
  std::string compress_when = "faster";
  std::string compress_between = "nodes";

  bool tunes() const { return bucket_mb == "auto"; }
  std::int64_t bucket_bytes() const {
    const auto value = parse_number<double>(bucket_mb);
    require(value && *value > 0 && *value < 1e9, "--bucket-mb {} is neither a number of MiB above 0 nor auto", bucket_mb);
    return static_cast<std::int64_t>(std::ceil(*value * (1 << 20)));
  }

  void check() const {
    const bool compresses = compress != "none";
    require(fixed_bits >= 0, "--fixed-bits is 0 or more");
    require(
        fixed_bits == 0 || !compresses,
        "--compress {} rounds gradients by what each node has, and --fixed-bits promises the same bits for any; give one of "
        "them",
        compress);
    require(!tunes() || !compresses, "--bucket-mb auto measures reductions without --compress {}; give a number", compress);
    require(bucket_profile.empty() || tunes(), "--bucket-profile {} needs --bucket-mb auto", bucket_profile);
    constexpr std::int64_t most = std::int64_t{1} << 40;
    require(compress_start >= 0 && compress_start <= most && compress_warmup >= 0 && compress_warmup <= most,
            "--compress-start and --compress-warmup lie in [0, {}], {} and {} do not", most, compress_start, compress_warmup);
    parallel::parse_compression(compress, compress_warmup);
  }

  parallel::GradientSum sum() const {
    const parallel::Tuning tuning{.on = tunes(), .profile = bucket_profile};
    if (compress != "none") {
      return parallel::Hooked{
          {.hook = parallel::parse_compression(compress, compress_warmup),
           .start = compress_start,
           .only_if_faster = compress_when == "faster",
           .between = compress_between == "nodes" ? parallel::CompressionBetween::nodes : parallel::CompressionBetween::ranks}};
    }
    if (fixed_bits > 0) return parallel::FixedBits{.micro_batches = fixed_bits, .tuning = tuning};
    return parallel::Plain{.tuning = tuning};
  }
};

parallel::Sharding sharding_named(const std::string& name) {
  if (name == "auto") return parallel::Sharding::automatic;
  return name == "on" ? parallel::Sharding::optimizer : parallel::Sharding::none;
}

}  // namespace

void CommandLine::add_run(Options& options) {
  impl_->of_run = true;
  add_training(options);
  add_checkpoints(options);
  add_mesh(options);
  add_reduction(options);
  impl_->of_run = false;
}

void CommandLine::add_launch(BackendKind& backend, LaunchOptions& options) {
  impl_->of_run = true;
  set_group("Ranks");
  impl_
      ->add_text("backend", backend == BackendKind::thread ? "thread" : "mpi",
                 "ranks are processes that mpirun started, or threads of this one",
                 [&backend](const std::string& given) { backend = parse_backend(given); })
      ->check(CLI::IsMember({"mpi", "thread"}));
  add("ranks", options.ranks, "of --backend thread");
  add("threads", options.threads_per_rank, "of one rank; 0: OMP_NUM_THREADS, or its share of the cores");
  add("flight-dir", options.flight_directory, "keep the ranks' last calls in this folder, for trireme-flight");
  after_parsing([&backend, &options] {
    require(options.ranks > 0 && options.threads_per_rank >= 0, "--ranks is above 0 and --threads 0 or more, not {} and {}",
            options.ranks, options.threads_per_rank);
    require(options.ranks == 1 || backend == BackendKind::thread,
            "--ranks is for --backend thread; start more processes with mpirun -n {}", options.ranks);
  });
  impl_->of_run = false;
}

void CommandLine::add_device(DeviceOptions& options) {
  impl_->of_run = true;
  impl_->device = &options;
  set_group("Device");
  add("device", options.device, {"cpu", "cuda"}, "cuda: each rank computes on an NVIDIA GPU");
  impl_->add_text("start-up", "automatic",
                  "with --device cuda: what started the processes, mpi, torchrun, slurm or single; automatic: whose variables "
                  "are set",
                  [&options](const std::string& given) { options.start_up = parse_start_up(given); });
  add("memory-fraction", options.memory_fraction, "of its GPU's memory that a rank may take");
  add("allow-tf32", options.allow_tf32, "with --device cuda: products of float32 round their operands to TF32");
  after_parsing([this, &options] {
    require(options.memory_fraction > 0 && options.memory_fraction <= 1, "--memory-fraction {} does not lie in (0, 1]",
            options.memory_fraction);
    require(!given("start-up") || options.device == "cuda", "--start-up is for processes with --device cuda");
    if (options.device == "cuda") device::require_cuda();
  });
  impl_->of_run = false;
}

void CommandLine::add_training(Options& options) {
  set_group("Training");
  const auto lasts = [this, &options](const char* name, const char* text, std::string unit) {
    return impl_->add_text(name, "", text, [&options, unit = std::move(unit)](const std::string& given) {
      options.until = parse_amount(given + unit);
    });
  };
  CLI::Option* until = lasts("until", "how long: 600 steps, 20 epochs, 1000000 tokens, 5000 samples, 90s, 10min, 2h", "");
  until->default_str(to_text(options.until));
  CLI::Option* steps = lasts("steps", "the same in steps", " steps")->excludes(until);
  lasts("epochs", "the same in passes over the data; 0.5 is half of one", " epochs")->excludes(until)->excludes(steps);
  add("batch-size", options.batch_size, "samples of a step, all ranks together");
  add("micro-batch-size", options.micro_batch_size, "samples that a rank computes at once; 0: all of its share");
  add("seed", options.seed, "of first values, the order of the data, and dropout");
  if (impl_->app.get_option_no_throw("--learning-rate") == nullptr)  // else the program has one of its own
    add("learning-rate", options.base_learning_rate, "highest learning rate; not given: the optimizer's own");
  add("warmup", options.warmup, "steps over which the learning rate rises");
  add("min-learning-rate-ratio", options.minimum_learning_rate_ratio, "the last learning rate, as a share of the highest");
  add("clip", options.clip_norm, "largest norm of all gradients together; 0: no limit");
  add("clip-value", options.clip_value, "largest magnitude of an element of the gradients after that; 0: no limit");
  impl_
      ->add_text("non-finite", options.non_finite == optim::NonFinitePolicy::stop ? "stop" : "skip",
                 "a step whose loss or gradients are inf or nan: stop, or skip it",
                 [&options](const std::string& given) {
                   options.non_finite = given == "stop" ? optim::NonFinitePolicy::stop : optim::NonFinitePolicy::skip;
                 })
      ->check(CLI::IsMember({"stop", "skip"}));
  add("max-skipped", options.max_skipped, "steps that --non-finite skip leaves out one after the other before it stops");
}

void CommandLine::add_checkpoints(Options& options) {
  set_group("Checkpoints and metrics");
  impl_->add_text(
      "checkpoint-dir", options.checkpoints.directory.string(),
      "save checkpoints in this folder, which all ranks see, and go on from them; Ctrl-C, SIGTERM, SIGUSR1 and SIGHUP "
      "save and stop",
      [&options](const std::string& given) { options.checkpoints.directory = given; });
  add("checkpoint-interval", options.checkpoint_every, "between checkpoints: 100 steps, 1 epoch, 10min");
  add("keep", options.checkpoints.keep, "checkpoints that stay, the newest ones; 2 or more");
  add("resume", options.resume, "where to go on: auto (the newest checkpoint, if there is one), a step, or none");
  add("allow-other-data", options.allow_other_data, "go on from a checkpoint of other data, which is told in a line");
  add("metrics", options.metrics, "write metrics to this file after each step: CSV where it ends in .csv, else JSON lines");
}

void CommandLine::add_mesh(Options& options) {
  set_group("Mesh");
  add("data-parallel", options.mesh.data, "replicas of the model; 0: what the other axes leave of the ranks");
  add("pipeline-parallel", options.mesh.pipeline, "ranks of a replica that divide its layers into stages");
  std::vector<std::string> schedules = parallel::pipeline_schedule_names();
  impl_
      ->add_string("schedule", options.parallel.schedule,
                   "in which order stages run a step's micro-batches; see trireme-schedule")
      ->check(CLI::IsMember(std::move(schedules)))
      ->default_str("1f1b, or interleaved where ranks have several stages");
  add("chunks", options.chunks, "stages of each rank of the pipeline");
  add("tensor-parallel", options.mesh.tensor, "ranks that divide each layer");
  add("expert-parallel", options.mesh.expert, "ranks that divide the experts of each mixture");
  add("sequence-parallel", options.sequence_parallel, "these divide what lies between their layers too: less memory");
  after_parsing([&options] {
    require(options.mesh.pipeline > 1 || options.chunks == 1, "--chunks divides the layers of --pipeline-parallel, which is {}",
            options.mesh.pipeline);
    require(options.mesh.tensor > 1 || !options.sequence_parallel,
            "--sequence-parallel divides the rows among the ranks of --tensor-parallel, which is {}", options.mesh.tensor);
  });
}

void CommandLine::add_reduction(Options& options) {
  set_group("Gradients");
  const auto reduction = std::make_shared<Reduction>();
  const std::vector<std::string> names{"bucket-mb",      "bucket-profile",  "fixed-bits",    "compress",
                                       "compress-start", "compress-warmup", "compress-when", "compress-between"};
  add("bucket-mb", reduction->bucket_mb,
      "MiB of gradients that are reduced together; auto: the first 30 steps find the best buckets");
  add("bucket-profile", reduction->bucket_profile,
      "start with the tuned buckets in this file, or write there what tuning found");
  add("fixed-bits", reduction->fixed_bits,
      "micro-batches of a step on all replicas, whose weights are then the same bits for any number of replicas, buckets and "
      "nodes: a power of two for each of them; 0: off");
  add("compress", reduction->compress, "gradients between nodes: none, fp16, bf16, int8, topk:RATIO or powersgd:RANK");
  add("compress-start", reduction->compress_start, "the first step with compression");
  add("compress-warmup", reduction->compress_warmup,
      "steps each with 25, 6.3, 1.5 and 0.4 % of the elements before topk's RATIO");
  add("compress-when", reduction->compress_when, {"faster", "always"}, "faster: only if a trial at the first such step was");
  add("compress-between", reduction->compress_between, {"nodes", "ranks"},
      "nodes: their ranks sum their gradients first; ranks: each its own");
  impl_
      ->add_text("optimizer-sharding", "auto",
                 "whether a rank updates only its part of the parameters; auto: on where all ranks share a node's memory",
                 [&options](const std::string& given) { options.parallel.sharding = sharding_named(given); })
      ->check(CLI::IsMember({"auto", "on", "off"}));
  add("check-replicas", options.parallel.check_replicas,
      "steps in which each weight is compared with those of its replicas; 0: never");
  after_parsing([this, &options, reduction, names] {
    if (std::ranges::none_of(names, [this](const std::string& name) { return given(name); })) return;  // as the program has it
    reduction->check();
    require(reduction->fixed_bits == 0 || options.micro_batch_size == 0,
            "--micro-batch-size follows from --fixed-bits; leave it out");
    const bool sums =
        std::ranges::any_of(names, [this](const std::string& name) { return name != "bucket-mb" && given(name); });
    if (sums || reduction->tunes()) options.parallel.sum = reduction->sum();
    if (reduction->tunes() || !given("bucket-mb")) return;
    options.parallel.buckets.bytes = reduction->bucket_bytes();
    options.parallel.buckets.first_bytes = std::min<std::int64_t>(options.parallel.buckets.bytes, 1 << 20);
  });
}

}  // namespace trireme::trainer

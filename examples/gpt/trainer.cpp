#include "trainer.hpp"

#include <fmt/format.h>
#include <sched.h>
#include <unistd.h>

#include <chrono>
#include <cmath>

#include "trireme/data/text.hpp"
#include "trireme/data/window_sampler.hpp"

using namespace trireme;

namespace {

constexpr std::int64_t validation_windows = 64;

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

Options completed(Options options, const Group& world) {
  const std::int64_t ranks = world.size();
  require(options.batch_size % ranks == 0, "--batch-size {} does not divide by {} ranks; {} or {} would", options.batch_size,
          ranks, std::max<std::int64_t>(1, options.batch_size / ranks) * ranks, (options.batch_size / ranks + 1) * ranks);
  const std::int64_t share = options.batch_size / ranks;
  if (options.reduction == "fixed") {
    if (options.virtual_shards == 0) options.virtual_shards = world.size();
    require(options.virtual_shards % world.size() == 0, "--virtual-shards {} do not divide by {} ranks; {} or {} would",
            options.virtual_shards, ranks, ranks, 2 * ranks);
    require(options.batch_size % options.virtual_shards == 0, "--batch-size {} does not divide by --virtual-shards {}",
            options.batch_size, options.virtual_shards);
    options.micro_batch_size = options.batch_size / options.virtual_shards;
  }
  if (options.micro_batch_size == 0) options.micro_batch_size = share;
  require(share % options.micro_batch_size == 0, "--micro-batch-size {} does not divide a rank's {} of --batch-size {}",
          options.micro_batch_size, share, options.batch_size);
  return options;
}

models::GptOptions model_options(const Options& options) {
  return {.layers = options.layers,
          .heads = options.heads,
          .width = options.width,
          .block = options.block,
          .vocabulary = data::ByteTokenizer::vocabulary_size,
          .dropout = options.dropout};
}

parallel::Sharding sharding(const Options& options) {
  if (options.optimizer_sharding == "auto") return parallel::Sharding::automatic;
  return options.optimizer_sharding == "on" ? parallel::Sharding::on : parallel::Sharding::off;
}

parallel::DataParallelOptions data_parallel_options(const Options& options) {
  parallel::DataParallelOptions result{
      .sharding = sharding(options), .tune_buckets = options.bucket_mb == 0, .virtual_shards = options.virtual_shards};
  result.compression = {.hook = parallel::parse_compression(options.compress, options.compress_warmup),
                        .start = options.compress_start,
                        .only_if_faster = options.compress_when == "faster",
                        .between = options.compress_between == "nodes" ? parallel::CompressionBetween::nodes
                                                                       : parallel::CompressionBetween::ranks};
  if (options.bucket_mb > 0) {
    result.bucket_bytes = static_cast<std::int64_t>(std::ceil(options.bucket_mb * (1 << 20)));
    result.first_bucket_bytes = std::min<std::int64_t>(result.bucket_bytes, 1 << 20);
  }
  return result;
}

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

}  // namespace

Trainer::Trainer(const Options& options, const Group& world)
    : options_(completed(options, world)), world_(world), model_(model_options(options_)) {
  parallel::require_same(world, "option", options_.settings());
  world.agree([this] { open(); }, "open data and files");
  data_parallel_ = std::make_unique<parallel::DataParallel>(model_, ProcessMesh(world), data_parallel_options(options_));
  optimizer_ =
      std::make_unique<optim::AdamW<Float32>>(model_.store(), optim::AdamWOptions{.learning_rate = options_.learning_rate,
                                                                                  .beta1 = options_.beta1,
                                                                                  .beta2 = options_.beta2,
                                                                                  .weight_decay = options_.weight_decay,
                                                                                  .decay = optim::Decay::matrices});
  schedule_ = optim::warmup_cosine({.base = options_.learning_rate,
                                    .warmup = options_.warmup,
                                    .total = options_.steps,
                                    .minimum = options_.learning_rate * options_.min_learning_rate_ratio});
}

void Trainer::open() {
  text_ = data::split(data::TokenDataset::from_bytes(data::read_text(options_.data)), options_.validation_fraction);
  loader_.emplace(text_->training, data::WindowLoaderOptions{.batch_size = options_.batch_size,
                                                             .micro_batch_size = options_.micro_batch_size,
                                                             .length = options_.block,
                                                             .seed = options_.seed,
                                                             .index = world_.rank(),
                                                             .count = world_.size()});
  require(options_.validation_interval == 0 || options_.validation_fraction == 0 || text_->validation.size() > options_.block,
          "the validation part of {} has {} tokens, --block {} needs more; raise --validation-fraction or set it to 0",
          options_.data, text_->validation.size(), options_.block);
  model_.initialize({.seed = options_.seed});
  if (!options_.init.empty()) models::load_gpt2(model_, options_.init);
  metrics_ = std::make_unique<MetricsFile>(world_.rank() == 0 ? options_.metrics : std::string());
}

void Trainer::run() {
  print_start();
  progress_ = std::make_unique<Progress>(options_.steps, world_.rank() == 0);
  const auto start = std::chrono::steady_clock::now();
  const bool validates = options_.validation_interval > 0 && text_->validation.size() > options_.block;
  for (std::int64_t step = 0; step < options_.steps; ++step) {
    const auto step_start = std::chrono::steady_clock::now();
    const bool tuned = data_parallel_->tuning().has_value();
    const bool decided = data_parallel_->compression_decision().has_value();
    const std::uint64_t sent_before = data_parallel_->bytes_sent();
    const StepSummary summary = train_step(step);
    if (data_parallel_->tuning() && !tuned) report(*data_parallel_->tuning());
    if (data_parallel_->compression_decision() && !decided) progress_->note(data_parallel_->compression_decision()->text);
    StepMetrics metrics{.step = step,
                        .loss = summary.loss(),
                        .learning_rate = optimizer_->learning_rate(),
                        .gradient_norm = summary.gradient_norm,
                        .seconds = seconds_since(step_start),
                        .exposed_communication_seconds = summary.exposed_communication_seconds,
                        .bytes_sent = data_parallel_->bytes_sent() - sent_before};
    metrics.tokens_per_second = static_cast<double>(options_.batch_size * options_.block) / metrics.seconds;
    metrics.compute_seconds = metrics.seconds - metrics.exposed_communication_seconds;
    const bool last = step + 1 == options_.steps;
    if (validates && (last || (step + 1) % options_.validation_interval == 0)) metrics.validation_loss = validate();
    report(metrics);
  }
  progress_.reset();
  world_.agree([this] {
    if (world_.rank() == 0 && !options_.save.empty()) models::save_gpt2(model_, options_.save);
  });
  print_end(seconds_since(start));
  print_sample();
  world_.barrier("end of training");
}

StepSummary Trainer::train_step(std::int64_t step) {
  const auto micro_batches = static_cast<int>(loader_->num_micro_batches());
  auto reduction = data_parallel_->begin_step(micro_batches);
  for (int micro = 0; micro < micro_batches; ++micro) {
    const data::TokenBatch batch = loader_->load(step, micro);
    Tape tape({.seed = options_.seed, .step = static_cast<std::uint64_t>(step), .first_sample = batch.first_sample});
    reduction.listen(tape);
    const auto loss = model_.loss(batch.tokens, batch.targets);
    loss.backward();
    reduction.add(loss);
  }
  const StepSummary summary = reduction.finish();
  optimizer_->set_learning_rate(schedule_(step));
  optimizer_->step(summary, {.clip_norm = options_.clip});
  return summary;
}

// The mean loss of evenly spaced windows, spread over the ranks.
double Trainer::validate() const {
  const auto starts = data::evenly_spaced_windows(text_->validation.size(), options_.block, validation_windows);
  std::array<double, 2> total{};  // loss, tokens
  for (auto window = static_cast<std::size_t>(world_.rank()); window < starts.size();
       window += static_cast<std::size_t>(world_.size())) {
    const data::TokenBatch batch = data::read_windows(text_->validation, std::span(starts).subspan(window, 1), options_.block);
    const auto loss = model_.loss(batch.tokens, batch.targets);
    total[0] += static_cast<double>(loss.sum.value().item());
    total[1] += static_cast<double>(loss.kept);
  }
  world_.all_reduce(std::span(total), ReduceOp::sum, "validation loss").wait_on_host();
  return total[0] / total[1];
}

void Trainer::report(const parallel::BucketTuning& tuning) {
  progress_->note(fmt::format(
      "gradient buckets: {}, {:.1f} ms exposed as predicted; a step takes {:.1f} ms, with buckets of 25 MiB {:.1f} ms",
      tuning.plan.size(), 1e3 * tuning.predicted_exposed_seconds, 1e3 * tuning.step_seconds,
      1e3 * tuning.initial_step_seconds));
}

void Trainer::report(const StepMetrics& metrics) {
  if (metrics.step == 0) first_ = metrics;
  const std::optional<double> validated = metrics.validation_loss ? metrics.validation_loss : last_.validation_loss;
  last_ = metrics;
  last_.validation_loss = validated;
  exposed_seconds_ += metrics.exposed_communication_seconds;
  metrics_->write(metrics);
  if (metrics.validation_loss) {
    progress_->note(fmt::format("step {}: validation loss {:.4f}", metrics.step + 1, *metrics.validation_loss));
  }
  progress_->step(metrics.step, metrics.loss, metrics.tokens_per_second, metrics.bytes_sent);
}

void Trainer::print_start() const {
  if (world_.rank() != 0) return;
  fmt::print("{} parameters, {} layers of width {}; {} tokens to train on; {} rank{}, {} sequences of {} a step\n",
             model_.store().numel(), options_.layers, options_.width, text_->training.size(), world_.size(),
             world_.size() == 1 ? "" : "s", options_.batch_size, options_.block);
  if (options_.backend == BackendKind::mpi && options_.threads == 0) {
    const std::string notice = binding_notice(world_);
    if (!notice.empty()) fmt::print("{}\n", notice);
  }
}

void Trainer::print_end(double seconds) const {
  if (world_.rank() != 0) return;
  const double tokens = static_cast<double>(options_.steps * options_.batch_size * options_.block);
  fmt::print("{} steps in {:.1f} s: loss {:.4f} -> {:.4f}, {:.0f} tokens/s, {:.1f} % of the time waiting for other ranks\n",
             options_.steps, seconds, first_.loss, last_.loss, tokens / seconds, 100 * exposed_seconds_ / seconds);
  if (data_parallel_->bytes_sent() > 0) {
    fmt::print("{:.3f} MB sent to other nodes in the last step\n", 1e-6 * static_cast<double>(last_.bytes_sent));
  }
  if (last_.validation_loss) fmt::print("validation loss {:.4f}\n", *last_.validation_loss);
  if (!options_.save.empty()) fmt::print("weights written to {}\n", options_.save);
}

void Trainer::print_sample() const {
  if (world_.rank() != 0 || options_.sample == 0) return;
  const auto tokens =
      models::generate(model_, tokenizer_.encode("\n"), {.count = options_.sample, .temperature = 0.8, .seed = options_.seed});
  fmt::print("--- sample ---\n{}\n", tokenizer_.decode(tokens));
}

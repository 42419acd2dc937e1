// A training step on batches that are read and decoded while it computes, in turn with steps on the same batches held in
// memory.
//   streaming_step --data 'train-{0..3}.tar' --image-size 64     a ResNet-18
//   streaming_step --data 's3://bucket/train.safetensors'        a GPT of 10.9M parameters
// One thread computes, so all other time of the process is the loader's. Where other programs use the machine too, compare the
// computing thread's processor time with what it waits for batches: it leaves out the time in which another thread had the
// core.

#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>
#include <thread>
#include <trireme/trireme.hpp>

#include "measurement/command_line.hpp"
#include "measurement/measurement.hpp"
#include "trireme/data/loaders/tar_images.hpp"
#include "trireme/data/sources/locations_of.hpp"

using namespace trireme;

namespace {

struct Options {
  std::string data;
  std::int64_t batch = 32;
  std::int64_t image_size = 0;
  std::int64_t length = 256;
  std::int64_t prefetch = 2;
  int threads = 1;
  int rounds = 15;
  int steps = 8;
  std::string json;
};

double seconds_on(clockid_t clock) {
  timespec time{};
  ::clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}
double seconds_of_this_thread() { return seconds_on(CLOCK_THREAD_CPUTIME_ID); }
double seconds_of_other_threads() { return seconds_on(CLOCK_PROCESS_CPUTIME_ID) - seconds_of_this_thread(); }

// Counts the batches that are loaded.
template <typename L>
class Counting {
 public:
  explicit Counting(L loader) : loader_(std::move(loader)) {}

  std::int64_t num_micro_batches() const { return loader_.num_micro_batches(); }
  std::int64_t batch_size() const { return loader_.batch_size(); }
  std::int64_t samples_per_epoch() const { return loader_.samples_per_epoch(); }
  auto load(std::int64_t step, std::int64_t micro_batch = 0) const {
    auto batch = loader_.load(step, micro_batch);
    ++*loaded_;
    return batch;
  }
  std::int64_t loaded() const { return *loaded_; }

 private:
  L loader_;
  std::shared_ptr<std::atomic<std::int64_t>> loaded_ = std::make_shared<std::atomic<std::int64_t>>(0);
};

// Seconds of a step, in memory and streamed.
struct Side {
  double elapsed = 0;
  double processor = 0;  // of the thread that computes
};
struct Round {
  Side memory;
  Side streamed;
  double loader = 0;   // processor seconds
  double waiting = 0;  // for batches
};

template <typename Run>
Side time_of(int steps, const Run& run) {
  const double before = seconds_of_this_thread();
  const double elapsed = seconds_of(run);
  return {.elapsed = elapsed / steps, .processor = (seconds_of_this_thread() - before) / steps};
}

template <typename Net, typename Loader>
int measure(const Options& options, const Group& world, Net& model, const Loader& batches) {
  model.initialize();
  parallel::DataParallel replicas(model, ProcessMesh(world));
  optim::AdamW optimizer(model, {.learning_rate = 1e-5});
  const data::Prefetching loader(Counting<Loader>(batches), {.threads = options.threads, .batches = options.prefetch});
  using Batch = typename std::remove_cvref_t<decltype(loader)>::Batch;
  std::int64_t updates = 0, taken = 0;
  const auto train = [&](const Batch& batch) {
    parallel::Step step = replicas.begin(updates++);
    step.backward(model, std::span(&batch, 1));
    step.update(optimizer);
  };
  // What was prefetched before the first of these steps is read again by the end: all rounds pay for their own batches.
  const auto wait_until_full = [&] {
    while (loader.loader().loaded() < taken + options.prefetch) std::this_thread::sleep_for(std::chrono::microseconds(100));
  };

  std::vector<Batch> kept;
  std::vector<Round> rounds;
  for (int round = -1; round < options.rounds; ++round) {
    kept.clear();
    if (taken > 0) wait_until_full();
    const double waited = loader.report().waiting_seconds, others = seconds_of_other_threads();
    const Side streamed = time_of(options.steps, [&] {
      for (int step = 0; step < options.steps; ++step) {
        kept.push_back(loader.load(taken++));
        train(kept.back());
      }
      wait_until_full();
    });
    const double of_loader = seconds_of_other_threads() - others;
    const Side memory = time_of(options.steps, [&] {
      for (const Batch& batch : kept) train(batch);
    });
    if (round < 0) continue;
    rounds.push_back({memory, streamed, of_loader / options.steps, (loader.report().waiting_seconds - waited) / options.steps});
  }

  nlohmann::ordered_json figures;
  const auto print = [&](const char* key, const char* name, const char* unit, auto value_of) {
    std::vector<double> values;
    for (const Round& round : rounds) values.push_back(value_of(round));
    std::ranges::sort(values);
    const std::size_t quarter = values.size() / 4;
    figures[key] = median(values);
    fmt::print("{:50} {:9.3f} {:2}  ({:.3f} to {:.3f})\n", name, median(values), unit, values[quarter],
               values[values.size() - 1 - quarter]);
  };
  fmt::print("{} rounds of {} steps each; medians, and the middle half\n", options.rounds, options.steps);
  print("memory_ms", "step, batch in memory", "ms", [](const Round& round) { return 1e3 * round.memory.elapsed; });
  print("streamed_ms", "step, batch streamed", "ms", [](const Round& round) { return 1e3 * round.streamed.elapsed; });
  print("loader_ms", "the loader's processor time for a step", "ms", [](const Round& round) { return 1e3 * round.loader; });
  print("waiting_ms", "waiting for the batch of a step", "ms", [](const Round& round) { return 1e3 * round.waiting; });
  print("ratio", "streamed / in memory", "", [](const Round& round) { return round.streamed.elapsed / round.memory.elapsed; });
  print("ratio_beyond", "without the loader's processor time", "",
        [](const Round& round) { return (round.streamed.elapsed - round.loader) / round.memory.elapsed; });
  print("ratio_processor", "processor time of computing, and waiting", "",
        [](const Round& round) { return (round.streamed.processor + round.waiting) / round.memory.processor; });
  write_json(options.json, figures);
  return 0;
}

int measure_images(const Options& options, const Group& world) {
  const auto images =
      data::tar_images(data::TarShards(data::locations_of(options.data)),
                       {.images = {.height = options.image_size, .width = options.image_size, .classes = 1000}});
  const data::ImageLoader loader(images,
                                 {.batch = {.batch_size = options.batch},
                                  .normalization = {.mean = {0.485F, 0.456F, 0.406F}, .std = {0.229F, 0.224F, 0.225F}},
                                  .augmentation = {.random_resized_crop = data::RandomResizedCrop{}, .horizontal_flip = true}});
  auto model = models::ResNetOptions::resnet18();
  model.stem = models::ResNetOptions::Stem::imagenet;
  model.classes = 1000;
  models::ResNet<Float32> net(model);
  return measure(options, world, net, loader);
}

int measure_tokens(const Options& options, const Group& world) {
  const data::PackedRows rows(data::TokenShards(data::locations_of(options.data)), {.length = options.length});
  const data::Loader loader(rows, {.batch = {.batch_size = options.batch}});
  models::Gpt<Float32> net({.block = options.length, .vocabulary = rows.documents().largest_token() + 1});
  return measure(options, world, net, loader);
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CommandLine command("A training step on batches that are read while it computes, in turn with the same batches in memory.");
  command.option("--data", options.data, "a pattern of tar archives, with --image-size, or of token shards");
  command.option("--image-size", options.image_size, "pixels of an image each way; 0: token shards", not_negative);
  command.option("--batch", options.batch, "samples of a step");
  command.option("--length", options.length, "tokens of a row");
  command.option("--prefetch", options.prefetch, "batches that are prefetched");
  command.option("--threads", options.threads, "that prefetch");
  command.option("--rounds", options.rounds, "timed rounds");
  command.option("--steps", options.steps, "of each side in a round");
  command.option("--json", options.json, "write the figures here");
  command.require("--data");
  if (const auto code = command.parse(argc, argv)) return *code;
  return launch(BackendKind::thread, {.ranks = 1, .threads_per_rank = 1}, [&](const Group& world) {
    return options.image_size > 0 ? measure_images(options, world) : measure_tokens(options, world);
  });
}

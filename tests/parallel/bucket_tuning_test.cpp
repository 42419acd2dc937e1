#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "catch.hpp"
#include "parallel/reduction/bucket_profile.hpp"
#include "parallel/reduction/bucket_tuner.hpp"
#include "trireme/testing/ranks.hpp"
#include "trireme/trireme.hpp"

using namespace trireme;
using namespace trireme::parallel;

namespace {

// Registered in one order and used in the opposite one: backward finishes the last parameters of the store first.
struct Backwards : nn::Module<Float32> {
  nn::Linear<Float32> third{*this, "third", {.in = 8, .out = 8}};
  nn::Linear<Float32> second{*this, "second", {.in = 8, .out = 8}};
  nn::Linear<Float32> first{*this, "first", {.in = 8, .out = 8}};
  Backwards() { initialize({.seed = 1}); }

  Loss<float, Cpu> loss() const {
    const Variable<float> x(Tensor<float>::full({2, 8}, 1));
    return cross_entropy(third.forward(second.forward(first.forward(x))), Tensor<std::int32_t>::full({2}, 3));
  }
};

// Records the buckets that it gets, and sums them unchanged.
class Notes final : public CommunicationHook {
 public:
  std::string str() const override { return "notes"; }
  HookTask reduce(GradientBucket& bucket) override {
    names.push_back(bucket.gradients().front().name);
    for (const NamedTensor& gradient : bucket.gradients()) {
      Tensor<float> values = gradient.values;
      co_await bucket.all_reduce(std::span(values.data(), static_cast<std::size_t>(values.numel())));
    }
  }
  int max_exchanges() const override { return 2; }

  std::vector<std::string> names;
};

void reduce(const Backwards& model, DataParallel& replicas, std::int64_t number) {
  Step step = replicas.begin(number);
  step.backward(0, [&] { return model.loss(); });
  step.finish();
}

BucketTuning tune(const std::string& profile, int steps, int ranks = 2) {
  BucketTuning result;
  testing::run_ranks(ranks, [&](const Group& world) {
    const Backwards model;
    DataParallel replicas(model, ProcessMesh(world),
                          {.sum = parallel::Plain{.tuning = {.on = true, .profile = profile}}, .sharding = Sharding::none});
    for (int number = 0; number < steps; ++number) reduce(model, replicas, number);
    if (world.rank() == 0 && replicas.tuning()) result = *replicas.tuning();
  });
  return result;
}

struct ProfileFile {
  std::string path = (std::filesystem::temp_directory_path() / ("trireme_profile_" + std::to_string(getpid()))).string();
  ProfileFile() { std::filesystem::remove(path); }
  ~ProfileFile() { std::filesystem::remove(path); }
};

}  // namespace

TEST_CASE("from the second step on, buckets start in the order in which backward completes them") {
  testing::run_ranks(2, [](const Group& world) {
    const Backwards model;
    const auto notes = std::make_shared<Notes>();
    DataParallel replicas(model, ProcessMesh(world),
                          {.sum = parallel::Hooked{{.hook = [notes] { return notes; },
                                                    .only_if_faster = false,
                                                    .between = CompressionBetween::ranks}},
                           .buckets = {.bytes = 8 * 8 * 4, .first_bytes = 8 * 8 * 4}});
    reduce(model, replicas, 0);
    const std::vector<std::string> in_store(notes->names);
    notes->names.clear();
    reduce(model, replicas, 1);
    require(in_store.size() == 3, "{} buckets", in_store.size());  // Catch's assertions are for one thread
    require(notes->names == std::vector<std::string>(in_store.rbegin(), in_store.rend()), "the order of the store");
  });
}

TEST_CASE("what tuning has found is left in a profile, and a later run starts with it") {
  const ProfileFile file;
  const BucketTuning found = tune(file.path, 40);
  REQUIRE_FALSE(found.cuts.empty());
  CHECK(found.text.empty());
  const BucketTuning loaded = tune(file.path, 1);
  CHECK(loaded.cuts == found.cuts);
  CHECK(loaded.step_seconds == found.step_seconds);
  CHECK(loaded.text == "as found by the run that wrote " + file.path);
}

TEST_CASE("trials end with the first one that the slowest rank finds long") {
  testing::run_ranks(2, [](const Group& world) {
    BucketTuner tuner(world, world, {std::int64_t{64} << 20}, {1}, "");
    std::vector<std::int64_t> tried;
    const auto trial = [&](std::int64_t bytes) {
      tried.push_back(bytes);
      return static_cast<double>(bytes) / (world.rank() == 0 ? 10e6 : 5e6);
    };
    for (int step = 0; step < 6; ++step) {
      tuner.next_cuts(trial);
      tuner.begin();
      tuner.final(0);
      tuner.end();
    }
    const std::int64_t first = 64 << 10;
    require(tried == std::vector<std::int64_t>{first, first, first, 8 * first, 8 * first, 8 * first}, "{} trials, the last {}",
            tried.size(), tried.empty() ? 0 : tried.back());
  });
}

TEST_CASE("a profile that does not fit is explained, and replaced after tuning") {
  const ProfileFile file;
  tune(file.path, 40);
  const BucketTuning for_three = tune(file.path, 40, 3);
  CHECK(for_three.text.find("it was tuned for 6 gradients of 864 bytes, 2 ranks on 1 nodes; here are 6 gradients of 864 bytes, "
                            "3 ranks on 1 nodes") != std::string::npos);
  CHECK(tune(file.path, 1, 3).cuts == for_three.cuts);
  std::ofstream(file.path) << "{";
  CHECK(tune(file.path, 40).text.find("it is no bucket profile") != std::string::npos);
}

TEST_CASE("a profile that can't be written is an error on all ranks, before the first step") {
  for (const std::string path : {"/nowhere/profile", "/tmp"}) {
    INFO(path);
    CHECK_THROWS_WITH(tune(path, 1), ContainsSubstring(path));
  }
}

TEST_CASE("what was found is used where the profile can no longer be written") {
  const auto folder = std::filesystem::temp_directory_path() / ("bucket_profile." + std::to_string(getpid()));
  std::filesystem::create_directories(folder);
  const std::string profile = folder / "profile";
  testing::run_ranks(2, [&](const Group& world) {
    const Backwards model;
    DataParallel replicas(model, ProcessMesh(world),
                          {.sum = parallel::Plain{.tuning = {.on = true, .profile = profile}}, .sharding = Sharding::none});
    for (int number = 0; number < 40; ++number) {
      reduce(model, replicas, number);
      if (number == 0 && world.rank() == 0) std::filesystem::remove_all(folder);
    }
    require(replicas.tuning() && replicas.tuning()->text.find("was not written") != std::string::npos, "buckets, and a line");
  });
}

TEST_CASE("profiles are checked") {
  const TuningCase wanted{.gradient_bytes = {8, 16, 24}, .nodes = {{0}, {1}}};
  const std::string good = to_profile(wanted, {.cuts = {1, 2}, .step_seconds = 0.5});
  CHECK(from_profile(good, wanted).cuts == BucketCuts{1, 2});
  for (const BucketCuts& cuts : {BucketCuts{1, 1}, BucketCuts{1, 3}, BucketCuts{0, 3}, BucketCuts{4, -1}, BucketCuts{}}) {
    CHECK_THROWS_AS(from_profile(to_profile(wanted, {.cuts = cuts}), wanted), Error);
  }
  CHECK_THROWS_AS(from_profile(good, {.gradient_bytes = {8, 24, 16}, .nodes = {{0}, {1}}}), Error);
  CHECK_THROWS_AS(from_profile(good, {.gradient_bytes = {8, 16, 24}, .nodes = {{0, 1}}}), Error);
  CHECK_THROWS_AS(from_profile("[1]", wanted), Error);
}

#include "models/reference_run.hpp"

#include <algorithm>

#include "catch.hpp"
#include "temporary_folder.hpp"
#include "trireme/testing/ranks.hpp"

using namespace trireme;

namespace {

std::string setting(const optim::Optimizer<Float32>& optimizer, const std::string& name) {
  const optim::Settings settings = optimizer.settings();
  const auto found = std::ranges::find(settings, name, [](const auto& entry) { return entry.first; });
  return found == settings.end() ? "" : found->second;
}

}  // namespace

TEST_CASE("the fields of a reference run's optimizer, beside the others or on their own") {
  FlatStore store(DType::float32);
  store.add("weight", {1}, Initializer::constant(0));
  const auto made = [&](const char* hyper) { return tests::make_optimizer<Float32>(nlohmann::json::parse(hyper), store); };

  const auto sgd = made(R"({"optim": {"name": "SGD", "lr": 0.05, "momentum": 0.9, "nesterov": true, "weight_decay": 5e-4}})");
  CHECK(setting(*sgd, "optimizer") == "SGD");
  CHECK(setting(*sgd, "learning_rate") == "0.05");
  CHECK(setting(*sgd, "momentum") == "0.9");
  CHECK(setting(*sgd, "nesterov") == "1");
  CHECK(setting(*sgd, "weight_decay") == "0.0005");

  const auto adam = made(R"({"optimizer": "AdamW", "betas": [0.8, 0.95], "eps": 1e-7, "lr": 0.003, "decay": "tensors"})");
  CHECK(setting(*adam, "optimizer") == "AdamW");
  CHECK(setting(*adam, "beta1") == "0.8");
  CHECK(setting(*adam, "beta2") == "0.95");
  CHECK(setting(*adam, "epsilon") == "1e-07");
  CHECK(setting(*adam, "decay") == "matrices");

  CHECK_THROWS_AS(made(R"({"optimizer": "Adamax", "lr": 1})"), Error);
}

TEST_CASE("every training run of the references names an optimizer that exists") {
  tests::refs_folder_or_skip();
  for (const tests::Fixture& fixture : tests::fixtures_of_kind("training_run")) {
    CAPTURE(fixture.id());
    const auto& hyper = fixture.index.at("hyper");
    FlatStore store(DType::float32);
    store.add("weight", {1}, Initializer::constant(0));
    const auto optimizer = tests::make_optimizer<Float32>(hyper, store);
    CHECK(optimizer->learning_rate() == tests::make_schedule({{"optim", {{"lr", optimizer->learning_rate()}}}})(0));
    CHECK(tests::clip_norm_of(hyper) >= 0);
  }
}

TEST_CASE("reference tensors and those of a model are the same set") {
  const tests::TemporaryFolder folder;
  const auto failures = [&](const std::vector<std::string>& names) {
    const std::vector<float> zeros(2);
    std::vector<TensorRef> tensors;
    for (const std::string& name : names) tensors.push_back({name, DType::float32, {2}, zeros.data()});
    const auto path = folder.path() / "tensors.safetensors";
    write_safetensors(path, tensors);
    FlatStore store(DType::float32);
    store.add("norm.weight", {2}, Initializer::constant(0));
    store.add("norm.bias", {2}, Initializer::constant(0));
    store.add_buffer("norm.running_mean", {2}, 0);
    store.initialize<float>(1);
    int count = 0;
    testing::run_ranks(1, [&](const Group& world) {
      tests::RunReport report(world, "a run");
      tests::compare_tensors({.index = {}, .file = path}, "final.", {}, store, tests::values_in(store), report);
      count = report.failures();
    });
    return count;
  };
  CHECK(failures({"logits"}) == 0);
  CHECK(failures({"final.norm.weight", "final.norm.bias"}) == 0);
  CHECK(failures({"final.norm.weight", "final.norm.bias", "final.norm.running_mean", "final.norm.num_batches_tracked"}) == 0);
  CHECK(failures({"final.norm.weight"}) == 1);
  CHECK(failures({"final.norm.weight", "final.norm.bias", "final.norm.scale"}) == 1);
  CHECK(failures({"final.norm.scale"}) == 3);
}

#include "models/reference_run.hpp"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <stdexcept>

#include "catch.hpp"
#include "temporary_folder.hpp"
#include "trireme/testing/ranks.hpp"

using namespace trireme;

namespace {

std::string setting(const optim::Optimizer<Float32>& optimizer, const std::string& name) {
  const optim::Settings settings = optimizer.settings();
  const auto found = std::ranges::find(settings, name, &Setting::name);
  return found == settings.end() ? "" : found->value;
}

// Makes TRIREME_REFS name a folder with this index for as long as it lives.
class OtherReferences {
 public:
  explicit OtherReferences(const std::string& index) {
    if (const char* before = std::getenv("TRIREME_REFS")) before_ = before;
    std::ofstream(folder_.path() / "index.json") << index;
    setenv("TRIREME_REFS", folder_.path().c_str(), 1);
  }
  ~OtherReferences() {
    if (before_) {
      setenv("TRIREME_REFS", before_->c_str(), 1);
    } else {
      unsetenv("TRIREME_REFS");
    }
  }
  OtherReferences(const OtherReferences&) = delete;
  OtherReferences& operator=(const OtherReferences&) = delete;

 private:
  tests::TemporaryFolder folder_;
  std::optional<std::string> before_;
};

}  // namespace

TEST_CASE("every fixture that fails is reported, and none that is skipped") {
  const OtherReferences references(R"({"schema": 1, "other": [{"id": "listed", "file": "d", "kind": "odd"}], "fixtures": [
      {"id": "throws", "file": "a", "kind": "odd"}, {"id": "unknown", "file": "b", "kind": "odd"},
      {"id": "wrong", "file": "c", "kind": "odd"}, {"id": "right", "file": "c", "kind": "odd"},
      {"id": "another", "file": "e", "kind": "even"}]})");
  std::vector<std::string> seen;
  const auto check = [&](const tests::Fixture& fixture) -> std::vector<std::string> {
    seen.push_back(fixture.id());
    if (fixture.id() == "throws") throw std::runtime_error("no file");
    if (fixture.id() == "unknown") throw tests::SkippedFixture{"there is no such operation"};
    if (fixture.id() == "wrong") return {"x is off", "y is off"};
    return {};
  };
  CHECK(tests::problems_of("odd", check) == "throws: no file\nwrong: x is off\nwrong: y is off\n");
  CHECK(seen == std::vector<std::string>{"throws", "unknown", "wrong", "right", "listed"});
  CHECK(tests::problems_of("third", check) == "");
}

TEST_CASE("references of another format are refused") {
  const OtherReferences references(R"({"schema": 2, "fixtures": []})");
  CHECK_THROWS_WITH(tests::fixtures_of_kind("op"), ContainsSubstring("schema 1"));
}

TEST_CASE("the fields of a reference run's optimizer, beside the others or on their own") {
  Model model(DType::float32);
  model.store().add("weight", {1}, Initializer::constant(0));
  const auto made = [&](const char* hyper) { return tests::make_optimizer<Float32>(nlohmann::json::parse(hyper), model); };

  const auto sgd = made(R"({"optim": {"name": "SGD", "lr": 0.05, "momentum": 0.9, "nesterov": true, "weight_decay": 5e-4}})");
  CHECK(setting(*sgd, "optimizer") == "SGD");
  CHECK(setting(*sgd, "learning_rate") == "0.05");
  CHECK(setting(*sgd, "momentum") == "0.9");
  CHECK(setting(*sgd, "nesterov") == "on");
  CHECK(setting(*sgd, "weight_decay") == "0.0005");

  const auto adam = made(R"({"optimizer": "AdamW", "betas": [0.8, 0.95], "eps": 1e-7, "lr": 0.003, "decay": "tensors"})");
  CHECK(setting(*adam, "optimizer") == "AdamW");
  CHECK(setting(*adam, "beta1") == "0.8");
  CHECK(setting(*adam, "beta2") == "0.95");
  CHECK(setting(*adam, "epsilon") == "1e-07");
  CHECK(setting(*adam, "decay") == "matrices");

  CHECK_THROWS_AS(made(R"({"optimizer": "Adamax", "lr": 1})"), tests::SkippedFixture);
}

TEST_CASE("every training run of the references is of a known model and names an optimizer that exists") {
  const auto check = [](const tests::Fixture& fixture) -> std::vector<std::string> {
    const std::string model = fixture.index.at("model");
    const std::vector<std::string> models{"cnn_mnist", "cnn_mnist_bn", "resnet_cifar", "gan_dc", "gan_mlp", "gpt2", "lstm_lm"};
    if (std::ranges::find(models, model) == models.end()) throw tests::SkippedFixture{"there is no model " + model};
    const auto& hyper = fixture.index.at("hyper");
    Model weights(DType::float32);
    weights.store().add("weight", {1}, Initializer::constant(0));
    const auto optimizer = tests::make_optimizer<Float32>(hyper, weights);
    const double first_rate = tests::make_schedule({{"optim", {{"lr", optimizer->learning_rate()}}}})(0);
    if (optimizer->learning_rate() != first_rate) return {"the schedule starts with another learning rate"};
    if (tests::clip_norm_of(hyper) < 0) return {"the gradient is clipped below 0"};
    return {};
  };
  CHECK(tests::problems_of("training_run", check) == "");
}

TEST_CASE("micro-batches of a batch that they do not divide") {
  const tests::TemporaryFolder folder;
  const std::vector<std::int32_t> numbers{1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
  const auto path = folder.path() / "batches.safetensors";
  write_safetensors(path, std::vector<TensorRef>{{"input_ids", DType::int32, {2, 5, 1}, numbers.data()},
                                                 {"targets", DType::int32, {2, 5, 1}, numbers.data()}});
  const auto read = [&](const char* index, int num_parts, std::int64_t rows_divide = 1) {
    return tests::TokenBatches({.index = nlohmann::json::parse(index), .file = {}}, SafetensorsFile(path), num_parts,
                               rows_divide);
  };
  const auto values = [](const Tensor<std::int32_t>& tensor) {
    return std::vector<std::int32_t>(tensor.data(), tensor.data() + tensor.numel());
  };
  using Values = std::vector<std::int32_t>;
  constexpr const char* two_steps = R"({"id": "a/run", "hyper": {}, "values": {"loss_f64": [1, 1]}})";
  const auto four = read(two_steps, 4);
  CHECK(four.num_steps() == 2);
  CHECK(values(four.tokens(1, 1)) == Values{8, 9});
  CHECK(values(four.tokens(0, 2)) == Values{5, 0});
  CHECK(values(four.targets(0, 2)) == Values{5, ops::ignored_target});
  CHECK(values(four.targets(0, 3)) == Values{ops::ignored_target, ops::ignored_target});
  CHECK(read(two_steps, 4, 6).rows() == 6);

  const auto second = read(R"({"id": "a/run", "hyper": {"start": 1}, "values": {"loss_f64": [1]}})", 1);
  CHECK(values(second.tokens(0, 0)) == Values{6, 7, 8, 9, 10});
  CHECK_THROWS_WITH(read(R"({"id": "a/run", "hyper": {"start": 1}, "values": {"loss_f64": [1, 1]}})", 1),
                    ContainsSubstring("a/run has losses of 2 steps, and batches for 1"));
}

TEST_CASE("parts of a batch are as large as can be, or empty") {
  std::vector<std::int64_t> sizes;
  std::int64_t next = 0;
  for (int part = 0; part < 4; ++part) {
    const Range samples = tests::part_of_batch(3, part, 4);
    CHECK(samples.begin == next);
    next = samples.end;
    sizes.push_back(samples.count());
  }
  CHECK(sizes == std::vector<std::int64_t>{0, 1, 1, 1});
  CHECK(tests::count_of_part(3, 4) == 1);
  CHECK(tests::count_of_part(7, 4) == 2);
}

TEST_CASE("a run with options that the drivers do not know is skipped") {
  const auto known = [](const char* index) {
    const tests::Fixture run{.index = nlohmann::json::parse(index), .file = {}};
    tests::know_run_options(run, {"layers"}, {"clip"});
  };
  CHECK_NOTHROW(
      known(R"({"config": {"layers": 2, "tied": false}, "hyper": {"optim": {"lr": 1, "maximize": false}, "clip": 1}})"));
  CHECK_THROWS_AS(known(R"({"config": {"layers": 2, "tied": true}, "hyper": {}})"), tests::SkippedFixture);
  CHECK_THROWS_AS(known(R"({"config": {"layers": 2}, "hyper": {"optim": {"lr": 1, "maximize": true}}})"),
                  tests::SkippedFixture);
  CHECK_THROWS_AS(known(R"({"config": {"layers": 2}, "hyper": {"lr": 1, "schedule": {"warmup": 2}}})"), tests::SkippedFixture);
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

#include <algorithm>
#include <string>

#include "catch.hpp"
#include "fixtures.hpp"

using namespace trireme;
using namespace trireme::tests;
using nlohmann::json;

namespace {

std::vector<double> read_numbers(const SafetensorsFile& file, const std::string& name) {
  switch (file.at(name).dtype) {
    case DType::float16:
    case DType::bfloat16:
    case DType::float32:
    case DType::float64: {
      const std::vector<float> values = read_floats(file, name);
      return {values.begin(), values.end()};
    }
    default: {
      const std::vector<std::int64_t> values = read_integers(file, name);
      return {values.begin(), values.end()};
    }
  }
}

double number(const json& value) { return value.is_string() ? std::stod(value.get<std::string>()) : value.get<double>(); }

void check_tensor(const SafetensorsFile& file, const std::string& name, const json& expected) {
  INFO("tensor " << name);
  CHECK(file.find(name) != nullptr);
  if (file.find(name) == nullptr) return;
  const auto dims = expected.at("shape").get<std::vector<std::int64_t>>();
  CHECK(file.at(name).shape == Shape(std::span(dims)));
  const std::vector<double> numbers = read_numbers(file, name);
  if (expected.contains("values")) {
    std::vector<double> wanted;
    for (const json& value : expected.at("values")) wanted.push_back(number(value));
    CHECK(numbers == wanted);
  }
  if (expected.contains("abs_sum")) {
    double sum = 0;
    double abs_sum = 0;
    for (const double value : numbers) {
      sum += value;
      abs_sum += std::abs(value);
    }
    CHECK(sum == Approx(expected.at("sum").get<double>()).epsilon(1e-9).margin(1e-9));
    CHECK(abs_sum == Approx(expected.at("abs_sum").get<double>()).epsilon(1e-9));
  }
}

}  // namespace

TEST_CASE("sample files are accepted and refused as the format says") {
  for (const Fixture& fixture : fixtures_of_kind("accept_reject")) {
    const json samples = read_json(fixture.file).at("samples");
    REQUIRE(!samples.empty());
    for (const json& sample : samples) {
      const auto path = fixture.file.parent_path() / sample.at("file").get<std::string>();
      INFO(path << ": " << sample.at("why"));
      std::string error;
      try {
        const SafetensorsFile file(path);
        const json tensors = sample.value("tensors", json::object());
        for (const auto& [name, expected] : tensors.items()) check_tensor(file, name, expected);
      } catch (const Error& caught) {
        error = caught.what();
      }
      INFO("error: " << error);
      if (sample.at("expect") == "accept") CHECK(error.empty());
      if (sample.at("expect") == "reject") CHECK(!error.empty());
    }
  }
}

TEST_CASE("files of other writers hold what they should") {
  const auto folder = data_folder_or_skip() / "safetensors";
  const json files = read_json(folder / "expected.json");
  REQUIRE(!files.empty());
  for (const auto& [file_name, tensors] : files.items()) {
    INFO(file_name);
    const SafetensorsFile file(folder / file_name);
    for (const auto& [name, expected] : tensors.items()) {
      if (name == "__metadata__") {
        CHECK(file.metadata() == expected.get<SafetensorsMetadata>());
      } else {
        check_tensor(file, name, expected);
      }
    }
  }
}

TEST_CASE("every tensor of the reference results can be read") {
  const auto check = [](const Fixture& fixture) {
    std::vector<std::string> problems;
    const SafetensorsFile file = fixture.tensors();
    for (const auto& [name, described] : fixture.index.at("tensors").items()) {
      const auto dims = described.at("shape").get<std::vector<std::int64_t>>();
      if (file.find(name) == nullptr || file.at(name).shape != Shape(std::span(dims)) ||
          file.read_bytes(name).size() != file.at(name).bytes()) {
        problems.push_back(name + " is not what the index says");
      }
    }
    return problems;
  };
  const std::vector<std::string> kinds{"op",    "optimizer_inputs", "optimizer",  "clip",        "amp_training",
                                       "casts", "batches",          "model_init", "training_run"};
  for (const std::string& kind : kinds) CHECK(problems_of(kind, check) == "");

  const std::vector<std::string> others{"lr_schedules", "grad_scaler", "accept_reject", "pretrained_and_convergence"};
  const json index = read_json(refs_folder_or_skip() / "index.json");
  for (const char* list : {"fixtures", "other"}) {
    for (const json& entry : index.value(list, json::array())) {
      const std::string kind = entry.at("kind");
      const bool known = std::ranges::find(kinds, kind) != kinds.end() || std::ranges::find(others, kind) != others.end();
      if (!known) list_skipped(entry.at("id"), "no test reads fixtures of kind " + kind);
    }
  }
}

#pragma once

#include <map>
#include <string>
#include <vector>

#include "fixtures.hpp"
#include "trireme/tensor/tensor.hpp"

namespace trireme::ops {

// The inputs of one reference fixture and the results that an operation gave for it.
class OpFixture {
 public:
  explicit OpFixture(const tests::Fixture& fixture) : fixture_(fixture), file_(fixture.tensors()) {}

  bool has(const std::string& name) const { return file_.find(name) != nullptr; }
  Shape shape(const std::string& name) const { return file_.at(name).shape; }
  Tensor<float> input(const std::string& name) const {
    return Tensor<float>::from(shape(name), tests::read_floats(file_, name));
  }
  Tensor<float> input_or_undefined(const std::string& name) const { return has(name) ? input(name) : Tensor<float>(); }
  Tensor<std::int32_t> indices(const std::string& name) const {
    const auto values = tests::read_integers(file_, name);
    return Tensor<std::int32_t>::from(shape(name), std::vector<std::int32_t>(values.begin(), values.end()));
  }
  const nlohmann::json& hyper() const { return fixture_.index.at("hyper"); }

  void result(const std::string& name, const Tensor<float>& tensor) {
    results_[name] = {tensor.data(), tensor.data() + tensor.numel()};
  }

  // Texts about results that are missing or too far from what is expected.
  std::vector<std::string> mismatches() const {
    std::vector<std::string> texts;
    for (const auto& [name, entry] : fixture_.index.at("tensors").items()) {
      if (!entry.at("role").get<std::string>().starts_with("expected")) continue;
      const auto found = results_.find(name);
      if (found == results_.end()) {
        texts.push_back(name + " was not computed");
        continue;
      }
      const auto text = tests::mismatch(found->second, tests::read_floats(file_, name), fixture_.tolerance_of(name));
      if (!text.empty()) texts.push_back(name + ": " + text);
    }
    return texts;
  }

 private:
  const tests::Fixture& fixture_;
  SafetensorsFile file_;
  std::map<std::string, std::vector<float>> results_;
};

// Runs the operation of a fixture; false when the library does not have it, or not with these options.
bool run_op(const std::string& op, OpFixture& fixture);

bool run_batch_norm(OpFixture& fixture);
bool run_group_norm(OpFixture& fixture);
bool run_conv2d(OpFixture& fixture);
bool run_conv_transpose2d(OpFixture& fixture);
bool run_max_pool2d(OpFixture& fixture);
bool run_avg_pool2d(OpFixture& fixture);
bool run_adaptive_avg_pool2d(OpFixture& fixture);

}  // namespace trireme::ops

#pragma once

#include <map>
#include <set>
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
  Tensor<float> input(const std::string& name) {
    read_.insert(name);
    return Tensor<float>::from(shape(name), tests::read_floats(file_, name));
  }
  Tensor<float> input_or_undefined(const std::string& name) { return has(name) ? input(name) : Tensor<float>(); }
  Tensor<std::int32_t> indices(const std::string& name) {
    read_.insert(name);
    const auto values = tests::read_integers(file_, name);
    return Tensor<std::int32_t>::from(shape(name), std::vector<std::int32_t>(values.begin(), values.end()));
  }
  void know_options(std::initializer_list<std::string_view> known) const { tests::know_options(hyper(), known); }
  const nlohmann::json& hyper() const { return fixture_.index.at("hyper"); }

  void result(const std::string& name, const Tensor<float>& tensor) {
    results_[name] = {tensor.data(), tensor.data() + tensor.numel()};
  }

  // Texts about results that are missing or too far from what is expected, and about inputs that nobody read.
  std::vector<std::string> problems() const {
    std::vector<std::string> texts;
    for (const auto& [name, entry] : fixture_.index.at("tensors").items()) {
      if (!entry.at("role").get<std::string>().starts_with("expected")) {
        if (!read_.contains(name)) texts.push_back(name + " was not read");
        continue;
      }
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
  std::set<std::string> read_;
  std::map<std::string, std::vector<float>> results_;
};

// Runs the operation of a fixture; skips it when the library does not have it, or not with these options.
void run_op(const std::string& op, OpFixture& fixture);

void run_batch_norm(OpFixture& fixture);
void run_group_norm(OpFixture& fixture);
void run_conv2d(OpFixture& fixture);
void run_conv_transpose2d(OpFixture& fixture);
void run_max_pool2d(OpFixture& fixture);
void run_avg_pool2d(OpFixture& fixture);
void run_adaptive_avg_pool2d(OpFixture& fixture);

}  // namespace trireme::ops

#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "trireme/core/safetensors.hpp"

// Reference results and real data lie outside the repository: TRIREME_REFS and TRIREME_DATA name the folders.
namespace trireme::tests {

std::optional<std::filesystem::path> refs_folder();
std::optional<std::filesystem::path> data_folder();

// The same for programs that can do nothing without them: these say so and end the program as skipped.
std::filesystem::path refs_folder_or_skip();
std::filesystem::path data_folder_or_skip();

[[noreturn]] void skip_program(const std::string& reason);  // ctest shows the program as skipped

nlohmann::json read_json(const std::filesystem::path& path);

struct Tolerance {
  double atol = 0;
  double rtol = 0;
};

// One entry of the references' index.json, whose fields are read through `index`: index["hyper"]["lr"].
struct Fixture {
  nlohmann::json index;
  std::filesystem::path file;

  std::string id() const { return index.at("id"); }
  SafetensorsFile tensors() const { return SafetensorsFile(file); }
  Tolerance tolerance() const { return tolerance_of({}); }
  Tolerance tolerance_of(const std::string& tensor) const;  // with the tensor's own atol where it has one
};

std::vector<Fixture> fixtures_of_kind(std::string_view kind);
Fixture fixture(std::string_view id);

// The elements of a tensor of any float dtype.
std::vector<float> read_floats(const SafetensorsFile& file, std::string_view name);
// The elements of a tensor of any integer dtype.
std::vector<std::int64_t> read_integers(const SafetensorsFile& file, std::string_view name);

// Empty when |got - expected| <= atol + rtol * |expected| holds for all elements, otherwise a text about the worst one.
std::string mismatch(std::span<const float> got, std::span<const float> expected, Tolerance tolerance);

}  // namespace trireme::tests

#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "trireme/files/safetensors.hpp"

// Reference results are in tests/reference, described in its README.md, or in the folder TRIREME_REFS; real data are outside
// the repository, in the folder TRIREME_DATA.
namespace trireme::tests {

std::optional<std::filesystem::path> refs_folder();
std::optional<std::filesystem::path> data_folder();

// The same for programs that need them: without them these functions print so and end the program as skipped.
std::filesystem::path refs_folder_or_skip();
std::filesystem::path data_folder_or_skip();

[[noreturn]] void skip_program(const std::string& reason);  // ctest shows the program as skipped

nlohmann::json read_json(const std::filesystem::path& path);

struct Tolerance {
  double atol = 0;
  double rtol = 0;
};

// One entry of the set's index.json, whose fields are read through `index`: index["hyper"]["lr"].
struct Fixture {
  nlohmann::json index;
  std::filesystem::path file;

  std::string id() const { return index.at("id"); }
  SafetensorsFile tensors() const { return SafetensorsFile(file); }
  Tolerance tolerance() const { return tolerance_of({}); }
  Tolerance tolerance_of(const std::string& tensor) const;  // with the tensor's own atol where it has one
};

std::vector<Fixture> fixtures_of_kind(std::string_view kind);

// A folder that transformers has written, with expected.safetensors beside the weights.
struct ModelFolder {
  std::filesystem::path path;
  double learning_rate = 0;  // of its sgd_losses

  std::string name() const { return path.filename().string(); }
  SafetensorsFile expected() const { return SafetensorsFile(path / "expected.safetensors"); }
};
std::vector<ModelFolder> model_folders(std::string_view kind);  // never none
Fixture fixture(std::string_view id);

// Thrown for a fixture that needs what the library lacks: it is listed with the reason, and is not a failure.
struct SkippedFixture {
  std::string reason;
};

// Skips the fixture when `hyper` has an unknown option, unless it is switched off: null, false or 0.
void know_options(const nlohmann::json& hyper, std::initializer_list<std::string_view> known);

void list_skipped(const std::string& what, const std::string& reason);

// Runs check(fixture), which returns texts about errors, for every fixture of a kind, even after failures of others.
// Returns a line for each text and each exception, lists skipped fixtures, and prints how many fixtures ran.
std::string problems_of(std::string_view kind, const std::function<std::vector<std::string>(const Fixture&)>& check);

// The trained models of the references, by name, and the results of their training: the entries of convergence.json.
std::vector<std::pair<std::string, nlohmann::json>> trained_models();
nlohmann::json training_outcome_or_skip(const std::string& name);  // one of them; without it the program ends as skipped

// The elements of a tensor of any float dtype.
std::vector<float> read_floats(const SafetensorsFile& file, std::string_view name);
// The elements of a tensor of any integer dtype.
std::vector<std::int64_t> read_integers(const SafetensorsFile& file, std::string_view name);

// Empty when |got - expected| <= atol + rtol * |expected| holds for all elements, otherwise a text about the worst one.
std::string mismatch(std::span<const float> got, std::span<const float> expected, Tolerance tolerance);

// The tensors that differ between two files in any bit; empty: none.
std::vector<std::string> differing_tensors(const SafetensorsFile& one, const SafetensorsFile& other);

}  // namespace trireme::tests

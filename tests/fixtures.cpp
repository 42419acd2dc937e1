#include "fixtures.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>

#include "trireme/core/bfloat16.hpp"
#include "trireme/core/float16.hpp"

namespace trireme::tests {
namespace {

namespace fs = std::filesystem;

std::optional<fs::path> folder_from(const char* variable, const char* otherwise) {
  const char* given = std::getenv(variable);
  fs::path folder = given != nullptr ? given : otherwise;
  if (!fs::is_directory(folder)) return std::nullopt;
  return folder;
}

template <typename To, typename From>
std::vector<To> read_as(const SafetensorsFile& file, std::string_view name) {
  const std::vector<From> values = file.read_values<From>(name);
  std::vector<To> result;
  result.reserve(values.size());
  for (const From value : values) result.push_back(static_cast<To>(value));
  return result;
}

[[noreturn]] void refuse_dtype(const SafetensorsFile& file, std::string_view name, const char* wanted) {
  throw Error({.message = "the tensor has another dtype",
               .name = std::string(name),
               .path = file.path().string(),
               .wanted = wanted,
               .had = std::string(name_of(file.at(name).dtype))});
}

std::vector<Fixture> all_fixtures() {
  const fs::path folder = refs_folder_or_skip();
  std::vector<Fixture> fixtures;
  nlohmann::json index = read_json(folder / "index.json");
  if (index.value("schema", 0) != 1) {
    throw Error({.message = "these reference results have another format", .path = folder.string(), .wanted = "schema 1"});
  }
  for (const char* list : {"fixtures", "other"}) {
    if (!index.contains(list)) continue;
    for (nlohmann::json& entry : index.at(list)) {
      fs::path file = folder / entry.at("file").get<std::string>();
      fixtures.push_back({.index = std::move(entry), .file = std::move(file)});
    }
  }
  return fixtures;
}

}  // namespace

std::optional<fs::path> refs_folder() { return folder_from("TRIREME_REFS", TRIREME_DEFAULT_REFS); }
std::optional<fs::path> data_folder() { return folder_from("TRIREME_DATA", TRIREME_DEFAULT_DATA); }

void skip_program(const std::string& reason) {
  std::cerr << "skipped: " << reason << std::endl;
  std::exit(77);
}

fs::path refs_folder_or_skip() {
  const auto folder = refs_folder();
  if (!folder) skip_program("no reference results; set TRIREME_REFS to their folder");
  return *folder;
}

fs::path data_folder_or_skip() {
  const auto folder = data_folder();
  if (!folder) skip_program("no test data; set TRIREME_DATA to its folder");
  return *folder;
}

nlohmann::json read_json(const fs::path& path) {
  std::ifstream stream(path);
  if (!stream) throw Error({.code = ErrorCode::io, .message = "the file cannot be opened", .path = path.string()});
  return nlohmann::json::parse(stream);
}

Tolerance Fixture::tolerance_of(const std::string& tensor) const {
  const nlohmann::json& common = index.at("tolerance");
  if (common.value("exact", false)) return {};
  Tolerance tolerance{.atol = common.at("atol"), .rtol = common.at("rtol")};
  if (!tensor.empty()) tolerance.atol = index.at("tensors").at(tensor).value("atol", tolerance.atol);
  return tolerance;
}

std::vector<Fixture> fixtures_of_kind(std::string_view kind) {
  std::vector<Fixture> fixtures = all_fixtures();
  std::erase_if(fixtures,
                [&](const Fixture& fixture) { return fixture.index.at("kind").get_ref<const std::string&>() != kind; });
  return fixtures;
}

std::vector<ModelFolder> model_folders(std::string_view kind) {
  std::vector<ModelFolder> folders;
  for (const Fixture& set : fixtures_of_kind(kind)) {
    const nlohmann::json about = read_json(set.file);
    for (const std::string name : about.at("models")) {
      folders.push_back({.path = set.file.parent_path() / name, .learning_rate = about.at("learning_rate")});
    }
  }
  if (folders.empty()) throw Error({.message = "the reference results have no such folders", .name = std::string(kind)});
  return folders;
}

Fixture fixture(std::string_view id) {
  for (Fixture& candidate : all_fixtures()) {
    if (candidate.id() == id) return std::move(candidate);
  }
  throw Error({.message = "the index of the reference results has no such fixture", .name = std::string(id)});
}

void know_options(const nlohmann::json& hyper, std::initializer_list<std::string_view> known) {
  for (const auto& [name, value] : hyper.items()) {
    const bool off = value.is_null() || value == false || value == 0;
    if (!off && std::ranges::find(known, name) == known.end()) throw SkippedFixture{"there is no option " + name};
  }
}

void list_skipped(const std::string& what, const std::string& reason) {
  std::fputs(fmt::format("skipped: {}: {}\n", what, reason).c_str(), stdout);
}

std::string problems_of(std::string_view kind, const std::function<std::vector<std::string>(const Fixture&)>& check) {
  std::string problems;
  int ran = 0;
  const std::vector<Fixture> fixtures = fixtures_of_kind(kind);
  for (const Fixture& fixture : fixtures) {
    try {
      for (const std::string& text : check(fixture)) problems += fmt::format("{}: {}\n", fixture.id(), text);
      ++ran;
    } catch (const SkippedFixture& skipped) {
      list_skipped(fixture.id(), skipped.reason);
    } catch (const std::exception& error) {
      problems += fmt::format("{}: {}\n", fixture.id(), error.what());
    }
  }
  std::fputs(fmt::format("{} of {} fixtures of kind {} ran\n", ran, fixtures.size(), kind).c_str(), stdout);
  return problems;
}

std::vector<std::pair<std::string, nlohmann::json>> trained_models() {
  std::vector<std::pair<std::string, nlohmann::json>> models;
  for (const Fixture& fixture : fixtures_of_kind("pretrained_and_convergence")) {
    const nlohmann::json entries = read_json(fixture.file);
    for (const auto& [name, entry] : entries.items()) models.emplace_back(name, entry);
  }
  return models;
}

nlohmann::json training_outcome_or_skip(const std::string& name) {
  for (auto& [known, entry] : trained_models()) {
    if (known == name) return std::move(entry);
  }
  skip_program("the reference results do not say what training reaches with " + name);
}

std::vector<float> read_floats(const SafetensorsFile& file, std::string_view name) {
  switch (file.at(name).dtype) {
    case DType::float16: return read_as<float, float16>(file, name);
    case DType::bfloat16: return read_as<float, bfloat16>(file, name);
    case DType::float32: return file.read_values<float>(name);
    case DType::float64: return read_as<float, double>(file, name);
    default: refuse_dtype(file, name, "a float dtype");
  }
}

std::vector<std::int64_t> read_integers(const SafetensorsFile& file, std::string_view name) {
  switch (file.at(name).dtype) {
    case DType::uint8: return read_as<std::int64_t, std::uint8_t>(file, name);
    case DType::int8: return read_as<std::int64_t, std::int8_t>(file, name);
    case DType::uint16: return read_as<std::int64_t, std::uint16_t>(file, name);
    case DType::int16: return read_as<std::int64_t, std::int16_t>(file, name);
    case DType::uint32: return read_as<std::int64_t, std::uint32_t>(file, name);
    case DType::int32: return read_as<std::int64_t, std::int32_t>(file, name);
    case DType::int64: return file.read_values<std::int64_t>(name);
    default: refuse_dtype(file, name, "an integer dtype");
  }
}

std::string mismatch(std::span<const float> got, std::span<const float> expected, Tolerance tolerance) {
  if (got.size() != expected.size()) return fmt::format("{} elements, expected {}", got.size(), expected.size());
  std::size_t num_wrong = 0;
  std::size_t worst = 0;
  double worst_excess = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    const double g = got[i];
    const double e = expected[i];
    if (g == e || (std::isnan(g) && std::isnan(e))) continue;
    const double excess = std::abs(g - e) - (tolerance.atol + tolerance.rtol * std::abs(e));
    if (excess <= 0) continue;
    if (num_wrong++ == 0 || !(excess <= worst_excess)) {
      worst = i;
      worst_excess = excess;
    }
  }
  if (num_wrong == 0) return {};
  return fmt::format("{} of {} elements are off, the worst at {}: {} instead of {} (atol {}, rtol {})", num_wrong, got.size(),
                     worst, got[worst], expected[worst], tolerance.atol, tolerance.rtol);
}

std::vector<std::string> differing_tensors(const SafetensorsFile& one, const SafetensorsFile& other) {
  std::vector<std::string> names;
  for (const SafetensorsEntry& tensor : one.tensors()) {
    const SafetensorsEntry* same = other.find(tensor.name);
    const bool alike = same != nullptr && same->dtype == tensor.dtype && same->shape == tensor.shape &&
                       other.read_bytes(tensor.name) == one.read_bytes(tensor.name);
    if (!alike) names.push_back(tensor.name);
  }
  for (const SafetensorsEntry& tensor : other.tensors()) {
    if (one.find(tensor.name) == nullptr) names.push_back(tensor.name);
  }
  return names;
}

}  // namespace trireme::tests

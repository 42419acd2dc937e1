#pragma once

#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "trireme/core/error.hpp"
#include "trireme/ops/elementwise/elementwise_options.hpp"

namespace trireme::models {

// A JSON object of which every key has to be asked for: what nobody knows is refused, not ignored. Absent and null are the
// same.
class ConfigFile {
 public:
  explicit ConfigFile(const std::filesystem::path& path);
  // An object within it, under `key`.
  ConfigFile(const ConfigFile& outer, std::string_view key);

  bool has(std::string_view key) const { return find(key) != nullptr; }  // and it is not null
  bool is_empty() const { return object_->empty(); }
  bool is_absent(std::string_view key) const { return !object_->contains(key); }

  // Not below `least`. Absent or null: `otherwise`.
  std::int64_t integer(std::string_view key, std::int64_t least = 1) const;
  std::int64_t integer_or(std::string_view key, std::int64_t otherwise, std::int64_t least = 1) const;
  double number(std::string_view key) const;
  double number_or(std::string_view key, double otherwise) const;
  bool flag_or(std::string_view key, bool otherwise) const;
  std::string text(std::string_view key) const;
  std::string text_or(std::string_view key, std::string_view otherwise) const;
  std::optional<std::vector<std::string>> texts(std::string_view key) const;
  std::vector<double> numbers(std::string_view key) const;

  // Another value than this one is refused. Absent is fine.
  void expect(std::string_view key, const nlohmann::json& value) const;
  void ignore(std::initializer_list<std::string_view> keys) const;
  // After all that is known has been asked for.
  void refuse_unknown() const;

  [[noreturn]] void refuse(std::string_view key, const std::string& wanted) const;

 private:
  const nlohmann::json* find(std::string_view key) const;
  const nlohmann::json& at(std::string_view key, std::string_view wanted) const;

  std::string path_;
  std::string prefix_;  // of keys in messages
  std::shared_ptr<const nlohmann::json> root_;
  const nlohmann::json* object_ = nullptr;
  mutable std::set<std::string, std::less<>> known_;
};

// Of the folder of a model, or the file that is named.
ConfigFile config_at(const std::filesystem::path& path);

// What a config calls the function between the layers of an MLP, and back.
ops::Activation activation_of(const ConfigFile& config, std::string_view key, ops::Activation otherwise);
std::string name_of_activation(ops::Activation activation);

double not_negative(const ConfigFile& config, std::string_view key, double otherwise);
double probability_of(const ConfigFile& config, std::string_view key, double otherwise);
// From 1 to 100,000; otherwise: of a key that is absent or null, 0: that is refused.
int count_of(const ConfigFile& config, std::string_view key, int otherwise = 0);

// The names of a classifier's classes, by "id2label"; none where it says nothing of them. Back, with standard names for none.
std::vector<std::string> labels_of(const ConfigFile& config);
void add_labels(nlohmann::ordered_json& config, const std::vector<std::string>& labels, std::int64_t classes);

// What says nothing of what a model computes, whichever it is.
void ignore_what_computes_nothing(const ConfigFile& config);

}  // namespace trireme::models

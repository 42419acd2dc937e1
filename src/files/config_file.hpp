#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "trireme/core/error.hpp"
#include "trireme/files/location.hpp"

namespace trireme {

// A JSON object of which every key has to be asked for: what nobody knows is refused, not ignored. Absent and null are the
// same.
class ConfigFile {
 public:
  // `what` it is, as messages call it.
  explicit ConfigFile(const Location& location, std::string what = "a model's config");
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
  // Of a list; absent or null: none.
  std::vector<ConfigFile> objects(std::string_view key) const;
  std::vector<std::string> keys() const;
  // Anything; null: absent or null.
  const nlohmann::json* value(std::string_view key) const { return find(key); }

  // Another value than this one is refused. Absent is fine.
  void expect(std::string_view key, const nlohmann::json& value) const;
  // What says anything is refused: all but false, null and an empty list, object or text.
  void expect_nothing(std::initializer_list<std::string_view> keys) const;
  void ignore(std::initializer_list<std::string_view> keys) const;
  // After all that is known has been asked for.
  void refuse_unknown() const;

  const std::string& path() const { return path_; }
  // `hint`: what to do.
  [[noreturn]] void refuse(std::string_view key, const std::string& wanted, const std::string& hint = {}) const;

 private:
  ConfigFile(const ConfigFile& outer, const nlohmann::json& object, std::string prefix);
  const nlohmann::json* find(std::string_view key) const;
  const nlohmann::json& at(std::string_view key, std::string_view wanted) const;

  std::string what_;
  std::string path_;
  std::string prefix_;  // of keys in messages
  std::shared_ptr<const nlohmann::json> root_;
  const nlohmann::json* object_ = nullptr;
  mutable std::set<std::string, std::less<>> known_;
};

}  // namespace trireme

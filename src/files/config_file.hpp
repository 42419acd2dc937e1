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

// A JSON object that refuses keys which the program does not ask for, instead of ignoring them. Null counts as absent.
class ConfigFile {
 public:
  // `what` names the file in messages.
  explicit ConfigFile(const Location& location, std::string what = "a model's config");
  // The nested object at `key`.
  ConfigFile(const ConfigFile& outer, std::string_view key);

  bool has(std::string_view key) const { return find(key) != nullptr; }  // false for null
  bool is_empty() const { return object_->empty(); }
  bool is_absent(std::string_view key) const { return !object_->contains(key); }

  // Returns `otherwise` where the key is absent. Refuses integers below `least`.
  std::int64_t integer(std::string_view key, std::int64_t least = 1) const;
  std::int64_t integer_or(std::string_view key, std::int64_t otherwise, std::int64_t least = 1) const;
  double number(std::string_view key) const;
  double number_or(std::string_view key, double otherwise) const;
  bool flag_or(std::string_view key, bool otherwise) const;
  std::string text(std::string_view key) const;
  std::string text_or(std::string_view key, std::string_view otherwise) const;
  std::optional<std::vector<std::string>> texts(std::string_view key) const;
  std::vector<double> numbers(std::string_view key) const;
  // The objects of a list; empty where the key is absent.
  std::vector<ConfigFile> objects(std::string_view key) const;
  std::vector<std::string> keys() const;
  // A value of any type; null where the key is absent.
  const nlohmann::json* value(std::string_view key) const { return find(key); }

  // Refuses any other value than this one. The key may be absent.
  void expect(std::string_view key, const nlohmann::json& value) const;
  // Refuses all values except false, null and an empty list, object or text.
  void expect_nothing(std::initializer_list<std::string_view> keys) const;
  void ignore(std::initializer_list<std::string_view> keys) const;
  // Refuses keys that were not asked for. Call it last.
  void refuse_unknown() const;

  const std::string& path() const { return path_; }
  // `hint` says what the user can do.
  [[noreturn]] void refuse(std::string_view key, const std::string& wanted, const std::string& hint = {}) const;

 private:
  ConfigFile(const ConfigFile& outer, const nlohmann::json& object, std::string prefix);
  const nlohmann::json* find(std::string_view key) const;
  const nlohmann::json& at(std::string_view key, std::string_view wanted) const;

  std::string what_;
  std::string path_;
  std::string prefix_;  // prefix of keys in messages
  std::shared_ptr<const nlohmann::json> root_;
  const nlohmann::json* object_ = nullptr;
  mutable std::set<std::string, std::less<>> known_;
};

}  // namespace trireme

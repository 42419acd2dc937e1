#include "files/config_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "trireme/files/file_system.hpp"
#include "trireme/files/json_fault.hpp"

namespace trireme {
namespace {

bool says_nothing(const nlohmann::json& value) {
  return value.is_null() || value == false || value == "" || (value.is_structured() && value.empty());
}

}  // namespace

ConfigFile::ConfigFile(const Location& location, std::string what) : what_(std::move(what)), path_(location.string()) {
  std::string text;
  try {
    text = open_file(location)->content();
  } catch (const Error& error) {  // a folder, or a file that is not there
    if (error.code() != ErrorCode::io) throw;
    throw Error({.code = ErrorCode::io,
                 .message = what_ + " can't be read",
                 .path = path_,
                 .hint = "name a folder as transformers writes it by save_pretrained()"});
  }
  root_ = std::make_shared<const nlohmann::json>(nlohmann::json::parse(text, nullptr, false));
  object_ = root_.get();
  if (object_->is_object()) return;
  throw Error({.code = ErrorCode::corrupt_file, .message = what_ + " is no JSON object" + why_no_json(text), .path = path_});
}

ConfigFile::ConfigFile(const ConfigFile& outer, std::string_view key)
    : ConfigFile(outer, outer.at(key, "an object"), fmt::format("{}{}.", outer.prefix_, key)) {
  if (!object_->is_object()) outer.refuse(key, "an object");
}

ConfigFile::ConfigFile(const ConfigFile& outer, const nlohmann::json& object, std::string prefix)
    : what_(outer.what_), path_(outer.path_), prefix_(std::move(prefix)), root_(outer.root_), object_(&object) {
  constexpr std::ptrdiff_t deepest = 32;
  if (std::ranges::count(prefix_, '.') <= deepest) return;
  throw Error({.code = ErrorCode::invalid_argument,
               .message = fmt::format("{} is nested more than {} objects deep", what_, deepest),
               .name = prefix_,
               .path = path_});
}

std::vector<ConfigFile> ConfigFile::objects(std::string_view key) const {
  std::vector<ConfigFile> all;
  const nlohmann::json* list = find(key);
  if (list == nullptr) return all;
  if (!list->is_array()) refuse(key, "a list of objects");
  for (const auto& each : *list) {
    if (!each.is_object()) refuse(key, "a list of objects");
    all.push_back(ConfigFile(*this, each, fmt::format("{}{}[{}].", prefix_, key, all.size())));
  }
  return all;
}

const nlohmann::json* ConfigFile::find(std::string_view key) const {
  known_.emplace(key);
  const auto found = object_->find(key);
  return found == object_->end() || found->is_null() ? nullptr : &*found;
}

const nlohmann::json& ConfigFile::at(std::string_view key, std::string_view wanted) const {
  const nlohmann::json* value = find(key);
  if (value == nullptr) refuse(key, std::string(wanted));
  return *value;
}

void ConfigFile::refuse(std::string_view key, const std::string& wanted, const std::string& hint) const {
  const auto found = object_->find(key);
  std::string had = "nothing";
  if (found != object_->end()) {
    // ASCII, so that cutting it splits no character. Nested values are not written, since dump() could overflow the stack.
    had = found->is_object() ? "an object" : found->is_array() ? "a list" : found->dump(-1, ' ', true);
  }
  if (had.size() > 200) had = had.substr(0, 200) + " ...";
  throw Error({.code = ErrorCode::invalid_argument,
               .message = what_ + " has a value that is not supported",
               .name = prefix_ + std::string(key),
               .path = path_,
               .wanted = wanted,
               .had = std::move(had),
               .hint = hint});
}

std::int64_t ConfigFile::integer(std::string_view key, std::int64_t least) const {
  constexpr std::int64_t most = std::int64_t{1} << 40;
  const std::string wanted = fmt::format("a whole number from {} on", least);
  const nlohmann::json& value = at(key, wanted);
  if (!value.is_number_integer() || (value.is_number_unsigned() && value.get<std::uint64_t>() > most)) refuse(key, wanted);
  const auto number = value.get<std::int64_t>();
  if (number < least || number > most) refuse(key, wanted);
  return number;
}

std::int64_t ConfigFile::integer_or(std::string_view key, std::int64_t otherwise, std::int64_t least) const {
  return has(key) ? integer(key, least) : otherwise;
}

double ConfigFile::number(std::string_view key) const {
  const nlohmann::json& value = at(key, "a number");
  if (!value.is_number() || !std::isfinite(value.get<double>())) refuse(key, "a number");
  return value.get<double>();
}

double ConfigFile::number_or(std::string_view key, double otherwise) const { return has(key) ? number(key) : otherwise; }

bool ConfigFile::flag_or(std::string_view key, bool otherwise) const {
  const nlohmann::json* value = find(key);
  if (value == nullptr) return otherwise;
  if (!value->is_boolean()) refuse(key, "true or false");
  return value->get<bool>();
}

std::string ConfigFile::text(std::string_view key) const {
  const nlohmann::json& value = at(key, "a text");
  if (!value.is_string()) refuse(key, "a text");
  return value.get<std::string>();
}

std::string ConfigFile::text_or(std::string_view key, std::string_view otherwise) const {
  return has(key) ? text(key) : std::string(otherwise);
}

std::optional<std::vector<std::string>> ConfigFile::texts(std::string_view key) const {
  const nlohmann::json* value = find(key);
  if (value == nullptr) return {};
  std::vector<std::string> all;
  if (!value->is_array()) refuse(key, "a list of texts");
  for (const auto& each : *value) {
    if (!each.is_string()) refuse(key, "a list of texts");
    all.push_back(each.get<std::string>());
  }
  return all;
}

std::vector<double> ConfigFile::numbers(std::string_view key) const {
  const nlohmann::json& value = at(key, "a list of numbers");
  std::vector<double> all;
  if (!value.is_array()) refuse(key, "a list of numbers");
  for (const auto& each : value) {
    if (!each.is_number()) refuse(key, "a list of numbers");
    all.push_back(each.get<double>());
  }
  return all;
}

std::vector<std::string> ConfigFile::keys() const {
  std::vector<std::string> all;
  for (const auto& [key, value] : object_->items()) all.push_back(key);
  return all;
}

void ConfigFile::expect(std::string_view key, const nlohmann::json& value) const {
  const nlohmann::json* found = find(key);
  if (found != nullptr && *found != value) refuse(key, value.dump());
}

void ConfigFile::expect_nothing(std::initializer_list<std::string_view> keys) const {
  for (const std::string_view key : keys) {
    const nlohmann::json* found = find(key);
    if (found != nullptr && !says_nothing(*found)) refuse(key, "null");
  }
}

void ConfigFile::ignore(std::initializer_list<std::string_view> keys) const {
  for (const std::string_view key : keys) known_.emplace(key);
}

void ConfigFile::refuse_unknown() const {
  for (const auto& [key, value] : object_->items()) {
    if (!known_.contains(key) && !says_nothing(value)) refuse(key, "no option of this name, which is not known");
  }
}

}  // namespace trireme

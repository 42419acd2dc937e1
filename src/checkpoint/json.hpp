#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "trireme/checkpoint/manifest.hpp"

// JSON that manifests and messages between ranks share.
namespace trireme::checkpoint {

using Json = nlohmann::json;

Json json_of(std::span<const Runs> runs);                          // [[first, count, stride, times], ...]
std::optional<std::vector<Runs>> runs_of_json(const Json& value);  // std::nullopt for other JSON

// JSON has no inf and nan: they are written by their bits, {"float64": "7ff8000000000000"}.
Json json_of(const std::map<std::string, SavedValue>& values);
std::optional<SavedValue> value_of_json(const Json& value);  // std::nullopt for other JSON
constexpr const char* name_of_bits = "float64";

// Throws Error{invalid_argument} with the name for a text that is not UTF-8.
void require_utf8(const std::string& name, const std::string& text);

// Whether the runs are ascending, without overlap, and within `numel` elements.
bool ascending(std::span<const Runs> runs, std::int64_t numel);

std::optional<DType> dtype_named(std::string_view name);
std::optional<std::uint64_t> number_of_hex(std::string_view text);  // 16 digits

}  // namespace trireme::checkpoint

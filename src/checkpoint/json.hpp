#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "trireme/checkpoint/manifest.hpp"

// What manifests and the messages between ranks write alike.
namespace trireme::checkpoint {

using Json = nlohmann::json;

Json json_of(std::span<const Runs> runs);                          // [[first, count, stride, times], ...]
std::optional<std::vector<Runs>> runs_of_json(const Json& value);  // nothing when it is something else

// JSON has no inf and nan: these are {"float64": "7ff8000000000000"}, their bits.
Json json_of(const std::map<std::string, SavedValue>& values);
std::optional<SavedValue> value_of_json(const Json& value);  // nothing when it is something else
constexpr const char* name_of_bits = "float64";

// Throws Error{invalid_argument} with the name for a text that JSON can't hold.
void require_utf8(const std::string& name, const std::string& text);

// Whether runs are ascending, without overlap, among `numel` elements.
bool ascending(std::span<const Runs> runs, std::int64_t numel);

std::optional<DType> dtype_named(std::string_view name);
std::optional<std::uint64_t> number_of_hex(std::string_view text);  // 16 digits

}  // namespace trireme::checkpoint

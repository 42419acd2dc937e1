#include "checkpoint/json.hpp"

#include <fmt/format.h>

#include <bit>
#include <charconv>
#include <cmath>
#include <limits>
#include <tuple>

#include "trireme/core/error.hpp"

namespace trireme::checkpoint {

Json json_of(std::span<const Runs> runs) {
  Json result = Json::array();
  for (const Runs& run : runs) result.push_back({run.first, run.count, run.stride, run.times});
  return result;
}

std::optional<std::vector<Runs>> runs_of_json(const Json& value) {
  if (!value.is_array()) return std::nullopt;
  std::vector<Runs> runs;
  for (const Json& run : value) {
    if (!run.is_array() || run.size() != 4) return std::nullopt;
    for (const Json& number : run) {
      if (!number.is_number_integer()) return std::nullopt;
    }
    runs.push_back(
        {run[0].get<std::int64_t>(), run[1].get<std::int64_t>(), run[2].get<std::int64_t>(), run[3].get<std::int64_t>()});
  }
  return runs;
}

Json json_of(const std::map<std::string, SavedValue>& values) {
  Json result = Json::object();
  for (const auto& [name, value] : values) {
    Json& to = result[name];
    const auto* number = std::get_if<double>(&value);
    if (number != nullptr && !std::isfinite(*number)) {
      to = {{name_of_bits, fmt::format("{:016x}", std::bit_cast<std::uint64_t>(*number))}};
    } else {
      std::visit([&to](const auto& known) { to = known; }, value);
    }
  }
  return result;
}

std::optional<SavedValue> value_of_json(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_number_float()) return value.get<double>();
  if (value.is_object() && value.size() == 1 && value.contains(name_of_bits) && value[name_of_bits].is_string()) {
    const auto bits = number_of_hex(value[name_of_bits].get<std::string>());
    return bits ? std::optional<SavedValue>(std::bit_cast<double>(*bits)) : std::nullopt;
  }
  const bool fits = value.is_number_integer() &&
                    !(value.is_number_unsigned() &&
                      value.get<std::uint64_t>() > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()));
  if (!fits) return std::nullopt;
  return value.get<std::int64_t>();
}

void require_utf8(const std::string& name, const std::string& text) {
  try {
    std::ignore = Json(text).dump();
  } catch (const Json::exception&) {
    throw Error({.code = ErrorCode::invalid_argument,
                 .message = "a text is not UTF-8, which checkpoints need",
                 .name = name,
                 .hint = "give it in UTF-8, or as hexadecimal digits"});
  }
}

bool ascending(std::span<const Runs> runs, std::int64_t numel) {
  std::int64_t last = 0;
  for (const Runs& run : runs) {
    if (run.first < last || run.first > numel || run.count < 1 || run.count > numel || run.times < 1 || run.times > numel) {
      return false;
    }
    if (run.times > 1 && (run.stride < run.count || run.stride > numel)) return false;
    std::int64_t end = 0;
    if (__builtin_mul_overflow(run.times - 1, run.stride, &end) || __builtin_add_overflow(end, run.first + run.count, &end)) {
      return false;
    }
    if (end > numel) return false;
    last = end;
  }
  return true;
}

std::optional<DType> dtype_named(std::string_view name) {
  for (int value = 0; value <= static_cast<int>(DType::float64); ++value) {
    const auto dtype = static_cast<DType>(value);
    if (name_of(dtype) == name) return dtype;
  }
  return std::nullopt;
}

std::optional<std::uint64_t> number_of_hex(std::string_view text) {
  std::uint64_t number = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), number, 16);
  if (failure != std::errc() || end != text.data() + text.size() || text.size() != 16) return std::nullopt;
  return number;
}

}  // namespace trireme::checkpoint

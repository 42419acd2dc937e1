#include "trireme/data/documents/token_mixture.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>
#include <utility>

#include "trireme/core/error.hpp"
#include "trireme/data/sources/locations_of.hpp"
#include "trireme/files/file_system.hpp"
#include "trireme/files/json_fault.hpp"

namespace trireme::data {
namespace {

constexpr std::array<std::string_view, 1> shard_endings{".safetensors"};

// Reads a mixture file and names it in each Error.
class MixtureFile {
 public:
  MixtureFile(Location location, const PackedRowsOptions& options) : location_(std::move(location)), options_(options) {}

  TokenMixture open() {
    const std::string text = open_file(location_)->content();
    const auto file = nlohmann::json::parse(text, nullptr, false);
    if (!file.is_object()) refuse(fmt::format("the mixture is no JSON object{}", why_no_json(text)));
    refuse_other_keys(file, {"parts", "weights_from_step"}, "the mixture");
    const auto parts = file.find("parts");
    if (parts == file.end() || !parts->is_array() || parts->empty()) refuse("\"parts\" is no list of parts");
    std::vector<PackedRows> rows;
    std::vector<std::string> names;
    MixtureWeights first;
    for (const auto& part : *parts) {
      const std::string where = fmt::format("part {}", rows.size());
      if (!part.is_object()) refuse(fmt::format("{} is no object", where));
      refuse_other_keys(part, {"data", "name", "weight"}, where);
      const std::string pattern = text_at(part, "data", where);
      names.push_back(part.contains("name") ? text_at(part, "name", where) : pattern);
      first.weights.push_back(number(part.value("weight", nlohmann::json()), where));
      rows.emplace_back(TokenShards(locations_of(below_folder(pattern), shard_endings)), options_);
    }
    std::vector<MixtureWeights> weights{std::move(first)};
    add_later(file, rows.size(), weights);
    return {.rows = Joined(std::move(rows)), .weights = std::move(weights), .names = std::move(names)};
  }

 private:
  [[noreturn]] void refuse(std::string message) const {
    throw Error({.code = ErrorCode::invalid_argument,
                 .message = std::move(message),
                 .path = location_.string(),
                 .wanted = R"({"parts": [{"data": PATTERN, "weight": NUMBER}, ...]})"});
  }

  void refuse_other_keys(const nlohmann::json& object, const std::set<std::string>& known, const std::string& where) const {
    for (const auto& item : object.items()) {
      if (!known.contains(item.key())) refuse(fmt::format("{} has the unknown key \"{}\"", where, item.key()));
    }
  }

  std::string text_at(const nlohmann::json& object, const char* key, const std::string& where) const {
    const auto found = object.find(key);
    if (found == object.end() || !found->is_string() || found->get_ref<const std::string&>().empty()) {
      refuse(fmt::format("\"{}\" of {} is no text", key, where));
    }
    return found->get<std::string>();
  }

  double number(const nlohmann::json& value, const std::string& where) const {
    if (!value.is_number()) refuse(fmt::format("the weight of {} is no number", where));
    return value.get<double>();
  }

  std::string below_folder(const std::string& pattern) const {
    const bool is_list = pattern.starts_with('@');
    const Location named(pattern.substr(is_list ? 1 : 0));
    return (is_list ? "@" : "") + (named.is_file_path() ? location_.parent() / named.string() : named).string();
  }

  void add_later(const nlohmann::json& file, std::size_t num_parts, std::vector<MixtureWeights>& weights) const {
    const auto later = file.find("weights_from_step");
    if (later == file.end()) return;
    if (!later->is_object()) refuse("\"weights_from_step\" is no object of steps");
    for (const auto& [step, list] : later->items()) {
      MixtureWeights& from = weights.emplace_back();
      const auto [end, fault] = std::from_chars(step.data(), step.data() + step.size(), from.from_step);
      if (fault != std::errc() || end != step.data() + step.size()) refuse(fmt::format("\"{}\" is no step", step));
      if (!list.is_array() || list.size() != num_parts) {
        refuse(fmt::format("the weights from step {} on are no list of {} numbers", step, num_parts));
      }
      for (const auto& weight : list) from.weights.push_back(number(weight, "step " + step));
    }
    std::ranges::sort(weights, {}, &MixtureWeights::from_step);
  }

  Location location_;
  PackedRowsOptions options_;
};

}  // namespace

std::string content_of(const TokenMixture& mixture) {
  std::string content = content_of(mixture.rows);
  for (const MixtureWeights& weights : mixture.weights) {
    content += fmt::format("; from step {} on {}", weights.from_step, fmt::join(weights.weights, " to "));
  }
  return content;
}

TokenMixture open_token_mixture(const std::string& data, const PackedRowsOptions& options) {
  if (data.ends_with(".json")) return MixtureFile(data, options).open();
  return {.rows = Joined(std::vector{PackedRows(TokenShards(locations_of(data, shard_endings)), options)}),
          .weights = {},
          .names = {data}};
}

}  // namespace trireme::data

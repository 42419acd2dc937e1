#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <utility>

#include "models/folders/model_config.hpp"
#include "trireme/models/folders/hugging_face.hpp"

// Families by model_type.
namespace trireme::models {
namespace {

constexpr std::array<std::pair<std::string_view, Family>, 12> families{{{"llama", Family::llama},
                                                                        {"mistral", Family::llama},
                                                                        {"mixtral", Family::llama},
                                                                        {"qwen2", Family::llama},
                                                                        {"qwen2_moe", Family::llama},
                                                                        {"qwen3", Family::llama},
                                                                        {"qwen3_moe", Family::llama},
                                                                        {"gpt2", Family::gpt2},
                                                                        {"gpt_neox", Family::gpt_neox},
                                                                        {"bert", Family::bert},
                                                                        {"vit", Family::vit},
                                                                        {"deit", Family::vit}}};

// hint_of(family): the hint for a known family that is not accepted.
Family family_in(const ConfigFile& config, const auto& is_taken, const auto& hint_of) {
  const std::string type = config.text("model_type");
  std::string hint;
  std::vector<std::string_view> taken;
  for (const auto& [known, family] : families) {
    if (known == type && is_taken(family)) return family;
    if (known == type) hint = hint_of(family);
    if (is_taken(family)) taken.push_back(known);
  }
  require(!taken.empty(), "family_of() refuses all families");
  const std::string_view last = taken.back();
  taken.pop_back();
  config.refuse("model_type", taken.empty() ? std::string(last) : fmt::format("{} or {}", fmt::join(taken, ", "), last), hint);
}

}  // namespace

std::string model_type(const Location& path) { return config_at(path).text("model_type"); }

Family family_of(const Location& path, const std::map<Family, std::string>& refused) {
  return family_in(
      config_at(path), [&](Family family) { return !refused.contains(family); },
      [&](Family family) { return refused.at(family); });
}

void require_family(const ConfigFile& config, Family wanted) {
  family_in(
      config, [&](Family family) { return family == wanted; }, [](Family) { return ""; });
}

}  // namespace trireme::models

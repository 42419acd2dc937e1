#include "parallel/replicas/non_finite.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "parallel/step/planes.hpp"

namespace trireme::parallel {
namespace {

bool is_finite(FlatStore& store, const Range& range) {
  return with_elements_on_host(store, store.gradient_plane(), range, [](auto gradients) {
    return std::ranges::all_of(gradients, [](auto gradient) { return std::isfinite(gradient); });
  });
}

// The place in the store's layout of the first parameter with a gradient that is not finite. The layout is the order of the
// backward pass. A tied parameter counts in the first stage that holds it.
std::optional<std::size_t> first_place(FlatStore& store, std::span<const Range> reduced, const SummaryGroup& ranks) {
  const auto layout = store.layout();
  for (std::size_t place = 0; place < layout.size(); ++place) {
    const ParameterInfo& parameter = store.parameter(layout[place]);
    if (!parameter.trainable || !ranks.counts(parameter)) continue;
    for (const Range& range : reduced) {
      const Range part{std::max(range.begin, parameter.offset), std::min(range.end, parameter.offset + parameter.numel)};
      if (part.count() > 0 && !is_finite(store, part)) return place;
    }
  }
  return std::nullopt;
}

}  // namespace

NonFinite find_non_finite(FlatStore& store, std::span<const Range> reduced, bool own_loss_is_finite,
                          const SummaryGroup& ranks) {
  nlohmann::json own{{"finite_loss", own_loss_is_finite}};
  if (const auto place = first_place(store, reduced, ranks)) {
    // Backward reaches the parameters of later stages first.
    own["place"] = ranks.num_parameters() - ranks.first_parameter() - static_cast<std::size_t>(store.num_parameters()) + *place;
    own["name"] = store.parameter(store.layout()[*place]).name;
  }
  NonFinite result;
  std::size_t first = ranks.num_parameters();
  const auto texts = ranks.group().gather_texts(own.dump(), "find what is not finite");
  for (std::size_t rank = 0; rank < texts.size(); ++rank) {
    const auto of_rank = nlohmann::json::parse(texts[rank]);
    if (!of_rank.at("finite_loss").get<bool>()) result.ranks.push_back(static_cast<int>(rank));
    if (!of_rank.contains("place") || of_rank.at("place").get<std::size_t>() >= first) continue;
    first = of_rank.at("place").get<std::size_t>();
    result.parameter = of_rank.at("name").get<std::string>();
  }
  return result;
}

}  // namespace trireme::parallel

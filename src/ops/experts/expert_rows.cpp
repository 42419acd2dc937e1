#include "trireme/ops/experts/expert_rows.hpp"

#include "ops/base/check.hpp"

namespace trireme::ops {
namespace {

// The expert of each choice, or -1 if the capacity drops it.
std::vector<std::int64_t> placed_choices(const Tensor<std::int64_t, Cpu>& chosen, const ExpertRowsOptions& options) {
  std::vector<std::int64_t> placed = chosen.to_vector();
  if (options.capacity == 0) return placed;
  const std::int64_t tokens = chosen.dim(0), choices = chosen.dim(1), group = options.tokens_of_group;
  for (std::int64_t first = 0; first < tokens; first += group) {
    std::vector<std::int64_t> taken(static_cast<std::size_t>(options.experts));
    for (std::int64_t number = 0; number < choices; ++number) {
      for (std::int64_t token = first; token < first + group; ++token) {
        std::int64_t& expert = placed[static_cast<std::size_t>(token * choices + number)];
        if (taken[static_cast<std::size_t>(expert)]++ >= options.capacity) expert = -1;
      }
    }
  }
  return placed;
}

}  // namespace

ExpertRows expert_rows(const Tensor<std::int64_t, Cpu>& chosen, const ExpertRowsOptions& options) {
  require_defined("expert_rows", "chosen", chosen);
  require(chosen.shape().size() == 2, "expert_rows: chosen has shape {}, but needs [tokens, choices]", chosen.shape());
  require(options.capacity == 0 || (options.tokens_of_group > 0 && chosen.dim(0) % options.tokens_of_group == 0),
          "expert_rows: groups of {} tokens do not divide {}", options.tokens_of_group, chosen.dim(0));
  for (const std::int64_t expert : chosen.span()) {
    require(expert >= 0 && expert < options.experts, "expert_rows: expert {} is chosen, but there are {}", expert,
            options.experts);
  }
  const std::vector<std::int64_t> placed = placed_choices(chosen, options);
  ExpertRows rows{
      .tokens = chosen.dim(0), .choices = chosen.dim(1), .first = {}, .choice = {}, .row = {}, .limited = options.capacity > 0};
  rows.first.assign(static_cast<std::size_t>(options.experts + 1), 0);
  for (const std::int64_t expert : placed) {
    if (expert >= 0) ++rows.first[static_cast<std::size_t>(expert + 1)];
  }
  for (std::size_t expert = 1; expert < rows.first.size(); ++expert) rows.first[expert] += rows.first[expert - 1];
  rows.choice.resize(static_cast<std::size_t>(rows.first.back()));
  rows.row.assign(placed.size(), -1);
  std::vector<std::int64_t> next = rows.first;
  for (std::size_t choice = 0; choice < placed.size(); ++choice) {
    if (placed[choice] < 0) continue;
    const std::int64_t row = next[static_cast<std::size_t>(placed[choice])]++;
    rows.row[choice] = row;
    rows.choice[static_cast<std::size_t>(row)] = static_cast<std::int64_t>(choice);
  }
  return rows;
}

}  // namespace trireme::ops

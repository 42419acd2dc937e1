#include "training/token_rows.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>

#include "trireme/comm/base/node_turns.hpp"
#include "trireme/data/documents/token_mixture.hpp"

using namespace trireme;

namespace {

using Rows = data::Joined<data::PackedRows>;

std::int64_t largest_token(const Rows& rows) {
  std::int64_t largest = 0;
  for (std::size_t part = 0; part < rows.parts().size(); ++part) {
    largest = std::max(largest, rows.part(part).documents().largest_token());
  }
  return largest;
}

void check_vocabulary(const Rows& rows, std::int64_t vocabulary) {
  for (std::size_t part = 0; part < rows.parts().size(); ++part) rows.part(part).documents().check_vocabulary(vocabulary);
}

std::string about(const data::TokenMixture& mixture) {
  std::int64_t tokens = 0;
  std::string parts;
  for (std::size_t part = 0; part < mixture.names.size(); ++part) {
    const data::PackedRows& rows = mixture.rows.part(part);
    tokens += rows.documents().num_tokens();
    if (!mixture.weights.empty()) {
      parts += fmt::format("{}{} with weight {}", part == 0 ? ": " : ", ", mixture.names[part],
                           mixture.weights.front().weights[part]);
    }
  }
  return fmt::format("{} tokens to train on, packed into {} sequences{}", tokens, mixture.rows.size(), parts);
}

}  // namespace

TokenRows open_token_rows(trainer::Run& run, const Recipe& recipe, std::int64_t block, std::int64_t vocabulary) {
  const data::PackedRowsOptions options{.length = block};
  const auto open = [&](const std::string& data) {
    return read_on_all(run, [&] { return data::open_token_mixture(data, options); });
  };
  const data::TokenMixture mixture = open(recipe.data);
  const auto look = [&] {
    if (vocabulary == 0) vocabulary = std::min(largest_token(mixture.rows), most_width) + 1;
    check_vocabulary(mixture.rows, vocabulary);
  };
  take_turns_on_nodes(run.world(), look, "look for the largest token");
  recipe.describe_data(run, content_of(mixture));
  const data::Loader loader(mixture.rows, {.batch = run.batch(), .mixture = mixture.weights});
  TokenRows rows{.training = data::Prefetching(loader, recipe.ahead()),
                 .about = about(mixture),
                 .vocabulary = vocabulary,
                 .prompt = mixture.rows.part(0).documents().at(0)};
  rows.prompt.resize(1);
  if (recipe.validation.empty()) return rows;
  rows.validation.emplace(open(recipe.validation).rows);
  take_turns_on_nodes(
      run.world(), [&] { check_vocabulary(*rows.validation, vocabulary); }, "look for the largest token");
  return rows;
}

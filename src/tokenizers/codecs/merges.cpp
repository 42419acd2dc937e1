#include "tokenizers/codecs/merges.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <functional>
#include <queue>
#include <tuple>

namespace trireme::tokenizers {
namespace {

constexpr std::size_t most_of_a_short_word = 64;

}  // namespace

Merges::Merges(std::size_t count)
    : entries_(std::bit_ceil(std::max<std::size_t>(2 * count, 16))),
      known_(entries_.size() / 8),
      mask_(entries_.size() - 1),
      shift_(64 - std::countr_zero(entries_.size())) {}

void Merges::add(std::int32_t left, std::int32_t right, const Merge& merge) {
  const std::uint64_t pair = pair_of(left, right);
  std::size_t at = place_of(pair);
  while (entries_[at].pair != empty && entries_[at].pair != pair) at = (at + 1) & mask_;
  entries_[at] = {.pair = pair, .merge = merge};
  const std::uint64_t bit = hash_of(pair) >> (shift_ - 3);
  known_[bit / 64] |= std::uint64_t{1} << bit % 64;
}

void Merges::apply(std::vector<Symbol>& word) const {
  if (word.size() <= most_of_a_short_word) {
    apply_to_short(word);
  } else {
    apply_to_long(word);
  }
}

// For short words: searches all pairs for the next merge.
void Merges::apply_to_short(std::vector<Symbol>& word) const {
  if (word.size() < 2) return;
  std::array<Merge, most_of_a_short_word> merges;
  for (std::size_t at = 0; at + 1 < word.size(); ++at) fetch(word[at].token, word[at + 1].token);
  for (std::size_t at = 0; at + 1 < word.size(); ++at) merges[at] = find(word[at].token, word[at + 1].token);
  while (word.size() > 1) {
    const std::size_t pairs = word.size() - 1;
    std::size_t best = 0;
    for (std::size_t at = 1; at < pairs; ++at) {
      if (merges[at].rank < merges[best].rank) best = at;
    }
    if (merges[best].rank == none) return;
    word[best] = {.token = merges[best].token, .bytes = word[best].bytes + word[best + 1].bytes};
    if (best > 0) fetch(word[best - 1].token, word[best].token);
    if (best + 2 < word.size()) fetch(word[best].token, word[best + 2].token);
    word.erase(word.begin() + static_cast<std::ptrdiff_t>(best) + 1);
    std::copy(merges.begin() + static_cast<std::ptrdiff_t>(best) + 1, merges.begin() + static_cast<std::ptrdiff_t>(pairs),
              merges.begin() + static_cast<std::ptrdiff_t>(best));
    if (best > 0) merges[best - 1] = find(word[best - 1].token, word[best].token);
    if (best + 1 < word.size()) merges[best] = find(word[best].token, word[best + 1].token);
  }
}

// For long words, possibly a whole text: keeps the possible merges in a priority queue.
void Merges::apply_to_long(std::vector<Symbol>& word) const {
  struct Link {
    std::ptrdiff_t before, after;
  };
  struct Candidate {
    Merge merge;
    std::ptrdiff_t at;
    std::int32_t left, right;  // outdated if other tokens are there now
  };
  const auto comes_later = [](const Candidate& a, const Candidate& b) {
    return std::tie(a.merge.rank, a.at) > std::tie(b.merge.rank, b.at);
  };
  const auto size = static_cast<std::ptrdiff_t>(word.size());
  std::vector<Link> links(word.size());
  for (std::ptrdiff_t at = 0; at < size; ++at) links[static_cast<std::size_t>(at)] = {.before = at - 1, .after = at + 1};
  const auto symbol = [&](std::ptrdiff_t at) -> Symbol& { return word[static_cast<std::size_t>(at)]; };
  const auto link = [&](std::ptrdiff_t at) -> Link& { return links[static_cast<std::size_t>(at)]; };
  std::priority_queue<Candidate, std::vector<Candidate>, decltype(comes_later)> queue(comes_later);
  const auto consider = [&](std::ptrdiff_t at) {
    if (at < 0 || link(at).after == size) return;
    const std::int32_t left = symbol(at).token, right = symbol(link(at).after).token;
    const Merge merge = find(left, right);
    if (merge.rank != none) queue.push({.merge = merge, .at = at, .left = left, .right = right});
  };
  for (std::ptrdiff_t at = 0; at + 1 < size; ++at) consider(at);
  while (!queue.empty()) {
    const Candidate next = queue.top();
    queue.pop();
    const std::ptrdiff_t after = link(next.at).after;
    // A symbol of 0 bytes was merged into the previous one.
    if (symbol(next.at).bytes == 0 || after == size) continue;
    if (symbol(next.at).token != next.left || symbol(after).token != next.right) continue;
    symbol(next.at) = {.token = next.merge.token, .bytes = symbol(next.at).bytes + symbol(after).bytes};
    symbol(after).bytes = 0;
    link(next.at).after = link(after).after;
    if (link(after).after < size) link(link(after).after).before = next.at;
    consider(link(next.at).before);
    consider(next.at);
  }
  std::erase_if(word, [](const Symbol& each) { return each.bytes == 0; });
}

}  // namespace trireme::tokenizers

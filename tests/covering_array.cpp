#include "covering_array.hpp"

#include "trireme/core/error.hpp"

namespace trireme::tests {
namespace {

ChoicePair pair_of(const Choice& a, const Choice& b) { return a < b ? ChoicePair{a, b} : ChoicePair{b, a}; }

// The choices so far, and how a further one would go with them.
class Draft {
 public:
  explicit Draft(const std::set<ChoicePair>& excluded) : excluded_(excluded) {}

  void add(const Choice& choice) { choices_.push_back(choice); }
  const std::vector<Choice>& choices() const { return choices_; }

  bool has(std::size_t factor) const {
    for (const Choice& made : choices_) {
      if (made.factor == factor) return true;
    }
    return false;
  }
  bool allows(const Choice& choice) const {
    for (const Choice& made : choices_) {
      if (excluded_.contains(pair_of(made, choice))) return false;
    }
    return true;
  }
  std::size_t gain(const Choice& choice, const std::set<ChoicePair>& uncovered) const {
    std::size_t pairs = 0;
    for (const Choice& made : choices_) pairs += uncovered.contains(pair_of(made, choice)) ? 1 : 0;
    return pairs;
  }

 private:
  const std::set<ChoicePair>& excluded_;
  std::vector<Choice> choices_;
};

std::set<ChoicePair> pairs_to_cover(std::span<const std::size_t> sizes, const std::set<ChoicePair>& excluded) {
  std::set<ChoicePair> pairs;
  for (std::size_t a = 0; a < sizes.size(); ++a) {
    for (std::size_t b = a + 1; b < sizes.size(); ++b) {
      for (std::size_t i = 0; i < sizes[a]; ++i) {
        for (std::size_t j = 0; j < sizes[b]; ++j) pairs.insert({{a, i}, {b, j}});
      }
    }
  }
  for (const ChoicePair& pair : excluded) {
    require(pair.first.value != 0 && pair.second.value != 0, "value 0 of a factor is excluded with nothing");
    pairs.erase(pair);
  }
  return pairs;
}

}  // namespace

std::vector<Combination> covering_array(std::span<const std::size_t> sizes, const std::set<ChoicePair>& excluded) {
  std::set<ChoicePair> uncovered = pairs_to_cover(sizes, excluded);
  std::vector<Combination> rows;
  while (!uncovered.empty()) {
    Draft draft(excluded);
    draft.add(uncovered.begin()->first);
    draft.add(uncovered.begin()->second);
    for (std::size_t factor = 0; factor < sizes.size(); ++factor) {
      if (draft.has(factor)) continue;
      Choice best{factor, 0};
      for (std::size_t value = 1; value < sizes[factor]; ++value) {
        const Choice choice{factor, value};
        if (draft.allows(choice) && draft.gain(choice, uncovered) > draft.gain(best, uncovered)) best = choice;
      }
      draft.add(best);
    }
    Combination row(sizes.size());
    for (const Choice& choice : draft.choices()) {
      row[choice.factor] = choice.value;
      for (const Choice& other : draft.choices()) {
        if (choice < other) uncovered.erase({choice, other});
      }
    }
    rows.push_back(row);
  }
  return rows;
}

}  // namespace trireme::tests

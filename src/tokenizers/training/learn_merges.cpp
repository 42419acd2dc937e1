#include "tokenizers/training/learn_merges.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <queue>
#include <tuple>
#include <unordered_set>

#include "tokenizers/text/byte_level.hpp"
#include "tokenizers/text/utf8.hpp"
#include "tokenizers/training/pair_tables.hpp"
#include "trireme/core/error.hpp"

namespace trireme::tokenizers {
namespace {

class MergeLearner {
 public:
  MergeLearner(SharedWordCounts& words, const BpeTrainingOptions& options) : options_(options) {
    add_first_tokens();
    take_words(words);
    queue_first_pairs();
    for (std::int32_t& symbol : symbols_) symbol = bytes_[static_cast<std::size_t>(symbol)];
  }

  LearntMerges learn() {
    while (tokens_.size() < options_.vocabulary_size && !queue_.empty()) {
      Candidate best = queue_.top();
      queue_.pop();
      const std::int64_t count = counts_[best.pair].count;
      if (best.count != count) {  // other merges changed it
        best.count = count;
        queue_.push(best);
        continue;
      }
      if (count < std::max<std::int64_t>(options_.min_frequency, 1)) break;
      merge(best);
    }
    return {.tokens = std::move(tokens_), .merges = last_of_each(merges_)};
  }

 private:
  struct Word {
    std::uint64_t begin = 0;  // its first symbol
    std::int64_t count = 0;
    std::uint32_t size = 0;  // how many symbols it has
  };
  // A pair with some of the words that have it. A pair may have several candidates: each merge that makes it adds one.
  struct Candidate {
    std::int64_t count = 0;
    TokenPair pair = 0;
    std::uint32_t words = 0;  // a list

    friend bool operator<(const Candidate& a, const Candidate& b) {  // comes later in the queue
      return std::tie(a.count, b.pair, b.words) < std::tie(b.count, a.pair, a.words);
    }
  };

  // The special tokens, then the characters of all bytes.
  void add_first_tokens() {
    const auto add = [this](const std::string& spelling) {
      if (!tokens_.find(spelling)) tokens_.add(spelling, tokens_.size());
    };
    for (const std::string& special : options_.special_tokens) add(special);
    std::array<std::pair<char32_t, std::size_t>, 256> characters;
    for (std::size_t byte = 0; byte < 256; ++byte) characters[byte] = {spelling_of(static_cast<unsigned char>(byte)), byte};
    std::ranges::sort(characters);
    for (const auto& [character, byte] : characters) {
      std::string spelling;
      append_character(character, spelling);
      add(spelling);
      bytes_[byte] = tokens_.find(spelling).value();
    }
  }

  // Copies the words of two bytes or more as symbols, one for each byte; merges join them later.
  void take_words(SharedWordCounts& words) {
    symbols_.reserve(static_cast<std::size_t>(words.bytes()));
    require(words.size() < std::numeric_limits<std::uint32_t>::max(),
            "the texts have {} distinct words, 2^32 or more: train on fewer of them", words.size());
    words_.reserve(static_cast<std::size_t>(words.size()));
    for (std::size_t part = 0; part < SharedWordCounts::parts; ++part) {
      words.part(part).for_each([this](std::string_view word, std::uint64_t, std::int64_t count) {
        if (word.size() < 2) return;
        words_.push_back({.begin = symbols_.size(), .count = count, .size = static_cast<std::uint32_t>(word.size())});
        for (const char byte : word) symbols_.push_back(static_cast<unsigned char>(byte));
      });
      words.part(part) = {};
    }
  }

  std::span<std::int32_t> symbols_of(Word& word) { return std::span(symbols_).subspan(word.begin, word.size); }

  // Calls visit(pair of bytes, word, whether the pair is new in the word).
  template <typename Visit>
  void for_first_pairs(const Visit& visit) {
    std::vector<std::uint32_t> last(256 * 256, std::numeric_limits<std::uint32_t>::max());
    for (std::uint32_t number = 0; number < words_.size(); ++number) {
      const auto symbols = symbols_of(words_[number]);
      for (std::size_t at = 0; at + 1 < symbols.size(); ++at) {
        const auto pair = static_cast<std::size_t>(symbols[at] * 256 + symbols[at + 1]);
        visit(pair, number, last[pair] != number);
        last[pair] = number;
      }
    }
  }

  void queue_first_pairs() {
    struct First {
      std::int64_t count = 0;
      std::size_t words = 0;
      std::uint32_t list = 0;
      std::uint32_t* next = nullptr;
    };
    std::vector<First> firsts(256 * 256);
    for_first_pairs([&](std::size_t pair, std::uint32_t word, bool is_new) {
      firsts[pair].count += words_[word].count;
      if (is_new) ++firsts[pair].words;
    });
    for (First& first : firsts) {
      if (first.words > 0) std::tie(first.list, first.next) = lists_.make(first.words);
    }
    for_first_pairs([&](std::size_t pair, std::uint32_t word, bool is_new) {
      if (is_new) *firsts[pair].next++ = word;
    });
    for (std::size_t pair = 0; pair < firsts.size(); ++pair) {
      if (firsts[pair].words == 0) continue;
      const TokenPair tokens = token_pair(bytes_[pair / 256], bytes_[pair % 256]);
      counts_[tokens].count = firsts[pair].count;
      queue_.push({.count = firsts[pair].count, .pair = tokens, .words = firsts[pair].list});
    }
  }

  // The token of two adjacent ones, perhaps one that other merges made, or a special one of this spelling.
  std::int32_t token_of(TokenPair pair) {
    const std::string spelling = tokens_.text(left_of(pair)) + tokens_.text(right_of(pair));
    if (const auto known = tokens_.find(spelling)) return *known;
    tokens_.add(spelling, tokens_.size());
    return static_cast<std::int32_t>(tokens_.size() - 1);
  }

  void merge(const Candidate& candidate) {
    const std::int32_t token = token_of(candidate.pair);
    merges_.push_back(candidate.pair);
    for (const std::uint32_t word : lists_.at(candidate.words)) merge_in(word, candidate.pair, token);
    lists_.drop(candidate.words);
    for (std::size_t made = 0; made < made_; ++made) {
      PairCounts::Entry& entry = counts_[made_pairs_[made]];
      entry.list = -1;
      if (entry.count <= 0) continue;  // a later place of the same merge took it again
      const auto [list, words] = lists_.make(made_words_[made].size());
      std::ranges::copy(made_words_[made], words);
      queue_.push({.count = entry.count, .pair = entry.pair, .words = list});
    }
    made_ = 0;
  }

  // The count of the merged pair itself stays, as in tokenizers: if another merge makes the pair again, it comes first.
  void merge_in(std::uint32_t number, TokenPair pair, std::int32_t token) {
    Word& word = words_[number];
    const auto symbols = symbols_of(word);
    const std::int32_t left = left_of(pair), right = right_of(pair);
    std::size_t to = 0;
    for (std::size_t at = 0; at < symbols.size(); ++at, ++to) {
      if (symbols[at] != left || at + 1 == symbols.size() || symbols[at + 1] != right) {
        symbols[to] = symbols[at];
        continue;
      }
      if (to > 0) {
        counts_[token_pair(symbols[to - 1], left)].count -= word.count;
        make(token_pair(symbols[to - 1], token), number);
      }
      if (at + 2 < symbols.size()) {
        counts_[token_pair(right, symbols[at + 2])].count -= word.count;
        make(token_pair(token, symbols[at + 2]), number);
      }
      symbols[to] = token;
      ++at;
    }
    word.size = static_cast<std::uint32_t>(to);
  }

  void make(TokenPair pair, std::uint32_t word) {
    PairCounts::Entry& entry = counts_[pair];
    entry.count += words_[word].count;
    if (entry.list < 0) {
      entry.list = static_cast<std::int32_t>(made_++);
      if (made_ > made_words_.size()) {
        made_words_.emplace_back();
        made_pairs_.emplace_back();
      }
      made_words_[static_cast<std::size_t>(entry.list)].clear();
      made_pairs_[static_cast<std::size_t>(entry.list)] = pair;
    }
    std::vector<std::uint32_t>& words = made_words_[static_cast<std::size_t>(entry.list)];
    if (words.empty() || words.back() != word) words.push_back(word);
  }

  // A pair that was merged several times has its last rank, as in tokenizers.
  static std::vector<std::pair<std::int32_t, std::int32_t>> last_of_each(const std::vector<TokenPair>& all) {
    std::unordered_set<TokenPair> seen;
    std::vector<std::pair<std::int32_t, std::int32_t>> merges;
    for (std::size_t left = all.size(); left > 0; --left) {
      const TokenPair pair = all[left - 1];
      if (seen.insert(pair).second) merges.emplace_back(left_of(pair), right_of(pair));
    }
    std::ranges::reverse(merges);
    return merges;
  }

  const BpeTrainingOptions& options_;
  TokenSpellings tokens_{static_cast<std::size_t>(options_.vocabulary_size)};
  std::array<std::int32_t, 256> bytes_{};  // the token of each byte
  std::vector<std::int32_t> symbols_;      // of all words, one after the other; a word that shrinks leaves a gap
  std::vector<Word> words_;
  PairCounts counts_;
  WordLists lists_;
  std::priority_queue<Candidate> queue_;
  std::vector<TokenPair> merges_;

  // The pairs that the merge under way makes, and the words that have them.
  std::size_t made_ = 0;
  std::vector<TokenPair> made_pairs_;
  std::vector<std::vector<std::uint32_t>> made_words_;
};

}  // namespace

LearntMerges learn_merges(SharedWordCounts& words, const BpeTrainingOptions& options) {
  return MergeLearner(words, options).learn();
}

}  // namespace trireme::tokenizers

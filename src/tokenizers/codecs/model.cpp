#include "tokenizers/codecs/model.hpp"

#include <array>
#include <atomic>
#include <cstring>
#include <memory>
#include <utility>

#include "tokenizers/codecs/word_cache.hpp"
#include "tokenizers/text/utf8.hpp"
#include "trireme/core/error.hpp"

namespace trireme::tokenizers {
namespace {

std::uint32_t next_number() {
  static std::atomic<std::uint32_t> last{0};
  return ++last;
}

WordCache& cache_of_thread() {
  static thread_local WordCache cache;
  return cache;
}

}  // namespace

Model::Model() : number_(next_number()) {}

void Model::encode(std::string_view text, std::span<const Range> words, std::vector<std::int32_t>& tokens) const {
  require(words.size() <= most_words, "a model encodes {} words at once, not {}", most_words, words.size());
  // Prefetches all cache entries before it reads the first, since most are not in the processor's first cache.
  WordCache& cache = cache_of_thread();
  const WordCache::Short entries = cache.short_words;  // a copy, which stays in a register
  std::array<ShortWord, most_words> keys;
  std::array<WordCache::Short::Entry*, most_words> places;
  for (std::size_t at = 0; at < words.size(); ++at) {
    const std::string_view word = part_of(text, words[at]);
    places[at] = nullptr;
    if (word.size() > ShortWord::most_bytes) continue;
    // In place: a copy would have to wait until its parts are stored.
    std::construct_at(&keys[at], word, text.size() - static_cast<std::size_t>(words[at].begin));
    places[at] = entries.places_of(keys[at]);
    __builtin_prefetch(places[at], 1);
  }
  // Where many words are new, most of the next ones are too.
  static thread_local std::size_t recent_misses = 0;
  if (recent_misses > 0) {
    for (std::size_t at = 0; at < words.size(); ++at) {
      if (places[at] != nullptr && entries.find(places[at], keys[at], number_) == nullptr) fetch(part_of(text, words[at]));
    }
  }
  recent_misses = 0;
  std::array<std::int32_t, 4 * most_words> found;
  std::size_t count = 0;
  for (std::size_t at = 0; at < words.size(); ++at) {
    const auto* const entry = places[at] == nullptr ? nullptr : entries.find(places[at], keys[at], number_);
    if (entry != nullptr && entry->has_tokens()) [[likely]] {
      std::memcpy(&found[count], entry->tokens.data(), 4 * sizeof(std::int32_t));  // the last one is no token
      count += entry->count();
      continue;
    }
    tokens.insert(tokens.end(), found.begin(), found.begin() + static_cast<std::ptrdiff_t>(std::exchange(count, 0)));
    const std::string_view word = part_of(text, words[at]);
    if (places[at] == nullptr || entry != nullptr) {
      encode_long(word, cache.long_words, tokens);
      continue;
    }
    ++recent_misses;
    const std::size_t before = tokens.size();
    encode_word(word, tokens, nullptr);
    cache.short_words.keep(places[at], keys[at], number_, std::span(tokens).subspan(before));
  }
  tokens.insert(tokens.end(), found.begin(), found.begin() + static_cast<std::ptrdiff_t>(count));
}

void Model::encode_long(std::string_view word, WordCache::Long& entries, std::vector<std::int32_t>& tokens) const {
  if (word.size() > WordKey::most_bytes) return encode_word(word, tokens, nullptr);
  const WordKey key(word);
  auto* const places = entries.places_of(key);
  const auto* const entry = entries.find(places, key, number_);
  if (entry != nullptr && entry->has_tokens()) {
    tokens.insert(tokens.end(), entry->tokens.begin(), entry->tokens.begin() + static_cast<std::ptrdiff_t>(entry->count()));
    return;
  }
  const std::size_t before = tokens.size();
  encode_word(word, tokens, nullptr);
  if (entry == nullptr) entries.keep(places, key, number_, std::span(tokens).subspan(before));
}

}  // namespace trireme::tokenizers

#include "tokenizers/text/known_patterns.hpp"

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "tokenizers/text/regex.hpp"
#include "trireme/tokenizers/text/patterns.hpp"

namespace trireme::tokenizers {
namespace {

constexpr std::size_t characters_of_page = 256;

// The classes of all characters, found out for pages of them that texts have: for all at once it would take longer than a short
// text.
class CharacterClasses {
 public:
  CharacterClass of(char32_t character) {
    const Page* page = pages_[character / characters_of_page].load(std::memory_order_acquire);
    if (page == nullptr) page = &make(character / characters_of_page);
    return (*page)[character % characters_of_page];
  }

 private:
  using Page = std::array<CharacterClass, characters_of_page>;

  const Page& make(std::size_t number) {
    std::string all;
    for (std::size_t at = 0; at < characters_of_page; ++at) {
      const auto character = static_cast<char32_t>(number * characters_of_page + at);
      if (character < 0xD800 || character > 0xDFFF) append_character(character, all);
    }
    auto page = std::make_unique<Page>();
    page->fill(CharacterClass::other);
    for (const auto& [regex, is] : kinds_) {
      regex.for_matches(all, [&, is = is](const Range& run) {
        for (auto at = static_cast<std::size_t>(run.begin); at < static_cast<std::size_t>(run.end);) {
          (*page)[character_at(all.data() + at) % characters_of_page] = is;
          at += size_of_character(all[at]);
        }
      });
    }
    const std::lock_guard lock(mutex_);
    if (const Page* const known = pages_[number].load(std::memory_order_relaxed)) return *known;
    made_.push_back(std::move(page));
    pages_[number].store(made_.back().get(), std::memory_order_release);
    return *made_.back();
  }

  std::array<std::pair<Regex, CharacterClass>, 3> kinds_{{{Regex(R"(\p{L}+)", RegexRules::rust), CharacterClass::letter},
                                                          {Regex(R"(\p{N}+)", RegexRules::rust), CharacterClass::number},
                                                          {Regex(R"(\s+)", RegexRules::rust), CharacterClass::space}}};
  std::array<std::atomic<const Page*>, 0x110000 / characters_of_page> pages_{};
  std::mutex mutex_;
  std::vector<std::unique_ptr<const Page>> made_;
};

}  // namespace

std::optional<KnownPattern> known_pattern_of(std::string_view pattern) {
  if (pattern == patterns::gpt2) return KnownPattern{.is_gpt2 = true};
  if (pattern == patterns::cl100k) return KnownPattern{};
  if (pattern == patterns::qwen2) return KnownPattern{.most_digits = 1};
  return {};
}

CharacterClass class_beyond_ascii(char32_t character) {
  static CharacterClasses classes;
  return classes.of(character);
}

}  // namespace trireme::tokenizers

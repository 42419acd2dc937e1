#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <bitset>
#include <memory>
#include <utility>
#include <vector>

#include "tokenizers/text/byte_kinds.hpp"
#include "tokenizers/text/characters.hpp"
#include "tokenizers/text/normalizer.hpp"
#include "tokenizers/text/utf8.hpp"

namespace trireme::tokenizers {
namespace {

constexpr std::size_t characters = 0x110000;

// Characters that Unicode composes, decomposes or reorders only since a version after 9. Other tokenizers leave them unchanged.
// Computed by tests/reference/generator/tokenizer_files.py.
constexpr auto later_ranges = std::to_array<CharacterRange>(
    {{0x7FD, 0x7FD},     {0x898, 0x89F},     {0x8CA, 0x8D3},     {0x9FE, 0x9FE},     {0xC3C, 0xC3C},     {0xD3B, 0xD3C},
     {0xEBA, 0xEBA},     {0x1715, 0x1715},   {0x1ABF, 0x1ACE},   {0x1DF6, 0x1DFA},   {0x32FF, 0x32FF},   {0xA7F2, 0xA7F4},
     {0xA82C, 0xA82C},   {0xAB69, 0xAB69},   {0x10781, 0x10785}, {0x10787, 0x107B0}, {0x107B2, 0x107BA}, {0x10D24, 0x10D27},
     {0x10EAB, 0x10EAC}, {0x10F46, 0x10F50}, {0x10F82, 0x10F85}, {0x11070, 0x11070}, {0x1133B, 0x1133B}, {0x1145E, 0x1145E},
     {0x11839, 0x1183A}, {0x11938, 0x11938}, {0x1193D, 0x1193E}, {0x11943, 0x11943}, {0x119E0, 0x119E0}, {0x11A34, 0x11A34},
     {0x11A47, 0x11A47}, {0x11A99, 0x11A99}, {0x11D42, 0x11D42}, {0x11D44, 0x11D45}, {0x11D97, 0x11D97}, {0x16FF0, 0x16FF1},
     {0x1E130, 0x1E136}, {0x1E2AE, 0x1E2AE}, {0x1E2EC, 0x1E2EF}, {0x1F16C, 0x1F16C}, {0x1FBF0, 0x1FBF9}});

int options_of(UnicodeForm form) {
  const bool composes = form == UnicodeForm::nfc || form == UnicodeForm::nfkc;
  const bool is_compatible = form == UnicodeForm::nfkc || form == UnicodeForm::nfkd;
  return UTF8PROC_STABLE | (composes ? UTF8PROC_COMPOSE : UTF8PROC_DECOMPOSE) | (is_compatible ? UTF8PROC_COMPAT : 0);
}

using Characters = std::vector<utf8proc_int32_t>;

int combining_class(utf8proc_int32_t character) { return utf8proc_get_property(character)->combining_class; }

// Writes the normal form of `from`, valid UTF-8. Sorts marks itself, since utf8proc's sort is quadratic in their number.
void normal_form(std::string_view from, int options, Characters& to) {
  const auto option = static_cast<utf8proc_option_t>(options);
  to.clear();
  for (std::size_t at = 0; at < from.size(); at += size_of_character(from[at])) {
    std::array<utf8proc_int32_t, 32> parts{};
    int bound = 0;
    const auto count = utf8proc_decompose_char(static_cast<utf8proc_int32_t>(character_at(from.data() + at)), parts.data(),
                                               std::ssize(parts), option, &bound);
    to.insert(to.end(), parts.begin(), parts.begin() + count);
  }
  for (auto begin = to.begin(); begin != to.end();) {
    const auto is_starter = [](utf8proc_int32_t character) { return combining_class(character) == 0; };
    begin = std::find_if_not(begin, to.end(), is_starter);
    const auto end = std::find_if(begin, to.end(), is_starter);
    std::stable_sort(begin, end, [](auto a, auto b) { return combining_class(a) < combining_class(b); });
    begin = end;
  }
  to.resize(static_cast<std::size_t>(utf8proc_normalize_utf32(to.data(), std::ssize(to), option)));
}

// How a normal form treats characters.
struct FormTable {
  explicit FormTable(UnicodeForm form) {
    const int options = options_of(form);
    const bool composes = (options & UTF8PROC_COMPOSE) != 0;
    Characters found;
    std::string text;
    for (char32_t character = 0x80; character < characters; ++character) {
      const bool is_surrogate = character >= 0xD800 && character < 0xE000;
      if (is_surrogate) continue;
      const auto* const properties = utf8proc_get_property(static_cast<utf8proc_int32_t>(character));
      const bool is_hangul = character >= 0xAC00 && character <= 0xD7A3;
      if (properties->combining_class != 0) changes[character] = true;
      if (properties->decomp_seqindex == UINT16_MAX && !is_hangul) continue;
      text.clear();
      append_character(character, text);
      normal_form(text, options, found);
      if (found.size() != 1 || static_cast<char32_t>(found[0]) != character) changes[character] = true;
      if (!composes || is_hangul) continue;
      // Characters that combine with the previous one.
      normal_form(text, UTF8PROC_STABLE | UTF8PROC_DECOMPOSE, found);
      for (std::size_t at = 1; at < found.size(); ++at) joins[static_cast<std::size_t>(found[at])] = true;
    }
    if (composes) {
      for (char32_t vowel = 0x1161; vowel <= 0x1175; ++vowel) joins[vowel] = true;
      for (char32_t last = 0x11A8; last <= 0x11C2; ++last) joins[last] = true;
    }
    changes |= joins;
    for (char32_t character = 0x80; character < characters; ++character) {
      if (!changes[character]) continue;
      text.clear();
      append_character(character, text);
      normal_form(text, (options & ~UTF8PROC_COMPOSE) | UTF8PROC_DECOMPOSE, found);
      const bool is_mark = combining_class(found[0]) != 0;
      continues[character] = is_mark || joins[static_cast<std::size_t>(found[0])];
    }
    for (const CharacterRange& range : later_ranges) {
      for (char32_t character = range.first; character <= range.last; ++character) changes[character] = false;
    }
  }

  std::bitset<characters> changes;    // change, or may change after others
  std::bitset<characters> continues;  // continue the previous character: if they change, that may change too

 private:
  std::bitset<characters> joins;
};

// The number of equal bytes at the begin, in whole characters.
std::size_t same_at_begin(std::string_view a, std::string_view b) {
  std::size_t same = 0;
  while (same < a.size()) {
    const std::size_t next = same + size_of_character(a[same]);
    if (a.substr(same, next - same) != b.substr(std::min(same, b.size()), next - same)) break;
    same = next;
  }
  return same;
}

std::size_t same_at_end(std::string_view a, std::string_view b) {
  std::size_t same = 0;
  for (std::size_t at = 1; at <= std::min(a.size(), b.size()) && a[a.size() - at] == b[b.size() - at]; ++at) {
    if ((static_cast<unsigned char>(a[a.size() - at]) & 0xC0) != 0x80) same = at;
  }
  return same;
}

template <UnicodeForm form>
const FormTable& table() {
  static const FormTable of_form(form);
  return of_form;
}

const FormTable& table_of(UnicodeForm form) {
  switch (form) {
    case UnicodeForm::nfc: return table<UnicodeForm::nfc>();
    case UnicodeForm::nfd: return table<UnicodeForm::nfd>();
    case UnicodeForm::nfkc: return table<UnicodeForm::nfkc>();
    default: return table<UnicodeForm::nfkd>();
  }
}

class UnicodeNormalizer : public Normalizer {
 public:
  explicit UnicodeNormalizer(UnicodeForm form) : options_(options_of(form)), table_(table_of(form)) {}

  void normalize(TracedText& traced) const override {
    const std::string_view text = traced.text();
    std::size_t before = 0;
    std::size_t at = next_change(text, 0, before);
    if (at == text.size()) return;
    TracedText::Rewriter to(traced);
    std::size_t done = 0;
    Characters found;
    std::string segment;
    while (at < text.size()) {
      // The segment: the previous character, if this one may join it, or this one, and the characters that continue it.
      const std::size_t begin = before;
      std::size_t end = begin + size_of_character(text[begin]);
      while (end < text.size() && continues(text, end)) end += size_of_character(text[end]);
      normal_form(text.substr(begin, end - begin), options_, found);
      segment.clear();
      for (const auto character : found) append_character(static_cast<char32_t>(character), segment);
      // Keeps what is equal at both ends, with its sources.
      const std::string_view was = text.substr(begin, end - begin);
      const std::size_t head = same_at_begin(was, segment);
      const std::size_t tail = same_at_end(was.substr(head), std::string_view(segment).substr(head));
      to.keep(done, begin + head);
      if (head + tail < std::max(was.size(), segment.size())) {
        to.replace(begin + head, end - tail, std::string_view(segment).substr(head, segment.size() - head - tail));
      }
      to.keep(end - tail, end);
      done = end;
      at = next_change(text, end, before);
    }
    to.keep(done, text.size());
    traced.become(std::move(to));
  }

 private:
  bool changes(std::string_view text, std::size_t at) const {
    return static_cast<unsigned char>(text[at]) >= 0x80 && table_.changes[character_at(text.data() + at)];
  }
  bool continues(std::string_view text, std::size_t at) const {
    return changes(text, at) && table_.continues[character_at(text.data() + at)];
  }

  // The first character from `at` on that changes. Sets `before` to the previous character if it may join that, otherwise to
  // itself.
  std::size_t next_change(std::string_view text, std::size_t at, std::size_t& before) const {
    before = at;
    while (at < text.size() && !changes(text, at)) {
      const std::size_t end = end_of_ascii(text, at);
      before = end > at ? end - 1 : at;
      at = before + size_of_character(text[before]);
    }
    if (before == at || at == text.size()) return at;
    if (!continues(text, at) || lies_in(later_ranges, character_at(text.data() + before))) before = at;
    return at;
  }

  int options_;
  const FormTable& table_;
};

class LowercaseNormalizer : public Normalizer {
 public:
  void normalize(TracedText& traced) const override {
    const std::string_view text = traced.text();
    TracedText::Rewriter to(traced);
    std::size_t done = 0;
    std::string lower;
    for (std::size_t at = 0; at < text.size();) {
      if (const std::size_t end = end_of_ascii(text, at); end > at) {
        to.keep(done, at);
        for (char& letter : to.keep(at, end)) letter = static_cast<char>(letter | (letter >= 'A' && letter <= 'Z' ? 0x20 : 0));
        done = at = end;
        continue;
      }
      const std::size_t end = at + size_of_character(text[at]);
      const char32_t character = character_at(text.data() + at);
      if (character == 0x130) {
        lower = "i\xCC\x87";  // the only character that becomes two
      } else {
        lower.clear();
        append_character(static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(character))), lower);
      }
      if (lower != text.substr(at, end - at)) {
        to.keep(done, at);
        to.replace(at, end, lower);
        done = end;
      }
      at = end;
    }
    if (done == 0) return;
    to.keep(done, text.size());
    traced.become(std::move(to));
  }
};

bool is_chinese(char32_t character) {
  if (character < 0x3400) return false;
  static constexpr auto blocks = std::to_array<CharacterRange>({{0x3400, 0x4DBF},
                                                                {0x4E00, 0x9FFF},
                                                                {0xF900, 0xFAFF},
                                                                {0x20000, 0x2A6DF},
                                                                {0x2A700, 0x2B73F},
                                                                {0x2B740, 0x2B81F},
                                                                {0x2B920, 0x2CEAF},
                                                                {0x2F800, 0x2FA1F}});
  return lies_in(blocks, character);
}

// BERT's normalization (Devlin et al. 2018, arXiv 1810.04805).
class BertNormalizer : public Normalizer {
 public:
  explicit BertNormalizer(const BertNormalizerOptions& options)
      : options_(options), strips_(options.strip_accents.value_or(options.lowercase)), decompose_(UnicodeForm::nfd) {}

  void normalize(TracedText& text) const override {
    if (options_.clean_text || options_.handle_chinese_chars) clean(text);
    if (strips_) {
      decompose_.normalize(text);
      strip_accents(text);
    }
    if (options_.lowercase) lowercase_.normalize(text);
  }

 private:
  void clean(TracedText& traced) const {
    const std::string_view text = traced.text();
    TracedText::Rewriter to(traced);
    std::size_t done = 0;
    for (std::size_t at = end_of_printable(text, 0), end = 0; at < text.size(); at = end_of_printable(text, end)) {
      end = at + size_of_character(text[at]);
      const char32_t character = character_at(text.data() + at);
      const bool is_dropped = options_.clean_text && (is_other(character) || character == 0xFFFD);
      const bool is_space = options_.clean_text && is_white_space(character);
      const bool is_apart = options_.handle_chinese_chars && is_chinese(character);
      if (!is_dropped && !is_space && !is_apart) continue;
      to.keep(done, at);
      done = end;
      if (is_dropped) continue;
      if (is_space) {
        to.replace(at, end, ' ');
      } else {
        to.replace(at, at, ' ');
        to.keep(at, end);
        to.replace(end, end, ' ');
      }
    }
    if (done == 0) return;
    to.keep(done, text.size());
    traced.become(std::move(to));
  }

  static void strip_accents(TracedText& traced) {
    const std::string_view text = traced.text();
    TracedText::Rewriter to(traced);
    std::size_t done = 0;
    for (std::size_t at = end_of_ascii(text, 0); at < text.size(); at = end_of_ascii(text, at)) {
      const std::size_t end = at + size_of_character(text[at]);
      if (is_nonspacing(character_at(text.data() + at))) {
        to.keep(done, at);
        done = end;
      }
      at = end;
    }
    if (done == 0) return;
    to.keep(done, text.size());
    traced.become(std::move(to));
  }

  BertNormalizerOptions options_;
  bool strips_;
  UnicodeNormalizer decompose_;
  LowercaseNormalizer lowercase_;
};

}  // namespace

std::shared_ptr<const Normalizer> unicode_normalizer(UnicodeForm form) { return std::make_shared<UnicodeNormalizer>(form); }

std::shared_ptr<const Normalizer> lowercase_normalizer() { return std::make_shared<LowercaseNormalizer>(); }

std::shared_ptr<const Normalizer> bert_normalizer(const BertNormalizerOptions& options) {
  return std::make_shared<BertNormalizer>(options);
}

}  // namespace trireme::tokenizers

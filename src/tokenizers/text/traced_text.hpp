#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tokenizers/text/utf8.hpp"
#include "trireme/core/range.hpp"

namespace trireme::tokenizers {

// A part of a text, possibly rewritten. If it is traced, it knows for each of its bytes the source: a range of bytes in the
// whole text. Without rewriting, sources follow from the place.
class TracedText {
 public:
  // The unchanged bytes of the whole text from `begin` on. Keeps a reference to them.
  TracedText(std::string_view part, std::int64_t begin, bool is_traced) : text_(part), begin_(begin), is_traced_(is_traced) {
    if (begin == 0 && !part.empty()) of_first_ = std::min(part.size(), size_of_character(part[0]));
  }

  // A part of another TracedText. Keeps a reference to it.
  TracedText(const TracedText& whole, const Range& part)
      : text_(whole.text_.substr(static_cast<std::size_t>(part.begin), static_cast<std::size_t>(part.count()))),
        begin_(whole.begin_ + part.begin),
        is_traced_(whole.is_traced_),
        of_first_(whole.of_first_in(static_cast<std::size_t>(part.begin), static_cast<std::size_t>(part.end))) {
    if (!whole.sources_.empty()) sources_.assign(whole.sources_.begin() + part.begin, whole.sources_.begin() + part.end);
  }

  std::string_view text() const { return text_; }
  bool is_traced() const { return is_traced_; }
  // Whether the byte comes from the first character of the whole text, traced or not.
  bool comes_from_first(std::int64_t place) const { return static_cast<std::size_t>(place) < of_first_; }

  // The source of the bytes [begin, end) in the whole text.
  Range source(std::int64_t begin, std::int64_t end) const {
    if (sources_.empty()) return {.begin = begin_ + begin, .end = begin_ + end};
    Range all = sources_[static_cast<std::size_t>(begin)];
    for (std::int64_t at = begin + 1; at < end; ++at) {
      const Range& next = sources_[static_cast<std::size_t>(at)];
      all = {.begin = std::min(all.begin, next.begin), .end = std::max(all.end, next.end)};
    }
    return all;
  }

  // Builds the rewritten text piece by piece.
  class Rewriter {
   public:
    explicit Rewriter(const TracedText& from) : from_(from) {}

    // Returns what it has written, which the caller may change before the next call.
    std::span<char> keep(std::size_t begin, std::size_t end) {
      if (of_first_ == size_) of_first_ += from_.of_first_in(begin, end);
      append(from_.text_.substr(begin, end - begin), from_.text_.size() - begin);
      if (from_.is_traced_) {
        for (std::size_t at = begin; at < end; ++at) sources_.push_back(source(at, at + 1));
      }
      return std::span(text_).subspan(size_ - (end - begin), end - begin);
    }
    // Replaces these bytes by `instead`.
    void replace(std::size_t begin, std::size_t end, std::string_view instead) {
      if (of_first_ == size_ && begin < from_.of_first_) of_first_ += instead.size();
      append(instead, instead.size());
      if (!from_.is_traced_) return;
      const Range from = begin == end ? character_from(begin) : source(begin, end);
      sources_.insert(sources_.end(), instead.size(), from);
    }
    void replace(std::size_t begin, std::size_t end, char instead) { replace(begin, end, std::string_view(&instead, 1)); }

   private:
    friend class TracedText;
    Range source(std::size_t begin, std::size_t end) const {
      return from_.source(static_cast<std::int64_t>(begin), static_cast<std::int64_t>(end));
    }
    // The source of text inserted at `at`: the next character, for example the H for a space before "Hello"; at the end of the
    // text, the last character.
    Range character_from(std::size_t at) const {
      if (at < from_.text_.size()) return source(at, at + size_of_character(from_.text_[at]));
      return at == 0 ? Range{.begin = from_.begin_, .end = from_.begin_} : source(at - 1, at);
    }

    // Copies a few bytes without a call of memcpy(). `readable` is the number of bytes that may be read from the begin of
    // `more`.
    void append(std::string_view more, std::size_t readable) {
      const std::size_t bytes = more.size();
      if (text_.size() - size_ < bytes + few)
        text_.resize(std::max(2 * text_.size(), from_.text_.size() * 3 / 2) + bytes + few);
      char* const to = text_.data() + size_;
      size_ += bytes;
      if (bytes <= few && readable >= few) {
        std::memcpy(to, more.data(), few);
      } else if (bytes < 4 && bytes > 0) {
        to[0] = more[0];
        to[bytes / 2] = more[bytes / 2];
        to[bytes - 1] = more[bytes - 1];
      } else {
        more.copy(to, bytes);
      }
    }

    static constexpr std::size_t few = 16;

    const TracedText& from_;
    std::string text_;
    std::size_t size_ = 0;      // bytes of text_ that are written
    std::size_t of_first_ = 0;  // how many of them come from the first character of the whole text
    std::vector<Range> sources_;
  };

  void become(Rewriter&& rewritten) {
    rewritten.text_.resize(rewritten.size_);
    owned_ = std::move(rewritten.text_);
    sources_ = std::move(rewritten.sources_);
    text_ = owned_;
    of_first_ = rewritten.of_first_;
  }

  TracedText(const TracedText&) = delete;
  TracedText& operator=(const TracedText&) = delete;

 private:
  // How many of the bytes [begin, end) come from the first character of the whole text.
  std::size_t of_first_in(std::size_t begin, std::size_t end) const {
    return std::min(end, std::max(of_first_, begin)) - begin;
  }

  std::string_view text_;
  std::int64_t begin_;
  bool is_traced_;
  std::size_t of_first_ = 0;  // bytes at the begin that come from the first character of the whole text
  std::string owned_;
  std::vector<Range> sources_;
};

}  // namespace trireme::tokenizers

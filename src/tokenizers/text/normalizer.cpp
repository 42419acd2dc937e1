#include "tokenizers/text/normalizer.hpp"

namespace trireme::tokenizers {

void Prepend::normalize(TracedText& text) const {
  if (text.text().empty() || (unless_there_ && text.text().starts_with(text_))) return;
  TracedText::Rewriter to(text);
  to.replace(0, 0, text_);
  to.keep(0, text.text().size());
  text.become(std::move(to));
}

void Replace::normalize(TracedText& text) const {
  TracedText::Rewriter to(text);
  std::size_t done = 0;
  const auto replace = [&](std::size_t begin, std::size_t end) {
    to.keep(done, begin);
    to.replace(begin, end, instead_);
    done = end;
  };
  if (const auto* literal = std::get_if<std::string>(&pattern_)) {
    const std::string_view whole = text.text();
    for (std::size_t at = next_of(*literal, whole, 0); at != std::string_view::npos; at = next_of(*literal, whole, done)) {
      replace(at, at + literal->size());
    }
  } else {
    std::get<Regex>(pattern_).for_matches(text.text(), [&](const Range& match) {
      replace(static_cast<std::size_t>(match.begin), static_cast<std::size_t>(match.end));
    });
  }
  if (done == 0) return;
  to.keep(done, text.text().size());
  text.become(std::move(to));
}

}  // namespace trireme::tokenizers

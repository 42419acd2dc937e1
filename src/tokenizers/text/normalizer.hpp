#pragma once

#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "tokenizers/text/regex.hpp"
#include "tokenizers/text/traced_text.hpp"

namespace trireme::tokenizers {

// Rewrites a text before it is split into words. Thread-safe.
class Normalizer {
 public:
  virtual ~Normalizer() = default;
  virtual void normalize(TracedText& text) const = 0;
};

class NormalizerSequence : public Normalizer {
 public:
  explicit NormalizerSequence(std::vector<std::shared_ptr<const Normalizer>> steps) : steps_(std::move(steps)) {}
  void normalize(TracedText& text) const override {
    for (const auto& step : steps_) step->normalize(text);
  }

 private:
  std::vector<std::shared_ptr<const Normalizer>> steps_;
};

// Prepends a text to non-empty texts.
class Prepend : public Normalizer {
 public:
  // With `unless_there`, not to texts that begin with it.
  Prepend(std::string text, bool unless_there) : text_(std::move(text)), unless_there_(unless_there) {}
  void normalize(TracedText& text) const override;

 private:
  std::string text_;
  bool unless_there_;
};

class Replace : public Normalizer {
 public:
  Replace(std::variant<std::string, Regex> pattern, std::string instead)
      : pattern_(std::move(pattern)), instead_(std::move(instead)) {}
  void normalize(TracedText& text) const override;

 private:
  std::variant<std::string, Regex> pattern_;
  std::string instead_;
};

// Unicode normal forms, for the characters of Unicode 9.
enum class UnicodeForm { nfc, nfd, nfkc, nfkd };
std::shared_ptr<const Normalizer> unicode_normalizer(UnicodeForm form);
std::shared_ptr<const Normalizer> lowercase_normalizer();

struct BertNormalizerOptions {
  bool clean_text = true;  // removes control characters, replaces white space by " "
  bool handle_chinese_chars = true;
  std::optional<bool> strip_accents = {};  // default: as `lowercase`
  bool lowercase = true;
};
std::shared_ptr<const Normalizer> bert_normalizer(const BertNormalizerOptions& options);

}  // namespace trireme::tokenizers

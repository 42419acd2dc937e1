#include "tokenizers/training/count_words.hpp"

#include <fmt/format.h>

#include <exception>
#include <limits>
#include <mutex>
#include <thread>
#include <vector>

#include "tokenizers/text/utf8.hpp"

namespace trireme::tokenizers {
namespace {

// A thread's own counts become common ones when they have so many words.
constexpr std::int64_t most_own_words = 1 << 15;

class WordCounting {
 public:
  WordCounting(TextSource& source, const WordSplitter& splitter, bool skip_invalid)
      : source_(source), splitter_(splitter), skip_invalid_(skip_invalid) {}

  // The work of one thread.
  void run() {
    TextSource::Block block;
    WordCounts own;
    CountedWords counted{.counts = nullptr};
    while (const std::int64_t number = take(block)) {
      try {
        source_.for_each(block, [&](std::string_view text, std::int64_t of_text) {
          ++counted.texts;
          if (!check(block, text, of_text)) {
            ++counted.skipped_texts;
            return;
          }
          counted.bytes += static_cast<std::int64_t>(text.size());
          splitter_.split(text, [&](const Range& place) {
            const std::string_view word = part_of(text, place);
            own.add(word, hash_of_word(word, text.size() - static_cast<std::size_t>(place.begin)), 1);
            ++counted.words;
            if (own.size() < most_own_words) return;
            all_.counts->add(own);
            own.clear();
          });
        });
      } catch (...) {
        keep_error(number);
      }
    }
    try {
      all_.counts->add(own);
    } catch (...) {
      keep_error(std::numeric_limits<std::int64_t>::max());
    }
    const std::lock_guard lock(mutex_);
    all_.texts += counted.texts;
    all_.skipped_texts += counted.skipped_texts;
    all_.bytes += counted.bytes;
    all_.words += counted.words;
  }

  CountedWords result() {
    if (error_) std::rethrow_exception(error_);
    return std::move(all_);
  }

 private:
  // The number of the block, from 1 on; 0: there is none, or an error ends the work.
  std::int64_t take(TextSource::Block& block) {
    const std::lock_guard lock(mutex_);
    if (error_) return 0;
    ++blocks_;
    try {
      return source_.next(block) ? blocks_ : 0;
    } catch (...) {
      error_ = std::current_exception();
      block_of_error_ = blocks_;
      return 0;
    }
  }

  // Blocks before this one are taken already: the first error is the same for any number of threads.
  void keep_error(std::int64_t block) {
    const std::lock_guard lock(mutex_);
    if (error_ && block_of_error_ < block) return;
    error_ = std::current_exception();
    block_of_error_ = block;
  }

  bool check(const TextSource::Block& block, std::string_view text, std::int64_t number) const {
    const std::size_t invalid = first_invalid(text);
    if (invalid < text.size()) {
      if (skip_invalid_) return false;
      source_.refuse(block, number,
                     fmt::format("is no UTF-8: byte {} of {} is 0x{:02X}", invalid, text.size(),
                                 static_cast<unsigned char>(text[invalid])),
                     "convert it, with iconv for example, or skip such texts");
    }
    if (text.size() > static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max())) {
      source_.refuse(block, number, fmt::format("has {} bytes, too many for one text", text.size()), "split it");
    }
    return true;
  }

  TextSource& source_;
  const WordSplitter& splitter_;
  bool skip_invalid_;
  std::mutex mutex_;
  std::int64_t blocks_ = 0;
  std::exception_ptr error_;
  std::int64_t block_of_error_ = 0;
  CountedWords all_;
};

}  // namespace

CountedWords count_words(TextSource& source, const WordSplitter& splitter, bool skip_invalid, int threads) {
  WordCounting counting(source, splitter, skip_invalid);
  {
    std::vector<std::jthread> others;
    for (int thread = 1; thread < threads; ++thread) others.emplace_back([&counting] { counting.run(); });
    counting.run();
  }
  return counting.result();
}

}  // namespace trireme::tokenizers

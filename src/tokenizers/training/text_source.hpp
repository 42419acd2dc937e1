#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "trireme/tokenizers/training/train_bpe.hpp"

namespace trireme::tokenizers {

// Hands out texts in blocks, so that threads wait for each other seldom.
class TextSource {
 public:
  struct Block {
    std::string bytes;
    std::vector<std::size_t> ends;  // of texts in memory: where each ends
    std::size_t file = 0;
    std::int64_t first = 0;  // the number of its first text or line
  };
  using Visit = std::function<void(std::string_view text, std::int64_t number)>;

  virtual ~TextSource() = default;
  // By one thread at a time. False after the last block.
  virtual bool next(Block& block) = 0;
  // By several threads. Throws Error for a block that has no texts as it should.
  virtual void for_each(const Block& block, const Visit& visit) const = 0;
  // Throws Error about a text of a block.
  [[noreturn]] virtual void refuse(const Block& block, std::int64_t number, const std::string& what,
                                   const std::string& hint) const = 0;
};

std::unique_ptr<TextSource> source_of_files(const TextFiles& files);
std::unique_ptr<TextSource> source_of_texts(std::function<std::optional<std::string>()> next);

}  // namespace trireme::tokenizers

#include "tokenizers/codecs/word_cache.hpp"

#include <sys/mman.h>

#include <memory>
#include <new>

namespace trireme::tokenizers {
namespace {

constexpr std::size_t bytes_of_short = WordCache::Short::count * sizeof(WordCache::Short::Entry);
constexpr std::size_t bytes_of_long = WordCache::Long::count * sizeof(WordCache::Long::Entry);
constexpr std::size_t page = std::size_t{1} << 21;  // a large page, which the processor finds sooner than many small ones
constexpr std::size_t bytes_of_all = bytes_of_short + bytes_of_long;

void* map() {
  void* const memory = mmap(nullptr, bytes_of_all + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  return memory;
}

void* aligned(void* memory) {
  std::size_t space = bytes_of_all + page;
  void* const begin = std::align(page, bytes_of_all, memory, space);
  madvise(begin, bytes_of_short, MADV_HUGEPAGE);  // without large pages it goes on with small ones
  return begin;
}

}  // namespace

WordCache::WordCache()
    : memory_(map()), short_words(aligned(memory_)), long_words(static_cast<std::byte*>(aligned(memory_)) + bytes_of_short) {}

WordCache::~WordCache() { munmap(memory_, bytes_of_all + page); }

}  // namespace trireme::tokenizers

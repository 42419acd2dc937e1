#pragma once

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>

#include "trireme/core/error.hpp"

// The inputs of the parsers under test.
namespace trireme::fuzz {

using Bytes = std::span<const std::uint8_t>;

inline std::string_view text_of(Bytes bytes) { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }

// A file in memory.
class MemoryFile {
 public:
  explicit MemoryFile(Bytes bytes) : descriptor_(memfd_create("fuzz", MFD_CLOEXEC)) {
    for (std::size_t done = 0; done < bytes.size();) {
      const ssize_t count = write(descriptor_, bytes.data() + done, bytes.size() - done);
      if (count <= 0) throw std::runtime_error("no file in memory");
      done += static_cast<std::size_t>(count);
    }
  }
  ~MemoryFile() { close(descriptor_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  std::filesystem::path path() const { return fmt::format("/proc/self/fd/{}", descriptor_); }

  // Under a name, which it keeps until it has another content.
  void link_to(const std::filesystem::path& name) const {
    std::filesystem::remove(name);
    std::filesystem::create_symlink(path(), name);
  }

 private:
  int descriptor_;
};

inline void check(bool holds, const char* what) {
  if (!holds) throw std::logic_error(what);
}

template <typename Action>
void answer(const Action& action) {
  try {
    action();
  } catch (const Error&) {
  }
}

}  // namespace trireme::fuzz

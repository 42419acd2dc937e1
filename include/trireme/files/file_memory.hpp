#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <stdexcept>
#include <vector>

#include "trireme/core/export.hpp"
#include "trireme/files/location.hpp"

namespace trireme TRIREME_EXPORT {

namespace detail {
[[noreturn]] void refuse_memory(std::uint64_t bytes, const Location& file);
}  // namespace detail

// Memory for bytes of a file, not initialized. Throws Error{out_of_memory} with the file and the count if there is none: a
// header or a server may state any size.
std::shared_ptr<std::byte[]> memory_for(std::uint64_t bytes, const Location& file);

// Memory for elements of a file, all zero. Throws the same error.
template <typename T>
std::vector<T> elements_for(std::uint64_t count, const Location& file) {
  try {
    return std::vector<T>(static_cast<std::size_t>(count));
  } catch (const std::bad_alloc&) {
  } catch (const std::length_error&) {
  }
  detail::refuse_memory(count * sizeof(T), file);
}

}  // namespace trireme

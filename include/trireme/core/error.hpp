#pragma once

#include <fmt/core.h>

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

#include "trireme/core/export.hpp"

namespace trireme TRIREME_EXPORT {

enum class ErrorCode : std::uint8_t {
  invalid_argument,  // the caller's values are wrong
  io,                // the operating system reported an error: see error_number
  corrupt_file,      // a file's content breaks its format
  not_available,     // this build or machine does not support the operation
  out_of_memory,
  rank_mismatch,  // ranks disagree on what to do or on what they hold
  peer_failed,    // another rank failed first: the message has that rank's error
  timeout,        // a deadline passed while waiting for other ranks
  diverged,       // a loss or gradient is inf or nan, or replicas hold different values
  internal,
};

std::string_view name_of(ErrorCode code);

// The fields of an error. Only `code` and `message` are required; what() also shows the others that are set.
struct ErrorFields {
  ErrorCode code = ErrorCode::internal;
  std::string message;         // what happened and where
  int rank = -1;               // the rank on which it happened
  std::string operation = {};  // the collective, file or library call
  std::uint64_t sequence = 0;  // the collective's number in its group, from 1
  std::string name = {};       // the parameter, tensor or option
  std::string path = {};       // the file
  int error_number = 0;        // errno
  std::string wanted = {};
  std::string had = {};
  std::string hint = {};  // what to do
};

// The exception type of the library. what() has all set fields in one text.
class Error : public std::runtime_error {
 public:
  explicit Error(ErrorFields fields);

  const ErrorFields& fields() const noexcept { return fields_; }
  ErrorCode code() const noexcept { return fields_.code; }

 private:
  ErrorFields fields_;
};

namespace detail {
// fmt 9 has no get(), fmt 12 deprecates the conversion.
template <typename Format>
fmt::string_view text_of(const Format& format) {
  if constexpr (requires { format.get(); }) {
    return format.get();
  } else {
    return format;
  }
}

[[noreturn]] void throw_invalid_argument(fmt::string_view format, fmt::format_args args);
}  // namespace detail

// Throws Error{invalid_argument} with the formatted text if `ok` is false.
template <typename... Args>
void require(bool ok, fmt::format_string<Args...> format, Args&&... args) {
  if (!ok) [[unlikely]] {
    detail::throw_invalid_argument(detail::text_of(format), fmt::make_format_args(args...));
  }
}

}  // namespace trireme

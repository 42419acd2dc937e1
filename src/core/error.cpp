#include "trireme/core/error.hpp"

#include <fmt/format.h>

#include <system_error>
#include <utility>

namespace trireme {
namespace {

std::string describe(const ErrorFields& fields) {
  std::string text = fields.message;
  const auto add = [&text](std::string_view label, std::string_view value) {
    if (!value.empty()) text += fmt::format("; {}{}", label, value);
  };
  if (fields.rank >= 0) add("rank ", std::to_string(fields.rank));
  add("in ", fields.operation);
  if (fields.sequence > 0) add("call #", std::to_string(fields.sequence));
  add("name ", fields.name);
  add("file ", fields.path);
  if (fields.error_number != 0) add("system error: ", std::generic_category().message(fields.error_number));
  add("wanted ", fields.wanted);
  add("had ", fields.had);
  add("", fields.hint);
  return text;
}

}  // namespace

std::string_view name_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::invalid_argument: return "invalid argument";
    case ErrorCode::io: return "input/output";
    case ErrorCode::corrupt_file: return "corrupt file";
    case ErrorCode::not_available: return "not available";
    case ErrorCode::out_of_memory: return "out of memory";
    case ErrorCode::rank_mismatch: return "rank mismatch";
    case ErrorCode::peer_failed: return "peer failed";
    case ErrorCode::timeout: return "timeout";
    case ErrorCode::diverged: return "diverged";
    case ErrorCode::internal: return "internal";
  }
  return "unknown";
}

Error::Error(ErrorFields fields) : std::runtime_error(describe(fields)), fields_(std::move(fields)) {}

namespace detail {

void throw_invalid_argument(fmt::string_view format, fmt::format_args args) {
  throw Error({.code = ErrorCode::invalid_argument, .message = fmt::vformat(format, args)});
}

}  // namespace detail
}  // namespace trireme

#include "files/remote/remote_input.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <optional>
#include <thread>
#include <utility>

#include "files/remote/patience.hpp"
#include "files/remote/read_ahead.hpp"
#include "trireme/core/error.hpp"
#include "trireme/core/first_exception.hpp"

namespace trireme::remote {
namespace {

constexpr std::size_t part_bytes = std::size_t{4} << 20;        // of a read over several connections
constexpr std::size_t least_progress = std::size_t{256} << 10;  // of an attempt that failed

void read_part(const HttpClient& client, const Location& location, const RangeSource& source, std::span<std::byte> into,
               std::uint64_t offset) {
  const std::uint64_t end = offset + into.size();
  Patience patience(client.options(), location, fmt::format("bytes [{}, {}) cannot be read", offset, end));
  while (!into.empty()) {
    std::size_t received = 0;
    std::optional<std::uint64_t> at;  // of the next byte to come
    const auto take = [&](const HttpAnswer& answer, std::span<const std::byte> bytes) {
      if (!at) at = source.first_byte(answer, offset);
      const std::size_t passed_over = static_cast<std::size_t>(std::min<std::uint64_t>(offset + received - *at, bytes.size()));
      const auto wanted = bytes.subspan(passed_over, std::min(bytes.size() - passed_over, into.size() - received));
      if (!wanted.empty()) std::memcpy(into.data() + received, wanted.data(), wanted.size());
      received += wanted.size();
      *at += passed_over + wanted.size();
      return passed_over + wanted.size() == bytes.size();
    };
    try {
      const HttpAnswer answer = client.perform(source.request(offset, end), take);
      if (received < into.size()) {
        if (!at) source.first_byte(answer, offset);
        throw FailedAttempt(fmt::format("the answer ended after {} of {} bytes", received, into.size()), EIO);
      }
    } catch (const FailedAttempt& failure) {
      if (received < into.size()) patience.failed(failure, received >= least_progress);
    }
    into = into.subspan(received);
    offset += received;
  }
}

// What a file was when it was opened.
struct Seen {
  std::uint64_t size = 0;
  std::string tag;  // its ETag; empty: none
  std::string modified;

  bool has_strong_tag() const { return tag.starts_with('"'); }
};

[[noreturn]] void refuse_changed(const Location& location, std::string wanted, std::string had) {
  throw Error({.code = ErrorCode::io,
               .message = "the file has changed since it was opened",
               .path = location.string(),
               .error_number = EBUSY,
               .wanted = std::move(wanted),
               .had = std::move(had),
               .hint = "start again, and write changed data under another name"});
}

void check_unchanged(const Seen& seen, const AnswerHead& head, const Location& location) {
  const auto compare = [&](const std::string& first, std::string_view now, const char* name) {
    if (!first.empty() && !now.empty() && first != now) {
      refuse_changed(location, fmt::format("{} {}", name, first), fmt::format("{} {}", name, now));
    }
  };
  compare(seen.tag, head.field("etag"), "ETag");
  if (seen.tag.empty()) compare(seen.modified, head.field("last-modified"), "Last-Modified");
}

Seen seen_in(const HttpAnswer& answer, std::uint64_t size) {
  return {
      .size = size, .tag = std::string(answer.head.field("etag")), .modified = std::string(answer.head.field("last-modified"))};
}

// A server may know no HEAD, or allow GET alone as those with signed URLs do, or say no size there.
std::optional<Seen> look_by_head(const HttpClient& client, const Location& location, const RemoteFile& file,
                                 const std::string& doing) {
  const HttpAnswer answer = send(
      client, location, doing, [&] { return file.request("HEAD", {}); }, file.corrects);
  const int status = answer.head.status;
  if (status == 404 || status == 410) refuse_status(location, doing, status);
  const auto size = answer.head.content_length();
  return status == 200 && size ? std::optional(seen_in(answer, *size)) : std::nullopt;
}

Seen look_by_first_byte(const HttpClient& client, const Location& location, const RemoteFile& file, const std::string& doing) {
  Patience patience(client.options(), location, doing);
  for (int corrections = 0;;) {
    try {
      const auto request = file.request("GET", {"Range: bytes=0-0"});
      const HttpAnswer answer = client.perform(request, [](const HttpAnswer&, std::span<const std::byte>) { return false; });
      if (file.corrects && corrections < 3 && file.corrects(answer)) {
        ++corrections;
        continue;
      }
      check_passing(answer);
      const int status = answer.head.status;
      const auto range = parse_content_range(answer.head.field("content-range"));
      if ((status == 200 || status == 206 || status == 416) && range && range->size) return seen_in(answer, *range->size);
      if (status == 200 && answer.head.content_length()) return seen_in(answer, *answer.head.content_length());
      if (status < 200 || status > 299) refuse_status(location, doing, status, file.said_by(answer));
      throw Error({.code = ErrorCode::io,
                   .message = "the server does not say how large the file is",
                   .path = location.string(),
                   .hint = "copy it to a place whose server does, or to this machine"});
    } catch (const FailedAttempt& failure) {
      patience.failed(failure);
    }
  }
}

Seen look_at(const HttpClient& client, const Location& location, const RemoteFile& file, const std::string& doing) {
  auto by_head = look_by_head(client, location, file, doing);
  Seen seen = by_head ? *std::move(by_head) : look_by_first_byte(client, location, file, doing);
  checked_size(seen.size, location);
  return seen;
}

class RemoteInput final : public InputFile {
 public:
  RemoteInput(std::shared_ptr<const HttpClient> client, Location location, RemoteFile file)
      : client_(std::move(client)),
        location_(std::move(location)),
        file_(std::move(file)),
        seen_(look_at(*client_, location_, file_, "the file cannot be opened")),
        source_{.request = [this](std::uint64_t begin, std::uint64_t end) { return request(begin, end); },
                .first_byte = [this](const HttpAnswer& answer, std::uint64_t begin) { return first_byte(answer, begin); }} {}

  std::uint64_t size() const override { return seen_.size; }
  std::string version() const override {
    if (seen_.has_strong_tag()) return "ETag " + seen_.tag;
    return seen_.tag.empty() && seen_.modified.empty() ? std::string() : fmt::format("{} {}", seen_.tag, seen_.modified);
  }

  void read_at(std::span<std::byte> into, std::uint64_t offset) const override {
    read_range(*client_, location_, source_, into, offset);
  }

 private:
  HttpRequest request(std::uint64_t begin, std::uint64_t end) const {
    std::vector<std::string> headers{fmt::format("Range: bytes={}-{}", begin, end - 1)};
    if (seen_.has_strong_tag()) headers.push_back("If-Match: " + seen_.tag);
    return file_.request("GET", std::move(headers));
  }

  std::uint64_t first_byte(const HttpAnswer& answer, std::uint64_t begin) const {
    if (file_.corrects && file_.corrects(answer)) throw FailedAttempt("the server asks for another request", EAGAIN);
    check_passing(answer);
    const int status = answer.head.status;
    const auto bytes_now = [](std::uint64_t size) { return fmt::format("{} bytes", size); };
    const auto range = parse_content_range(answer.head.field("content-range"));
    if (status == 412) refuse_changed(location_, "ETag " + seen_.tag, "another");
    if (status == 416)
      refuse_changed(location_, bytes_now(seen_.size), range && range->size ? bytes_now(*range->size) : "fewer");
    if (status != 200 && status != 206) {
      refuse_status(location_, fmt::format("byte {} cannot be read", begin), status, file_.said_by(answer));
    }
    check_unchanged(seen_, answer.head, location_);
    const bool is_part = status == 206 || range;  // some servers give a part with status 200
    const auto size = !is_part ? answer.head.content_length() : range ? range->size : std::nullopt;
    if (size && *size != seen_.size) refuse_changed(location_, bytes_now(seen_.size), bytes_now(*size));
    if (!is_part) return 0;
    if (!range || range->begin != begin) {
      throw Error({.code = ErrorCode::corrupt_file,
                   .message = fmt::format("bytes from {} on were asked for, and the server gave others", begin),
                   .path = location_.string(),
                   .had = std::string(answer.head.field("content-range"))});
    }
    return begin;
  }

  std::shared_ptr<const HttpClient> client_;
  Location location_;
  RemoteFile file_;
  Seen seen_;
  RangeSource source_;
};

}  // namespace

std::string checked_name(std::string name, const Location& folder) {
  if (name.find('/') == std::string::npos && name != "." && name != "..") return name;
  throw Error({.code = ErrorCode::corrupt_file,
               .message = fmt::format("the server says that \"{}\" lies in the folder", name),
               .path = folder.string()});
}

std::uint64_t checked_size(std::uint64_t bytes, const Location& location) {
  constexpr std::uint64_t most = std::uint64_t{1} << 60;
  if (bytes <= most) return bytes;
  throw Error({.code = ErrorCode::corrupt_file,
               .message = fmt::format("the server says that the file has {} bytes", bytes),
               .path = location.string(),
               .wanted = "2^60 bytes at most",
               .hint = "look whether this is the server of the file"});
}

void check_range_in(std::uint64_t size, std::size_t bytes, std::uint64_t offset, const Location& location) {
  if (offset <= size && bytes <= size - offset) return;
  throw Error({.code = ErrorCode::corrupt_file,
               .message = fmt::format("the file ends at byte {}, {} bytes from {} on are needed", size, bytes, offset),
               .path = location.string()});
}

void read_range(const HttpClient& client, const Location& location, const RangeSource& source, std::span<std::byte> into,
                std::uint64_t offset) {
  const std::size_t parts = (into.size() + part_bytes - 1) / part_bytes;
  const std::size_t threads = std::min(parts, static_cast<std::size_t>(client.options().connections));
  if (threads < 2) return read_part(client, location, source, into, offset);
  FirstException thrown;
  std::atomic<std::size_t> next{0};
  std::atomic<bool> has_failed{false};
  const auto work = [&] {
    thrown.guard([&] {
      try {
        for (std::size_t part = next++; part < parts && !has_failed; part = next++) {
          const std::size_t begin = part * part_bytes;
          read_part(client, location, source, into.subspan(begin, std::min(part_bytes, into.size() - begin)), offset + begin);
        }
      } catch (...) {
        has_failed = true;
        throw;
      }
    });
  };
  {
    std::vector<std::jthread> others;
    for (std::size_t index = 1; index < threads; ++index) others.emplace_back(work);
    work();
  }
  thrown.rethrow();
}

std::unique_ptr<InputFile> open_remote(std::shared_ptr<const HttpClient> client, const Location& location, RemoteFile file) {
  return with_read_ahead(std::make_unique<RemoteInput>(std::move(client), location, std::move(file)), location);
}

bool is_remote_file(const HttpClient& client, const Location& location, const RemoteFile& file) {
  try {
    look_at(client, location, file, "it cannot be looked for");
    return true;
  } catch (const Error& error) {
    if (error.fields().error_number != ENOENT) throw;
    return false;
  }
}

}  // namespace trireme::remote

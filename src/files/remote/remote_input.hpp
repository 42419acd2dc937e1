#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "files/remote/http_client.hpp"
#include "trireme/files/file_system.hpp"

namespace trireme::remote {

// Asks for bytes [begin, end) of a file, and looks at the head of what comes.
struct RangeSource {
  std::function<HttpRequest(std::uint64_t begin, std::uint64_t end)> request;
  // The byte with which the body of status 2xx begins, at most `begin`. Throws FailedAttempt where the attempt has to be made
  // again, otherwise an Error.
  std::function<std::uint64_t(const HttpAnswer& answer, std::uint64_t begin)> first_byte;
};

// Fills `into` from byte `offset` on. What has come before an attempt failed is kept; many bytes come over several connections.
void read_range(const HttpClient& client, const Location& location, const RangeSource& source, std::span<std::byte> into,
                std::uint64_t offset);

// How a request for a file is made: with a method, and with these headers beside those that it needs anyway.
using RequestOf = std::function<HttpRequest(const std::string& method, std::vector<std::string> headers)>;
// See send() (patience.hpp).
using Corrects = std::function<bool(const HttpAnswer&)>;
// What the body of an answer says against it, for messages.
using SaidBy = std::function<std::string(const HttpAnswer&)>;

struct RemoteFile {
  RequestOf request;
  Corrects corrects = {};
  SaidBy said_by = [](const HttpAnswer&) { return std::string(); };
};

// Opens a file of which HTTP tells size, ETag and ranges. The ETag seen first is asked for from then on.
std::unique_ptr<InputFile> open_remote(std::shared_ptr<const HttpClient> client, const Location& location, RemoteFile file);

// Whether there is a file. What can't be told is an Error.
bool is_remote_file(const HttpClient& client, const Location& location, const RemoteFile& file);

// The name of an entry of a folder. Error{corrupt_file} where it leads elsewhere.
std::string checked_name(std::string name, const Location& folder);

// A size that a server states. Error{corrupt_file} where no file is so large, so that sums with it do not overflow.
std::uint64_t checked_size(std::uint64_t bytes, const Location& location);

// Error{corrupt_file} where the file ends before.
void check_range_in(std::uint64_t size, std::size_t bytes, std::uint64_t offset, const Location& location);

}  // namespace trireme::remote

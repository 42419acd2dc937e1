#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "trireme/core/export.hpp"
#include "trireme/files/file_system.hpp"

namespace trireme TRIREME_EXPORT {

// How long a server is borne with. What may pass is tried again: connections that are refused, reset or stall, answers that end
// too early, and the statuses 408, 429, 500, 502, 503 and 504.
struct RemoteOptions {
  int attempts = 10;  // in a row that bring nothing; then an Error says what the last one met
  std::chrono::milliseconds first_pause{
      100};  // before the second attempt; each later one is at most twice as long as the one before it
  std::chrono::milliseconds longest_pause{10'000};  // any length up to it is drawn
  std::chrono::seconds stall{20};  // an attempt ends when for so long less than `slowest` bytes a second have come
  std::int64_t slowest = 1000;
  int connections = 8;  // at the same time for one read or write of many bytes
};

// Of "http://host/name" and "https://host/name": reads. The server is asked for ranges; one that gives none is read from the
// beginning of the file on. A file that changes after it was opened is an Error. Error{not_available}, here and below, where
// the library was built without libcurl, OpenSSL or pugixml.
std::shared_ptr<FileSystem> http_file_system(const RemoteOptions& options = {});

// What is empty is taken from the environment (docs/locations.md).
struct S3Options {
  std::string endpoint = {};  // "http://127.0.0.1:9000", whose buckets are its folders; none: Amazon's of the region
  std::string region = {};
  std::string access_key = {};  // without it the chain of the environment, the shared file, and the container's endpoint
  std::string secret_key = {};
  std::string session_token = {};
  std::int64_t part_bytes = std::int64_t{8} << 20;  // of an upload; 5 MiB or more. A larger file has larger ones
  std::int64_t copy_bytes = std::int64_t{1}
                            << 30;  // of a copy that the server makes; a larger file is copied in pieces of this size
  RemoteOptions remote = {};
};

// Of "s3://bucket/name": an object store (FileSystem::is_object_store) that reads and writes.
std::shared_ptr<FileSystem> s3_file_system(const S3Options& options = {});

// Of "webhdfs://host:port/name": reads, as the user that HADOOP_USER_NAME names.
std::shared_ptr<FileSystem> webhdfs_file_system(const RemoteOptions& options = {});

}  // namespace trireme

#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "trireme/core/export.hpp"
#include "trireme/files/file_system.hpp"

namespace trireme TRIREME_EXPORT {

// How often and how long requests to a failing server are repeated. A request is tried again if its connection is refused, is
// reset or stalls, if the answer ends too early, and after the statuses 408, 429, 500, 502, 503 and 504.
struct RemoteOptions {
  int attempts = 10;  // in a row that get no byte; then an Error reports the last failure
  // The pause before the second attempt. Each later pause is at most twice as long; its length is random.
  std::chrono::milliseconds first_pause{100};
  std::chrono::milliseconds longest_pause{10'000};
  // An attempt ends when fewer than `slowest` bytes per second have arrived for this time.
  std::chrono::seconds stall{20};
  std::int64_t slowest = 1000;
  int connections = 8;  // used at the same time for one large read or write
};

// The file system of "http://host/name" and "https://host/name", read only. It asks the server for ranges. From a server that
// does not support ranges, it reads the file from the beginning. Throws Error if a file changes after it was opened. All
// functions here throw Error{not_available} in a build that lacks one or more of libcurl, OpenSSL and pugixml.
std::shared_ptr<FileSystem> http_file_system(const RemoteOptions& options = {});

// Empty options are taken from the environment (docs/locations.md).
struct S3Options {
  std::string endpoint = {};  // for example "http://127.0.0.1:9000", with buckets as folders; empty: Amazon's, by region
  std::string region = {};
  std::string access_key = {};  // empty: from the environment, the shared file, or the container's endpoint, in this order
  std::string secret_key = {};
  std::string session_token = {};
  std::int64_t part_bytes = std::int64_t{8}
                            << 20;  // size of the parts of an upload, 5 MiB or more; very large files use larger parts
  std::int64_t copy_bytes = std::int64_t{1} << 30;  // the server copies larger files in pieces of this size
  RemoteOptions remote = {};
};

// The file system of "s3://bucket/name", an object store (FileSystem::is_object_store).
std::shared_ptr<FileSystem> s3_file_system(const S3Options& options = {});

// The file system of "webhdfs://host:port/name", read only. The environment variable HADOOP_USER_NAME names the user.
std::shared_ptr<FileSystem> webhdfs_file_system(const RemoteOptions& options = {});

}  // namespace trireme

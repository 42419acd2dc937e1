#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "files/remote/remote_input.hpp"
#include "files/remote/s3_credentials.hpp"
#include "files/remote/s3_xml.hpp"

namespace trireme::remote {

struct S3Place {
  std::string bucket;
  std::string key;  // empty: the bucket itself
};

// Error{invalid_argument} where it names no bucket.
S3Place place_of(const Location& location);

// What is asked of a place.
struct S3Call {
  std::string method = "GET";
  std::map<std::string, std::string> query = {};
  std::map<std::string, std::string> headers = {};  // by names in small letters
  std::span<const std::byte> body = {};
  bool takes_long = false;  // as a copy
};

// Signs requests, and finds what a server has against one: another region, other clocks, keys that are too old.
class S3Client {
 public:
  explicit S3Client(const S3Options& options);

  const S3Options& options() const noexcept { return options_; }
  const std::shared_ptr<const HttpClient>& http() const noexcept { return http_; }

  // The answer to a call, of any status that does not pass.
  HttpAnswer send(const Location& location, const std::string& doing, const S3Place& place, const S3Call& call) const;
  // Of a status that is none of success it is an Error{io} with what the server says.
  HttpAnswer send_well(const Location& location, const std::string& doing, const S3Place& place, const S3Call& call) const;

  // The key at this location, to read from.
  RemoteFile file_at(const Location& location) const;

  // Every page of what begins with this prefix: keys, and with a delimiter what they begin with up to that.
  void list(const Location& location, const S3Place& prefix, std::string_view delimiter,
            const std::function<void(const S3Listing& page)>& take) const;

  // Signed for one attempt.
  HttpRequest request(const Location& location, const S3Place& place, const S3Call& call) const;

 private:
  bool corrects(const HttpAnswer& answer, const std::string& bucket) const;
  std::string region_of(const std::string& bucket) const;

  S3Options options_;
  std::shared_ptr<const HttpClient> http_;
  std::unique_ptr<S3KeyChain> keys_;
  mutable std::atomic<std::int64_t> seconds_ahead_{0};  // of the server's clock
  mutable std::mutex mutex_;
  mutable std::map<std::string, std::string> regions_;  // of buckets that lie elsewhere
};

[[noreturn]] void refuse_call(const Location& location, const std::string& doing, const HttpAnswer& answer);

}  // namespace trireme::remote

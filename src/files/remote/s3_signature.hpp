#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>

namespace trireme::remote {

struct S3Keys {
  std::string access_key = {};
  std::string secret_key = {};
  std::string session_token = {};

  bool empty() const { return access_key.empty(); }
  bool operator==(const S3Keys&) const = default;
};

// A request before it is signed.
struct S3Request {
  std::string method = "GET";
  std::string host = {};
  std::string path = "/";                           // encoded
  std::map<std::string, std::string> query = {};    // as it is meant
  std::map<std::string, std::string> headers = {};  // by names in small letters
  std::span<const std::byte> body = {};
};

// All but letters, digits, "-", ".", "_" and "~" as %2F; a slash stays where `keeps_slashes`.
std::string s3_encoded(std::string_view text, bool keeps_slashes);
std::string query_text(const std::map<std::string, std::string>& query);  // "list-type=2&prefix=a%2F"

std::string hexadecimal(std::span<const std::uint8_t> bytes);
std::string sha256_of(std::span<const std::byte> bytes);  // in hexadecimal

// Adds the headers of AWS Signature Version 4 (the whole of the body is signed) for the service "s3". `time`: seconds since
// 1970.
void sign(S3Request& request, const S3Keys& keys, std::string_view region, std::int64_t time);

}  // namespace trireme::remote

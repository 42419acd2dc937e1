#include "files/remote/s3_signature.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <array>
#include <cctype>
#include <ctime>
#include <new>
#include <vector>

namespace trireme::remote {
namespace {

using Digest = std::array<std::uint8_t, 32>;

std::span<const std::byte> bytes_of_text(std::string_view text) { return std::as_bytes(std::span(text)); }

Digest digest_of(std::span<const std::byte> bytes) {
  Digest digest{};
  if (EVP_Digest(bytes.data(), bytes.size(), digest.data(), nullptr, EVP_sha256(), nullptr) != 1) throw std::bad_alloc();
  return digest;
}

Digest keyed_digest(std::span<const std::uint8_t> key, std::string_view text) {
  Digest digest{};
  const auto* bytes = reinterpret_cast<const unsigned char*>(text.data());
  if (HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()), bytes, text.size(), digest.data(), nullptr) == nullptr) {
    throw std::bad_alloc();
  }
  return digest;
}

}  // namespace

std::string hexadecimal(std::span<const std::uint8_t> bytes) {
  std::string text;
  for (const std::uint8_t byte : bytes) text += fmt::format("{:02x}", byte);
  return text;
}

std::string sha256_of(std::span<const std::byte> bytes) { return hexadecimal(digest_of(bytes)); }

std::string s3_encoded(std::string_view text, bool keeps_slashes) {
  std::string encoded;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    const bool is_ascii = byte < 0x80;
    if ((is_ascii && std::isalnum(byte) != 0) || std::string_view("-._~").find(c) != std::string_view::npos ||
        (c == '/' && keeps_slashes)) {
      encoded += c;
    } else {
      encoded += fmt::format("%{:02X}", byte);
    }
  }
  return encoded;
}

std::string query_text(const std::map<std::string, std::string>& query) {
  std::string text;
  for (const auto& [name, value] : query) {
    text += fmt::format("{}{}={}", text.empty() ? "" : "&", s3_encoded(name, false), s3_encoded(value, false));
  }
  return text;
}

void sign(S3Request& request, const S3Keys& keys, std::string_view region, std::int64_t time) {
  const std::string date = fmt::format("{:%Y%m%dT%H%M%SZ}", fmt::gmtime(static_cast<std::time_t>(time)));
  const std::string day = date.substr(0, 8);
  const std::string body = sha256_of(request.body);
  request.headers["host"] = request.host;
  request.headers["x-amz-date"] = date;
  request.headers["x-amz-content-sha256"] = body;
  if (!keys.session_token.empty()) request.headers["x-amz-security-token"] = keys.session_token;

  std::string headers, names;
  for (const auto& [name, value] : request.headers) {
    headers += fmt::format("{}:{}\n", name, value);
    names += fmt::format("{}{}", names.empty() ? "" : ";", name);
  }
  const std::string canonical =
      fmt::format("{}\n{}\n{}\n{}\n{}\n{}", request.method, request.path, query_text(request.query), headers, names, body);
  const std::string scope = fmt::format("{}/{}/s3/aws4_request", day, region);
  const std::string to_sign = fmt::format("AWS4-HMAC-SHA256\n{}\n{}\n{}", date, scope, sha256_of(bytes_of_text(canonical)));

  const std::string secret = "AWS4" + keys.secret_key;
  Digest key = keyed_digest({reinterpret_cast<const std::uint8_t*>(secret.data()), secret.size()}, day);
  for (const std::string_view text : {region, std::string_view("s3"), std::string_view("aws4_request")}) {
    key = keyed_digest(key, text);
  }
  request.headers["authorization"] = fmt::format("AWS4-HMAC-SHA256 Credential={}/{},SignedHeaders={},Signature={}",
                                                 keys.access_key, scope, names, hexadecimal(keyed_digest(key, to_sign)));
}

}  // namespace trireme::remote

#include "files/s3_server.hpp"

#include <fmt/format.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <set>
#include <string_view>
#include <utility>

namespace trireme::test {
namespace {

std::string to_hexadecimal(std::string_view bytes) {
  std::string text;
  for (const char byte : bytes) text += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  return text;
}

std::string sha256(const std::string& text) {
  unsigned char digest[32];
  EVP_Digest(text.data(), text.size(), digest, nullptr, EVP_sha256(), nullptr);
  return {reinterpret_cast<const char*>(digest), sizeof digest};
}

std::string hmac(const std::string& key, const std::string& text) {
  unsigned char digest[32];
  HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()), reinterpret_cast<const unsigned char*>(text.data()), text.size(),
       digest, nullptr);
  return {reinterpret_cast<const char*>(digest), sizeof digest};
}

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find(separator, at), text.size());
    parts.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return parts;
}

std::string behind(const std::string& text, const std::string& mark) {
  const std::size_t at = text.find(mark);
  return at == text.npos ? std::string() : text.substr(at + mark.size(), text.find(',', at) - at - mark.size());
}

ServedAnswer refusal(int status, const std::string& code) {
  return {.status = status,
          .body = fmt::format("<?xml version=\"1.0\"?><Error><Code>{}</Code><Message>no</Message></Error>", code)};
}

std::string url_encoded(const std::string& text) {
  std::string encoded;
  for (const char c : text) {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0 || std::string_view("-._~/").find(c) != std::string_view::npos) {
      encoded += c;
    } else if (c == ' ') {
      encoded += '+';
    } else {
      encoded += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
  }
  return encoded;
}

std::time_t seconds_of_date(const std::string& date) {  // "20130524T000000Z"
  std::tm time{};
  strptime(date.c_str(), "%Y%m%dT%H%M%SZ", &time);
  return timegm(&time);
}

}  // namespace

S3Server::S3Server() : http_([this](const ServedRequest& request) { return answer(request); }) {}

std::map<std::string, std::string> S3Server::objects() {
  std::map<std::string, std::string> contents;
  for (const auto& [name, object] : objects_) contents[name] = object.content;
  return contents;
}

std::size_t S3Server::uploads() { return uploads_.size(); }

void S3Server::put(const std::string& name, const std::string& content) { objects_[name] = object_of(content, {}); }

S3Server::Object S3Server::object_of(std::string content, std::string mark) {
  return {.content = std::move(content), .tag = fmt::format("\"tag-{}\"", ++next_), .mark = std::move(mark)};
}

std::optional<ServedAnswer> S3Server::refusal_of(const ServedRequest& request) {
  const std::string authorization = request.header("authorization");
  if (authorization.empty()) return is_public ? std::nullopt : std::optional(refusal(403, "AccessDenied"));
  const std::string date = request.header("x-amz-date");
  if (std::abs(seconds_of_date(date) - http_.now()) > 900) return refusal(403, "RequestTimeTooSkewed");
  const auto scope = split(behind(authorization, "Credential="), '/');
  if (scope.size() != 5 || scope[0] != access_key || scope[4] != "aws4_request") return refusal(403, "InvalidAccessKeyId");
  if (scope[2] != region) {
    ServedAnswer elsewhere = refusal(400, "AuthorizationHeaderMalformed");
    elsewhere.headers["x-amz-bucket-region"] = region;
    return elsewhere;
  }
  if (request.header("x-amz-security-token") != session_token) return refusal(400, "ExpiredToken");
  if (to_hexadecimal(sha256(request.body)) != request.header("x-amz-content-sha256"))
    return refusal(400, "XAmzContentSHA256Mismatch");

  auto query = request.query.empty() ? std::vector<std::string>() : split(request.query, '&');
  std::ranges::sort(query);
  std::string canonical = request.method + "\n" + request.path + "\n";
  for (std::size_t index = 0; index < query.size(); ++index) canonical += (index == 0 ? "" : "&") + query[index];
  canonical += "\n";
  const std::string names = behind(authorization, "SignedHeaders=");
  std::set<std::string> signed_names;
  for (const std::string& name : split(names, ';')) {
    canonical += name + ":" + request.header(name) + "\n";
    signed_names.insert(name);
  }
  for (const auto& [name, value] : request.headers) {
    if ((name == "host" || name.starts_with("x-amz-")) && !signed_names.contains(name)) return refusal(403, "AccessDenied");
  }
  canonical += "\n" + names + "\n" + request.header("x-amz-content-sha256");
  const std::string text =
      "AWS4-HMAC-SHA256\n" + date + "\n" + scope[1] + "/" + scope[2] + "/s3/aws4_request\n" + to_hexadecimal(sha256(canonical));
  const std::string key = hmac(hmac(hmac(hmac(std::string("AWS4") + secret_key, scope[1]), scope[2]), "s3"), "aws4_request");
  if (to_hexadecimal(hmac(key, text)) != behind(authorization, "Signature=")) return refusal(403, "SignatureDoesNotMatch");
  return std::nullopt;
}

ServedAnswer S3Server::answer(const ServedRequest& request) {
  if (auto refused = refusal_of(request)) {
    ++refusals_;
    return *refused;
  }
  const std::string name = decoded_url(request.path).substr(1);
  const std::size_t slash = name.find('/');
  if (slash == name.npos || slash + 1 == name.size()) {
    const std::string bucket = name.substr(0, slash);
    if (bucket == "nowhere") return refusal(404, "NoSuchBucket");
    return request.has_parameter("uploads") ? list_uploads(request, bucket) : list(request, bucket);
  }
  if (request.method == "POST" && request.has_parameter("uploads")) {
    const std::string id = fmt::format("upload-{}", ++next_);
    uploads_[id] = {.name = name, .mark = request.header("x-amz-meta-trireme-write"), .parts = {}};
    return {.body = "<InitiateMultipartUploadResult><UploadId>" + id + "</UploadId></InitiateMultipartUploadResult>"};
  }
  if (request.method == "POST") return complete(request, name);
  if (request.method == "PUT") return request.has_parameter("uploadId") ? put_part(request) : put_object(request, name);
  if (request.method == "DELETE") {
    if (request.has_parameter("uploadId")) {
      uploads_.erase(request.parameter("uploadId"));
    } else {
      objects_.erase(name);
    }
    return {.status = 204};
  }
  return answer_object(request, name);
}

ServedAnswer S3Server::answer_object(const ServedRequest& request, const std::string& name) {
  const auto found = objects_.find(name);
  if (found == objects_.end()) return refusal(404, "NoSuchKey");
  ServedAnswer answer = answer_with(found->second.content, found->second.tag, request);
  if (!found->second.mark.empty()) answer.headers["x-amz-meta-trireme-write"] = found->second.mark;
  return answer;
}

const S3Server::Object* S3Server::source_of(const ServedRequest& request) const {
  const auto found = objects_.find(decoded_url(request.header("x-amz-copy-source")).substr(1));
  return found == objects_.end() ? nullptr : &found->second;
}

ServedAnswer S3Server::put_object(const ServedRequest& request, const std::string& name) {
  if (request.header("if-none-match") == "*") {
    if (!knows_conditions) return refusal(501, "NotImplemented");
    if (objects_.contains(name)) return refusal(412, "PreconditionFailed");
  }
  if (!request.header("x-amz-copy-source").empty()) {
    const Object* source = source_of(request);
    if (source == nullptr) return refusal(404, "NoSuchKey");
    objects_[name] = object_of(source->content, source->mark);
    return {.body = "<CopyObjectResult><ETag>" + objects_[name].tag + "</ETag></CopyObjectResult>"};
  }
  objects_[name] = object_of(request.body, request.header("x-amz-meta-trireme-write"));
  return {.headers = {{"ETag", objects_[name].tag}}};
}

ServedAnswer S3Server::put_part(const ServedRequest& request) {
  const auto upload = uploads_.find(request.parameter("uploadId"));
  if (upload == uploads_.end()) return refusal(404, "NoSuchUpload");
  Object& part = upload->second.parts[std::stoi(request.parameter("partNumber"))];
  if (request.header("x-amz-copy-source").empty()) {
    part = object_of(request.body, {});
    return {.headers = {{"ETag", part.tag}}};
  }
  const Object* source = source_of(request);
  if (source == nullptr || source->tag != request.header("x-amz-copy-source-if-match"))
    return refusal(412, "PreconditionFailed");
  const std::string range = request.header("x-amz-copy-source-range");
  const std::size_t begin = std::stoull(range.substr(6)), last = std::stoull(range.substr(range.find('-') + 1));
  part = object_of(source->content.substr(begin, last + 1 - begin), {});
  return {.body = "<CopyPartResult><ETag>" + part.tag + "</ETag></CopyPartResult>"};
}

ServedAnswer S3Server::complete(const ServedRequest& request, const std::string& name) {
  const auto upload = uploads_.find(request.parameter("uploadId"));
  if (upload == uploads_.end()) return refusal(404, "NoSuchUpload");
  if (request.header("if-none-match") == "*" && objects_.contains(name)) return refusal(412, "PreconditionFailed");
  constexpr std::size_t least = std::size_t{5} << 20;
  std::string content, listed;
  for (const auto& [number, part] : upload->second.parts) {
    const bool is_last = number == static_cast<int>(upload->second.parts.size());
    if (!is_last && part.content.size() < least) return refusal(400, "EntityTooSmall");
    content += part.content;
    listed += fmt::format("<Part><PartNumber>{}</PartNumber><ETag>{}</ETag></Part>", number, part.tag);
  }
  // What XML may write otherwise.
  std::string body = request.body;
  for (std::size_t at = 0; (at = body.find("&quot;")) != body.npos;) body.replace(at, 6, "\"");
  if (body != "<CompleteMultipartUpload>" + listed + "</CompleteMultipartUpload>") return refusal(400, "InvalidPart");
  objects_[name] = object_of(content, upload->second.mark);
  uploads_.erase(upload);
  return {.body = "<CompleteMultipartUploadResult></CompleteMultipartUploadResult>"};
}

ServedAnswer S3Server::list(const ServedRequest& request, const std::string& bucket) {
  const std::string prefix = request.parameter("prefix"), delimiter = request.parameter("delimiter");
  const std::string most = request.parameter("max-keys");
  const std::size_t limit = most.empty() ? page : std::min<std::size_t>(page, std::stoull(most));
  const bool is_encoded = request.parameter("encoding-type") == "url";
  const auto written = [is_encoded](const std::string& text) { return is_encoded ? url_encoded(text) : text; };
  std::vector<std::pair<std::string, bool>> names;  // and whether it is a prefix
  for (const auto& [name, object] : objects_) {
    if (!name.starts_with(bucket + "/" + prefix)) continue;
    const std::string key = name.substr(bucket.size() + 1);
    const std::size_t end = delimiter.empty() ? key.npos : key.find(delimiter, prefix.size());
    const std::pair<std::string, bool> entry(end == key.npos ? key : key.substr(0, end + 1), end != key.npos);
    if (names.empty() || names.back() != entry) names.push_back(entry);
  }
  const std::string token = request.parameter("continuation-token");
  const std::size_t begin = token.empty() ? 0 : std::stoull(token);
  const std::size_t end = std::min(names.size(), begin + limit);
  std::string body =
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<ListBucketResult xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">";
  if (is_encoded) body += "<EncodingType>url</EncodingType>";
  for (std::size_t index = begin; index < end; ++index) {
    const std::string text = written(names[index].first);
    body += names[index].second ? "<CommonPrefixes><Prefix>" + text + "</Prefix></CommonPrefixes>"
                                : "<Contents><Key>" + text + "</Key></Contents>";
  }
  body += fmt::format("<IsTruncated>{}</IsTruncated>", end < names.size());
  if (end < names.size()) body += fmt::format("<NextContinuationToken>{}</NextContinuationToken>", end);
  return {.body = body + "</ListBucketResult>"};
}

ServedAnswer S3Server::list_uploads(const ServedRequest& request, const std::string& bucket) {
  std::string body = "<ListMultipartUploadsResult>";
  for (const auto& [id, upload] : uploads_) {
    if (!upload.name.starts_with(bucket + "/" + request.parameter("prefix"))) continue;
    body += fmt::format("<Upload><Key>{}</Key><UploadId>{}</UploadId></Upload>", upload.name.substr(bucket.size() + 1), id);
  }
  return {.body = body + "<IsTruncated>false</IsTruncated></ListMultipartUploadsResult>"};
}

}  // namespace trireme::test

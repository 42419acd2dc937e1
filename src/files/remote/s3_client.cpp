#include "files/remote/s3_client.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <ctime>
#include <utility>

#include "files/remote/patience.hpp"
#include "trireme/core/error.hpp"

namespace trireme::remote {
namespace {

constexpr std::int64_t clocks_may_differ = 60;  // seconds; Amazon's bear 15 minutes

std::string first_of(std::initializer_list<std::string> texts) {
  for (const std::string& text : texts) {
    if (!text.empty()) return text;
  }
  return {};
}

S3Options with_environment(S3Options options) {
  options.endpoint = first_of(
      {options.endpoint, environment("AWS_ENDPOINT_URL_S3"), environment("AWS_ENDPOINT_URL"), shared_setting("endpoint_url")});
  options.region = first_of(
      {options.region, environment("AWS_REGION"), environment("AWS_DEFAULT_REGION"), shared_setting("region"), "us-east-1"});
  while (options.endpoint.ends_with('/')) options.endpoint.pop_back();
  require(options.endpoint.empty() || options.endpoint.starts_with("http://") || options.endpoint.starts_with("https://"),
          "the endpoint of S3 is \"{}\": it begins with http:// or https://", options.endpoint);
  constexpr std::int64_t least_part = std::int64_t{5} << 20;
  require(options.part_bytes >= least_part && options.copy_bytes >= least_part && options.copy_bytes <= std::int64_t{5} << 30,
          "parts of {} bytes, copies of {}: 5 MiB or more, and copies of 5 GiB or less", options.part_bytes,
          options.copy_bytes);
  return options;
}

// The port that a scheme has anyway is not named in "Host".
std::string without_default_port(std::string host, bool is_encrypted) {
  const std::string_view port = is_encrypted ? ":443" : ":80";
  if (host.ends_with(port)) host.resize(host.size() - port.size());
  return host;
}

std::map<std::string, std::string> map_of(const std::vector<std::string>& headers) {
  std::map<std::string, std::string> fields;
  for (const std::string& header : headers) {
    const std::size_t colon = header.find(": ");
    std::string name = header.substr(0, colon);
    std::ranges::transform(name, name.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    fields[name] = header.substr(colon + 2);
  }
  return fields;
}

std::string said_by(const HttpAnswer& answer) {
  const S3Refusal refusal = parse_refusal(answer.text);
  return refusal.code.empty() ? std::string() : fmt::format("{}: {}", refusal.code, refusal.message);
}

}  // namespace

S3Place place_of(const Location& location) {
  std::string_view text = location.after_scheme();
  if (text.starts_with("//")) text.remove_prefix(2);
  const std::size_t slash = std::min(text.find('/'), text.size());
  S3Place place{.bucket = std::string(text.substr(0, slash)), .key = {}};
  if (slash < text.size()) place.key = text.substr(slash + 1);
  const auto belongs = [](unsigned char c) { return (c < 0x80 && std::isalnum(c) != 0) || c == '-' || c == '.' || c == '_'; };
  if (place.bucket.empty() || !std::ranges::all_of(place.bucket, belongs)) {
    throw Error({.code = ErrorCode::invalid_argument,
                 .message = fmt::format("\"{}\" is no name of a bucket", place.bucket),
                 .path = location.string(),
                 .hint = "a location there is s3://bucket/name"});
  }
  return place;
}

S3Client::S3Client(const S3Options& options)
    : options_(with_environment(options)), http_(std::make_shared<HttpClient>(options.remote)) {
  const S3Keys given{
      .access_key = options.access_key, .secret_key = options.secret_key, .session_token = options.session_token};
  keys_ = std::make_unique<S3KeyChain>(given, http_);
}

std::string S3Client::region_of(const std::string& bucket) const {
  const std::scoped_lock lock(mutex_);
  const auto found = regions_.find(bucket);
  return found == regions_.end() ? options_.region : found->second;
}

HttpRequest S3Client::request(const Location& location, const S3Place& place, const S3Call& call) const {
  const std::string region = region_of(place.bucket);
  const bool is_own = !options_.endpoint.empty();
  const std::string endpoint = is_own ? options_.endpoint : fmt::format("https://s3.{}.amazonaws.com", region);
  const std::size_t begin = endpoint.find("://") + 3, slash = std::min(endpoint.find('/', begin), endpoint.size());
  const std::string scheme = endpoint.substr(0, begin);
  std::string host = without_default_port(endpoint.substr(begin, slash - begin), scheme == "https://");
  std::string path = endpoint.substr(slash);
  // A bucket with a dot has no certificate of its own.
  if (is_own || place.bucket.find('.') != std::string::npos) {
    path += "/" + place.bucket;
  } else {
    host = place.bucket + "." + host;
  }
  if (!place.key.empty() || path.empty()) path += "/" + s3_encoded(place.key, true);

  S3Request request{
      .method = call.method, .host = host, .path = path, .query = call.query, .headers = call.headers, .body = call.body};
  const S3Keys keys = keys_->keys(location);
  if (!keys.empty()) sign(request, keys, region, std::time(nullptr) + seconds_ahead_);
  HttpRequest http{
      .method = call.method, .url = scheme + host + path, .headers = {}, .body = call.body, .takes_long = call.takes_long};
  if (!call.query.empty()) http.url += "?" + query_text(call.query);
  for (const auto& [name, value] : request.headers) {
    if (name != "host") http.headers.push_back(fmt::format("{}: {}", name, value));
  }
  return http;
}

// A HEAD says no code, so there the clocks alone are compared.
bool S3Client::corrects(const HttpAnswer& answer, const std::string& bucket) const {
  const int status = answer.head.status;
  const S3Refusal refusal = parse_refusal(answer.text);
  if (status < 300) {  // of a copy or of a completed upload, whose status is sent before they are done
    if (refusal.code == "InternalError" || refusal.code == "SlowDown" || refusal.code == "ServiceUnavailable") {
      throw FailedAttempt(fmt::format("the server answered with {}: {}", refusal.code, refusal.message), EIO);
    }
    return false;
  }
  if (refusal.code == "RequestTimeTooSkewed" || (status == 403 && answer.text.empty())) {
    const auto time = parse_http_date(answer.head.field("date"));
    const std::int64_t ahead = time.value_or(0) - std::time(nullptr);
    if (time && std::abs(ahead - seconds_ahead_) > clocks_may_differ) {
      seconds_ahead_ = ahead;
      return true;
    }
  }
  const std::string_view named = answer.head.field("x-amz-bucket-region");
  const std::string region = named.empty() ? refusal.region : std::string(named);
  if (!region.empty() && region != region_of(bucket)) {
    const std::scoped_lock lock(mutex_);
    regions_[bucket] = region;
    return true;
  }
  if (refusal.code == "ExpiredToken" || refusal.code == "TokenRefreshRequired" || refusal.code == "RequestExpired") {
    keys_->forget();
    return true;
  }
  return refusal.code == "ConditionalRequestConflict" || refusal.code == "OperationAborted";
}

HttpAnswer S3Client::send(const Location& location, const std::string& doing, const S3Place& place, const S3Call& call) const {
  return remote::send(
      *http_, location, doing, [&] { return request(location, place, call); },
      [&](const HttpAnswer& answer) { return corrects(answer, place.bucket); });
}

HttpAnswer S3Client::send_well(const Location& location, const std::string& doing, const S3Place& place,
                               const S3Call& call) const {
  HttpAnswer answer = send(location, doing, place, call);
  const int status = answer.head.status;
  if (status < 200 || status > 299 || !parse_refusal(answer.text).code.empty()) refuse_call(location, doing, answer);
  return answer;
}

RemoteFile S3Client::file_at(const Location& location) const {
  const S3Place place = place_of(location);
  return {.request =
              [this, location, place](const std::string& method, const std::vector<std::string>& headers) {
                return request(location, place, {.method = method, .headers = map_of(headers)});
              },
          .corrects = [this, bucket = place.bucket](const HttpAnswer& answer) { return corrects(answer, bucket); },
          .said_by = said_by};
}

void S3Client::list(const Location& location, const S3Place& prefix, std::string_view delimiter,
                    const std::function<void(const S3Listing& page)>& take) const {
  S3Call call{.query = {{"list-type", "2"}, {"encoding-type", "url"}, {"prefix", prefix.key}}};
  if (!delimiter.empty()) call.query["delimiter"] = delimiter;
  for (std::string token;;) {
    if (!token.empty()) call.query["continuation-token"] = token;
    const std::string doing = "its names cannot be listed";
    const S3Listing page = parse_listing(send_well(location, doing, {.bucket = prefix.bucket, .key = {}}, call).text, location);
    take(page);
    if (page.next.empty()) return;
    if (page.next == token) {
      throw Error({.code = ErrorCode::corrupt_file,
                   .message = "the server gives the same page of names again",
                   .path = location.string()});
    }
    token = page.next;
  }
}

void refuse_call(const Location& location, const std::string& doing, const HttpAnswer& answer) {
  refuse_status(location, doing, answer.head.status, said_by(answer));
}

}  // namespace trireme::remote

#include "files/remote/s3_credentials.hpp"

#include <fmt/format.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string_view>
#include <utility>

#include "files/remote/patience.hpp"
#include "trireme/core/error.hpp"
#include "trireme/core/log.hpp"

namespace trireme::remote {
namespace {

std::string trimmed(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t\r"), end = text.find_last_not_of(" \t\r");
  return begin == text.npos ? std::string() : std::string(text.substr(begin, end + 1 - begin));
}

// In an INI file; empty: it has none.
std::string setting_in(const std::string& text, const std::string& section, const std::string& key) {
  std::istringstream lines(text);
  bool is_there = false;
  for (std::string line; std::getline(lines, line);) {
    const std::string words = trimmed(line);
    if (words.empty() || words[0] == '#' || words[0] == ';') continue;
    if (words[0] == '[') {
      is_there = trimmed(std::string_view(words).substr(1, words.find(']') - 1)) == section;
      continue;
    }
    const std::size_t equals = words.find('=');
    if (is_there && equals != words.npos && trimmed(std::string_view(words).substr(0, equals)) == key) {
      return trimmed(std::string_view(words).substr(equals + 1));
    }
  }
  return {};
}

std::string profile() {
  const std::string name = environment("AWS_PROFILE");
  return name.empty() ? "default" : name;
}

std::string shared_file(const char* variable, const char* name) {
  const std::string path = environment(variable);
  return path.empty() ? environment("HOME") + "/.aws/" + name : path;
}

std::string text_of_file(const std::string& path) {
  const auto files = posix_file_system();
  return files->kind_of(path) == FileKind::file ? files->open(path)->content() : std::string();
}

// Keys go unencrypted to this machine's own addresses alone.
bool is_own_address(std::string_view url) {
  constexpr std::array hosts{"http://127.0.0.1",     "http://localhost",      "http://[::1]",
                             "http://169.254.170.2", "http://169.254.170.23", "http://[fd00:ec2::23]"};
  if (url.find('@') != url.npos) return false;  // what is before it is a user's name
  for (const std::string_view host : hosts) {
    if (url.starts_with(host) && (url.size() == host.size() || url[host.size()] == ':' || url[host.size()] == '/')) return true;
  }
  return false;
}

}  // namespace

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string() : std::string(value);
}

std::string shared_setting(const std::string& key) {
  const std::string name = profile();
  std::string value = setting_in(text_of_file(shared_file("AWS_SHARED_CREDENTIALS_FILE", "credentials")), name, key);
  if (!value.empty()) return value;
  return setting_in(text_of_file(shared_file("AWS_CONFIG_FILE", "config")), name == "default" ? name : "profile " + name, key);
}

S3Keys S3KeyChain::keys(const Location& location) {
  constexpr std::chrono::minutes before_expiry{5};
  const std::scoped_lock lock(mutex_);
  const auto now = std::chrono::system_clock::now();
  if (found_ && expiry_ && now > *expiry_ - before_expiry) {
    try {
      found_ = find(location);
    } catch (const Error&) {  // those that it has are good for some minutes more
      if (now > *expiry_) throw;
    }
  }
  if (!found_) found_ = find(location);
  return *found_;
}

void S3KeyChain::forget() {
  const std::scoped_lock lock(mutex_);
  found_.reset();
}

S3Keys S3KeyChain::find(const Location& location) {
  if (!given_.empty()) return given_;
  const std::string unsigned_wish = environment("AWS_NO_SIGN_REQUEST");
  if (unsigned_wish == "1" || unsigned_wish == "true" || unsigned_wish == "yes") return {};
  expiry_.reset();
  S3Keys keys{.access_key = environment("AWS_ACCESS_KEY_ID"),
              .secret_key = environment("AWS_SECRET_ACCESS_KEY"),
              .session_token = environment("AWS_SESSION_TOKEN")};
  if (!keys.access_key.empty() && !keys.secret_key.empty()) return keys;
  keys = {.access_key = shared_setting("aws_access_key_id"),
          .secret_key = shared_setting("aws_secret_access_key"),
          .session_token = shared_setting("aws_session_token")};
  if (!keys.access_key.empty() && !keys.secret_key.empty()) return keys;
  if (const auto of_a_container = of_container(location)) return *of_a_container;
  throw Error(
      {.code = ErrorCode::io,
       .message = fmt::format("no keys were found: not in AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, not in profile {} of {} "
                              "or {}, and no container names any",
                              profile(), shared_file("AWS_SHARED_CREDENTIALS_FILE", "credentials"),
                              shared_file("AWS_CONFIG_FILE", "config")),
       .path = location.string(),
       .error_number = EACCES,
       .hint = "set them, or AWS_NO_SIGN_REQUEST=1 where everybody may read"});
}

std::optional<S3Keys> S3KeyChain::of_container(const Location& location) {
  std::string url = environment("AWS_CONTAINER_CREDENTIALS_FULL_URI");
  if (const std::string path = environment("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"); !path.empty()) {
    url = "http://169.254.170.2" + path;
  }
  if (url.empty()) return std::nullopt;
  require(url.starts_with("https://") || is_own_address(url),
          "AWS_CONTAINER_CREDENTIALS_FULL_URI is {}: keys are asked for over https, or from this machine", url);
  std::string token = environment("AWS_CONTAINER_AUTHORIZATION_TOKEN");
  if (const std::string file = environment("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"); !file.empty()) {
    token = trimmed(posix_file_system()->open(file)->content());
  }
  HttpRequest request{.url = url};
  if (!token.empty()) request.headers.push_back("Authorization: " + token);
  const std::string doing = fmt::format("no keys come from the container's endpoint {}", url);
  const HttpAnswer answer = send(*client_, location, doing, [&] { return request; });
  if (answer.head.status != 200) refuse_status(location, doing, answer.head.status);
  const auto object = nlohmann::json::parse(answer.text, nullptr, false);
  const auto text = [&object](const char* name) {
    const auto found = object.is_object() ? object.find(name) : object.end();
    return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
  };
  S3Keys keys{.access_key = text("AccessKeyId"), .secret_key = text("SecretAccessKey"), .session_token = text("Token")};
  if (keys.access_key.empty() || keys.secret_key.empty()) {
    throw Error({.code = ErrorCode::io, .message = doing + ": its answer has none", .path = location.string()});
  }
  if (const auto seconds = parse_iso_date(text("Expiration"))) {
    expiry_ = std::chrono::system_clock::time_point(std::chrono::seconds(*seconds));
  }
  return keys;
}

}  // namespace trireme::remote

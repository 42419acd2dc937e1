#include "files/http_server.hpp"

#include <arpa/inet.h>
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <ctime>
#include <optional>
#include <stdexcept>
#include <string_view>
#include <utility>

namespace trireme::test {
namespace {

bool send_all(int connection, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::send(connection, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (count <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(count));
  }
  return true;
}

// More bytes behind those that there are; false: the other side has ended.
bool receive_more(int connection, std::string& bytes) {
  char buffer[65536];
  const ssize_t count = ::recv(connection, buffer, sizeof buffer, 0);
  if (count <= 0) return false;
  bytes.append(buffer, static_cast<std::size_t>(count));
  return true;
}

std::string in_small_letters(std::string text) {
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

ServedRequest parse_head(const std::string& head) {
  ServedRequest request;
  const std::size_t first_end = head.find("\r\n"), space = head.find(' ');
  const std::size_t second = head.find(' ', space + 1);
  request.method = head.substr(0, space);
  const std::string target = head.substr(space + 1, second - space - 1);
  const std::size_t question = std::min(target.find('?'), target.size());
  request.path = target.substr(0, question);
  if (question < target.size()) request.query = target.substr(question + 1);
  for (std::size_t at = first_end + 2; at < head.size();) {
    const std::size_t end = std::min(head.find("\r\n", at), head.size());
    const std::string line = head.substr(at, end - at);
    if (const std::size_t colon = line.find(": "); colon != line.npos) {
      request.headers[in_small_letters(line.substr(0, colon))] = line.substr(colon + 2);
    }
    at = end + 2;
  }
  return request;
}

// Returns when the client has left or the server ends.
void wait_for_end(int connection, const std::atomic<bool>& is_over) {
  while (!is_over) {
    pollfd one{.fd = connection, .events = POLLIN, .revents = 0};
    if (poll(&one, 1, 20) == 0) continue;
    char byte = 0;
    if (::recv(connection, &byte, 1, MSG_DONTWAIT) == 0 || (one.revents & (POLLERR | POLLHUP)) != 0) return;
  }
}

}  // namespace

std::string decoded_url(const std::string& text) {
  std::string decoded;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] == '%') {
      decoded += static_cast<char>(std::stoi(text.substr(at + 1, 2), nullptr, 16));
      at += 2;
    } else {
      decoded += text[at];
    }
  }
  return decoded;
}

std::string ServedRequest::header(const std::string& name) const {
  const auto found = headers.find(name);
  return found == headers.end() ? std::string() : found->second;
}

bool ServedRequest::has_parameter(const std::string& name) const { return ("&" + query).find("&" + name) != std::string::npos; }

std::string ServedRequest::parameter(const std::string& name) const {
  const std::string all = "&" + query + "&", begin = "&" + name + "=";
  const std::size_t at = all.find(begin);
  if (at == all.npos) return {};
  return decoded_url(all.substr(at + begin.size(), all.find('&', at + 1) - at - begin.size()));
}

ServedAnswer answer_with(const std::string& content, const std::string& tag, const ServedRequest& request) {
  const std::string wanted = request.header("if-match"), range = request.header("range");
  if (!wanted.empty() && wanted != tag) return {.status = 412};
  ServedAnswer answer{.headers = {{"ETag", tag}, {"Accept-Ranges", "bytes"}}};
  if (range.empty()) {
    answer.body = content;
    return answer;
  }
  const std::size_t dash = range.find('-');
  const std::size_t begin = std::stoull(range.substr(6)),
                    last = std::min<std::size_t>(std::stoull(range.substr(dash + 1)), content.size() - 1);
  if (begin >= content.size()) {
    return {.status = 416, .headers = {{"Content-Range", fmt::format("bytes */{}", content.size())}}};
  }
  answer.status = 206;
  answer.headers["Content-Range"] = fmt::format("bytes {}-{}/{}", begin, last, content.size());
  answer.body = content.substr(begin, last + 1 - begin);
  return answer;
}

HttpServer::HttpServer(Handler handler) : handler_(std::move(handler)) {
  setenv("no_proxy", "*", 1);
  listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* const any = reinterpret_cast<sockaddr*>(&address);
  if (::bind(listener_, any, size) != 0 || ::listen(listener_, 64) != 0 || ::getsockname(listener_, any, &size) != 0) {
    throw std::runtime_error("no port for a server");
  }
  port_ = ntohs(address.sin_port);
  acceptor_ = std::thread([this] { accept_all(); });
}

HttpServer::~HttpServer() {
  is_over_ = true;
  ::shutdown(listener_, SHUT_RDWR);
  acceptor_.join();
  {
    const std::scoped_lock lock(mutex_);
    for (const int connection : open_) ::shutdown(connection, SHUT_RDWR);
  }
  for (std::thread& thread : threads_) thread.join();
  ::close(listener_);
}

std::string HttpServer::host() const { return fmt::format("127.0.0.1:{}", port_); }
std::string HttpServer::address() const { return "http://" + host(); }
std::int64_t HttpServer::now() const { return std::time(nullptr) + clock_ahead_; }

void HttpServer::set_script(Script script) {
  const std::scoped_lock lock(mutex_);
  script_ = std::move(script);
}

void HttpServer::accept_all() {
  for (;;) {
    const int connection = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (is_over_ || connection < 0) {
      if (connection >= 0) ::close(connection);
      return;
    }
    ++connections_;
    const std::scoped_lock lock(mutex_);
    open_.push_back(connection);
    threads_.emplace_back([this, connection] { serve(connection); });
  }
}

void HttpServer::serve(int connection) {
  for (std::string bytes;;) {
    std::size_t end = 0;
    bool is_open = true;
    while (is_open && (end = bytes.find("\r\n\r\n")) == bytes.npos) is_open = receive_more(connection, bytes);
    if (!is_open) break;
    ServedRequest request = parse_head(bytes.substr(0, end));
    bytes.erase(0, end + 4);
    const std::string length = request.header("content-length");
    const std::size_t size = length.empty() ? 0 : std::stoull(length);
    while (is_open && bytes.size() < size) is_open = receive_more(connection, bytes);
    if (!is_open) break;
    request.body = bytes.substr(0, size);
    bytes.erase(0, size);
    request.number = ++requests_;
    if (!answer(connection, request)) break;
  }
  const std::scoped_lock lock(mutex_);
  std::erase(open_, connection);
  ::close(connection);
}

bool HttpServer::answer(int connection, const ServedRequest& request) {
  ServedAnswer answer;
  Fault fault = Fault::none;
  {
    const std::scoped_lock lock(mutex_);
    if (script_) fault = script_(request);
    if (fault != Fault::none) ++faults_;
    switch (fault) {
      case Fault::gone: return false;
      case Fault::status_500: answer.status = 500; break;
      case Fault::status_503: answer = {.status = 503, .headers = {{"Retry-After", "0"}}}; break;
      case Fault::status_429: answer.status = 429; break;
      default: answer = handler_(request);
    }
  }
  if (fault == Fault::lost) return false;
  if (fault == Fault::wrong_tag) answer.headers["ETag"] = "\"of another file\"";
  std::string head = fmt::format("HTTP/1.1 {} -\r\nDate: {:%a, %d %b %Y %H:%M:%S} GMT\r\n", answer.status,
                                 fmt::gmtime(static_cast<std::time_t>(now())));
  for (const auto& [name, value] : answer.headers) head += fmt::format("{}: {}\r\n", name, value);
  if (!answer.headers.contains("Content-Length")) head += fmt::format("Content-Length: {}\r\n", answer.body.size());
  head += "\r\n";
  const std::string all = head + (request.method == "HEAD" ? "" : answer.body);
  const std::size_t half = head.size() + (all.size() - head.size()) / 2;
  switch (fault) {
    case Fault::reset: {
      send_all(connection, std::string_view(all).substr(0, half));
      const linger at_once{.l_onoff = 1, .l_linger = 0};
      setsockopt(connection, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
      return false;
    }
    case Fault::truncated: send_all(connection, std::string_view(all).substr(0, half)); return false;
    case Fault::cut_head: send_all(connection, std::string_view(head).substr(0, head.size() * 2 / 3)); return false;
    case Fault::stalled:
      send_all(connection, std::string_view(all).substr(0, half));
      wait_for_end(connection, is_over_);
      return false;
    case Fault::slow:
      for (std::size_t at = 0; at < all.size() && !is_over_; ++at) {
        if (!send_all(connection, std::string_view(all).substr(at, 1))) return false;
        std::this_thread::sleep_for(std::chrono::milliseconds(100));
      }
      return false;
    default: return send_all(connection, all);
  }
}

}  // namespace trireme::test

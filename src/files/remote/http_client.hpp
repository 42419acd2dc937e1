#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "files/remote/answer_head.hpp"
#include "trireme/files/remote/remote_file_systems.hpp"

namespace trireme::remote {

struct HttpRequest {
  std::string method = "GET";
  std::string url;
  std::vector<std::string> headers = {};  // "Range: bytes=0-9"
  std::span<const std::byte> body = {};
  bool follows_redirects = false;
  bool takes_long = false;  // the server works for minutes before it answers
};

struct HttpAnswer {
  AnswerHead head;
  std::string text = {};  // the body, where no sink takes it
};

// Takes the body of an answer of status 2xx, piece by piece. False: no more of it is wanted.
using BodySink = std::function<bool(const HttpAnswer& so_far, std::span<const std::byte> bytes)>;

// Sends requests from any thread, over connections that are kept for the next ones.
class HttpClient {
 public:
  explicit HttpClient(const RemoteOptions& options);
  ~HttpClient();

  const RemoteOptions& options() const noexcept { return options_; }

  // One attempt. Throws FailedAttempt (patience.hpp) where no whole answer comes, and what the sink throws.
  HttpAnswer perform(const HttpRequest& request, const BodySink& sink = {}) const;

 private:
  class Connections;

  RemoteOptions options_;
  std::unique_ptr<Connections> connections_;
};

// "#" and what no URL has are written as %23 and so on; the rest stays as it stands.
std::string url_of(std::string_view text);

}  // namespace trireme::remote

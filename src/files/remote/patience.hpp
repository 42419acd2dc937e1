#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>

#include "files/remote/http_client.hpp"
#include "trireme/files/location.hpp"

namespace trireme::remote {

struct FailedAttempt : std::runtime_error {
  FailedAttempt(const std::string& what, int number, bool may_pass = true)
      : std::runtime_error(what), error_number(number), passes(may_pass) {}

  int error_number = 0;
  bool passes = true;                                        // a later attempt may do better
  std::optional<std::chrono::seconds> pause = std::nullopt;  // that the server asks for
};

// Throws a FailedAttempt for a status that may pass.
void check_passing(const HttpAnswer& answer);

// The attempts at one thing.
class Patience {
 public:
  // `doing`: "bytes [0, 10) cannot be read".
  Patience(const RemoteOptions& options, const Location& location, std::string doing)
      : options_(options), location_(location), doing_(std::move(doing)) {}

  // Waits before the next attempt, or throws an Error{io} that says what the last one met. `progress`: it brought something.
  void failed(const FailedAttempt& failure, bool progress = false);

 private:
  const RemoteOptions& options_;
  const Location& location_;
  std::string doing_;
  int attempts_ = 0;
  std::chrono::milliseconds pause_{0};
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

// The first answer with a status that will not pass by itself. `request` makes each attempt's; where `corrects` finds and mends
// what was wrong with one, it is sent again at once.
HttpAnswer send(const HttpClient& client, const Location& location, const std::string& doing,
                const std::function<HttpRequest()>& request, const std::function<bool(const HttpAnswer&)>& corrects = {});

// An Error{io} for a status that is none of success; `said`: what the server says of it.
[[noreturn]] void refuse_status(const Location& location, const std::string& doing, int status, const std::string& said = {});

}  // namespace trireme::remote

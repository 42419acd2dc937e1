#include "files/remote/patience.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <random>
#include <thread>

#include "trireme/core/error.hpp"
#include "trireme/core/parse_number.hpp"

namespace trireme::remote {
namespace {

constexpr std::array passing_statuses{408, 429, 500, 502, 503, 504};

// Any length up to the longest: many who failed together do not come back together.
std::chrono::milliseconds drawn(std::chrono::milliseconds longest) {
  thread_local std::minstd_rand random(std::random_device{}());
  return std::chrono::milliseconds(std::uniform_int_distribution<std::int64_t>(0, longest.count())(random));
}

int error_number_of_status(int status) {
  switch (status) {
    case 401:
    case 403: return EACCES;
    case 404:
    case 410: return ENOENT;
    default: return EIO;
  }
}

}  // namespace

void check_passing(const HttpAnswer& answer) {
  const int status = answer.head.status;
  if (std::ranges::find(passing_statuses, status) == passing_statuses.end()) return;
  const auto pause = parse_number<int>(answer.head.field("retry-after"));
  FailedAttempt failure(fmt::format("the server answered with status {}", status),
                        status == 429 || status == 503 ? EAGAIN : EIO);
  if (pause && *pause >= 0) failure.pause = std::chrono::seconds(*pause);
  throw failure;
}

void Patience::failed(const FailedAttempt& failure, bool progress) {
  if (progress) {
    attempts_ = 0;
    pause_ = std::chrono::milliseconds(0);
  }
  if (++attempts_ >= options_.attempts || !failure.passes) {
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin_;
    const std::string often =
        attempts_ == 1 ? std::string() : fmt::format(", after {} attempts in {:.1f} s", attempts_, seconds.count());
    throw Error({.code = ErrorCode::io,
                 .message = fmt::format("{}{}: {}", doing_, often, failure.what()),
                 .path = location_.string(),
                 .error_number = failure.error_number,
                 .hint = "look at the server and at the network"});
  }
  pause_ = std::min(options_.longest_pause, std::max(options_.first_pause, 2 * pause_));
  std::chrono::milliseconds wait = drawn(pause_);
  if (failure.pause) {
    const std::chrono::milliseconds wished = *failure.pause;
    wait = std::max(wait, std::min(wished, options_.longest_pause));
  }
  std::this_thread::sleep_for(wait);
}

HttpAnswer send(const HttpClient& client, const Location& location, const std::string& doing,
                const std::function<HttpRequest()>& request, const std::function<bool(const HttpAnswer&)>& corrects) {
  Patience patience(client.options(), location, doing);
  for (int corrections = 0;;) {
    try {
      HttpAnswer answer = client.perform(request());
      if (corrects && corrections < 3 && corrects(answer)) {
        ++corrections;
        continue;
      }
      check_passing(answer);
      return answer;
    } catch (const FailedAttempt& failure) {
      patience.failed(failure);
    }
  }
}

void refuse_status(const Location& location, const std::string& doing, int status, const std::string& said) {
  std::string hint;
  if (status == 401 || status == 403)
    hint = "look whether it may be read, and by whom: docs/locations.md says where keys are looked for";
  if (status >= 300 && status < 400) hint = "name the location that it leads to";
  throw Error(
      {.code = ErrorCode::io,
       .message = fmt::format("{}: the server answered with status {}{}", doing, status, said.empty() ? "" : ", " + said),
       .path = location.string(),
       .error_number = error_number_of_status(status),
       .hint = std::move(hint)});
}

}  // namespace trireme::remote

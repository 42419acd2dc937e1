#include "trireme/checkpoint/claim.hpp"

#include <fmt/format.h>

#include <condition_variable>
#include <exception>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>

#include "checkpoint/directory.hpp"
#include "checkpoint/writer_sign.hpp"
#include "trireme/core/error.hpp"
#include "trireme/core/log.hpp"

namespace trireme::checkpoint {
namespace {

using Clock = std::chrono::steady_clock;

[[noreturn]] void refuse(const WriterSign& other, const Location& directory) {
  throw Error({.code = ErrorCode::invalid_argument,
               .message = fmt::format("another job saves its checkpoints there: job {}, process {} on {}, last sign of life "
                                      "at {}",
                                      other.job, other.process, other.host, other.time),
               .path = directory.string(),
               .hint = "wait until that job ends, end it, or use another directory"});
}

// Returns when no other job than `own` writes there.
void await_free(const FileSystem& files, const Location& directory, const std::string& own, const ClaimTimes& times) {
  constexpr std::chrono::milliseconds between_looks{50};
  const auto begin = Clock::now();
  std::optional<WriterSign> first;
  for (;; std::this_thread::sleep_for(between_looks)) {
    const auto sign = read_sign(files, directory);
    if (!sign || sign->job == own) return;
    const Life life = life_of(*sign);
    if (life == Life::ended) return;
    if (life == Life::goes_on && Clock::now() - begin >= times.patience) refuse(*sign, directory);
    if (!first && life == Life::unknown) {
      log(Severity::info, "{}: job {} on {} has saved there, last seen at {}: waiting up to {} s to see whether it has ended",
          directory.string(), sign->job, sign->host, sign->time,
          std::chrono::duration_cast<std::chrono::seconds>(times.silence).count());
    }
    if (!first) first = sign;
    if (life == Life::unknown && *sign != *first) refuse(*sign, directory);
    if (life == Life::unknown && Clock::now() - begin >= times.silence) return;
  }
}

}  // namespace

// Writes the signs of life in its own thread, because a step may take long.
class Claim::Holder {
 public:
  Holder(Location directory, std::shared_ptr<FileSystem> files, const ClaimTimes& times)
      : directory_(std::move(directory)), files_(std::move(files)), sign_(own_sign()), job_(sign_.job) {
    take(times);
    thread_ = std::jthread([this, between = times.renewal](const std::stop_token& stop) { renew(stop, between); });
  }

  ~Holder() {
    thread_.request_stop();
    thread_.join();
    try {
      if (!other()) remove_sign(*files_, directory_);
    } catch (const std::exception&) {  // the next job will notice that this process has ended
    }
  }
  Holder(const Holder&) = delete;
  Holder& operator=(const Holder&) = delete;

  // The sign of another job that has taken over.
  std::optional<WriterSign> other() const {
    auto sign = read_sign(*files_, directory_);
    return sign && sign->job != job_ ? sign : std::nullopt;
  }
  const Location& directory() const { return directory_; }

 private:
  // If two jobs find no sign at the same time, one creates it, and the other tries again.
  void take(const ClaimTimes& times) {
    for (;;) {
      await_free(*files_, directory_, job_, times);
      if (has_sign(*files_, directory_)) {
        replace_sign(*files_, directory_, sign_);
        std::this_thread::sleep_for(std::chrono::milliseconds(200));  // another job may be replacing the same sign
        if (!other()) return;
        continue;
      }
      try {
        return create_sign(*files_, directory_, sign_);
      } catch (const Error&) {
        if (!has_sign(*files_, directory_)) throw;
      }
    }
  }

  void renew(const std::stop_token& stop, std::chrono::milliseconds between) {
    std::mutex mutex;
    std::condition_variable_any stopped;
    std::unique_lock lock(mutex);
    while (!stopped.wait_for(lock, stop, between, [&stop] { return stop.stop_requested(); })) {
      try {
        sign_ = next_sign(sign_);
        if (!other()) replace_sign(*files_, directory_, sign_);
      } catch (const std::exception&) {  // for example a full disk: tries again next time
      }
    }
  }

  Location directory_;
  std::shared_ptr<FileSystem> files_;
  WriterSign sign_;  // used only by the thread once it runs
  const std::string job_;
  std::jthread thread_;
};

Claim::Claim(const Group& group, const Location& directory, const std::shared_ptr<FileSystem>& file_system,
             const ClaimTimes& times)
    : group_(group) {
  const auto take = [&] {
    if (group_.rank() != 0) return;
    make_directory(*file_system, directory);
    holder_ = std::make_unique<Holder>(directory, file_system, times);
  };
  group_.agree(take, "claim the directory of checkpoints");
}

Claim::~Claim() = default;

void Claim::require_held() const {
  const auto check = [this] {
    if (holder_ == nullptr) return;
    if (const auto other = holder_->other()) refuse(*other, holder_->directory());
  };
  group_.agree(check, "look who saves checkpoints");
}

struct ClaimWatch::Seen {
  WriterSign sign;
  Clock::time_point since = Clock::now();
};

ClaimWatch::ClaimWatch(Location directory, std::shared_ptr<FileSystem> file_system, const ClaimTimes& times)
    : directory_(std::move(directory)), files_(std::move(file_system)), times_(times) {}
ClaimWatch::~ClaimWatch() = default;

bool ClaimWatch::is_held() {
  const auto sign = read_sign(*files_, directory_);
  if (!sign) return false;
  const Life life = life_of(*sign);
  if (life != Life::unknown) return life == Life::goes_on;
  if (seen_ == nullptr || seen_->sign != *sign) seen_ = std::make_unique<Seen>(Seen{.sign = *sign});
  return Clock::now() - seen_->since < times_.silence;
}

void require_unclaimed(const Location& directory, FileSystem& file_system, const ClaimTimes& times) {
  await_free(file_system, directory, {}, times);
}

}  // namespace trireme::checkpoint

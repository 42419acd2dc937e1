#pragma once

#include <chrono>
#include <memory>

#include "trireme/comm/base/group.hpp"
#include "trireme/core/export.hpp"
#include "trireme/files/file_system.hpp"

namespace trireme TRIREME_EXPORT {
namespace checkpoint {

struct ClaimTimes {
  std::chrono::milliseconds renewal{10'000};  // interval between two signs of life
  // A job of another machine counts as ended if it gives no sign of life for this long. A job of this machine counts as ended
  // if its process has ended.
  std::chrono::milliseconds silence{30'000};
  std::chrono::milliseconds patience{2'000};  // how long to wait for a process of this machine that may be ending
};

// Ensures that only one job saves into a directory of checkpoints; two jobs would put each other's checkpoints aside. The file
// writer.json in the directory names the job and the time of its last sign of life; the destructor removes the file. A job is
// identified by TRIREME_JOB_ID, or by its process if TRIREME_JOB_ID is not set. A new job takes over the claim of a killed job.
// A Claim uses no file locks.
class Claim {
 public:
  // Creates the directory. Throws Error{invalid_argument} with the name of the job that writes there now. Collective.
  Claim(const Group& group, const Location& directory, const std::shared_ptr<FileSystem>& file_system,
        const ClaimTimes& times = {});
  Claim(const Group& group, const Location& directory) : Claim(group, directory, file_system_of(directory)) {}
  ~Claim();
  Claim(const Claim&) = delete;
  Claim& operator=(const Claim&) = delete;

  // Throws the constructor's Error if another job has taken over, for example while this job was suspended. Call it before each
  // save. Collective.
  void require_held() const;

 private:
  class Holder;

  Group group_;
  std::unique_ptr<Holder> holder_;  // on rank 0
};

// Tells a program that waits for a job's checkpoints whether a job still saves into a directory.
class ClaimWatch {
 public:
  ClaimWatch(Location directory, std::shared_ptr<FileSystem> file_system, const ClaimTimes& times = {});
  explicit ClaimWatch(const Location& directory) : ClaimWatch(directory, file_system_of(directory)) {}
  ~ClaimWatch();
  ClaimWatch(const ClaimWatch&) = delete;
  ClaimWatch& operator=(const ClaimWatch&) = delete;

  // Also returns true as long as it is unknown whether a job of another machine has ended.
  bool is_held();

 private:
  struct Seen;

  Location directory_;
  std::shared_ptr<FileSystem> files_;
  ClaimTimes times_;
  std::unique_ptr<Seen> seen_;
};

// For programs that change a directory without a claim: throws the Error of Claim's constructor if a job writes there now.
void require_unclaimed(const Location& directory, FileSystem& file_system, const ClaimTimes& times = {});
inline void require_unclaimed(const Location& directory) { require_unclaimed(directory, *file_system_of(directory)); }

}  // namespace checkpoint
}  // namespace trireme

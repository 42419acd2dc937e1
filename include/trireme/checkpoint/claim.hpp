#pragma once

#include <chrono>
#include <memory>

#include "trireme/comm/base/group.hpp"
#include "trireme/core/export.hpp"
#include "trireme/files/file_system.hpp"

namespace trireme TRIREME_EXPORT {
namespace checkpoint {

struct ClaimTimes {
  std::chrono::milliseconds renewal{10'000};  // between two signs of life
  // For which a job of another machine gives no sign before it counts as ended. Of this machine its process is looked for.
  std::chrono::milliseconds silence{30'000};
  std::chrono::milliseconds patience{2'000};  // with a process of this machine, which may be about to end
};

// That this job alone saves into a directory of checkpoints: of two, each would put the other's aside. The file writer.json
// there says which job writes and when it last gave a sign of life; it is gone when the claim is. A job is its TRIREME_JOB_ID,
// or else its process; what a killed job has left of it is taken over. Nothing is locked.
class Claim {
 public:
  // Makes the directory. Error{invalid_argument} names the job that writes there now. Collective.
  Claim(const Group& group, const Location& directory, const std::shared_ptr<FileSystem>& file_system,
        const ClaimTimes& times = {});
  Claim(const Group& group, const Location& directory) : Claim(group, directory, file_system_of(directory)) {}
  ~Claim();
  Claim(const Claim&) = delete;
  Claim& operator=(const Claim&) = delete;

  // The same Error where another job has taken over, as while this one was suspended. Before each save. Collective.
  void require_held() const;

 private:
  class Holder;

  Group group_;
  std::unique_ptr<Holder> holder_;  // of rank 0
};

// For who waits for the checkpoints of a job: whether one saves into a directory still.
class ClaimWatch {
 public:
  ClaimWatch(Location directory, std::shared_ptr<FileSystem> file_system, const ClaimTimes& times = {});
  explicit ClaimWatch(const Location& directory) : ClaimWatch(directory, file_system_of(directory)) {}
  ~ClaimWatch();
  ClaimWatch(const ClaimWatch&) = delete;
  ClaimWatch& operator=(const ClaimWatch&) = delete;

  // True also while it is not known yet whether a job of another machine has ended.
  bool is_held();

 private:
  struct Seen;

  Location directory_;
  std::shared_ptr<FileSystem> files_;
  ClaimTimes times_;
  std::unique_ptr<Seen> seen_;
};

// For who changes a directory without a claim: the same Error where a job writes there now.
void require_unclaimed(const Location& directory, FileSystem& file_system, const ClaimTimes& times = {});
inline void require_unclaimed(const Location& directory) { require_unclaimed(directory, *file_system_of(directory)); }

}  // namespace checkpoint
}  // namespace trireme

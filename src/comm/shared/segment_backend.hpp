#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "comm/base/backend.hpp"
#include "comm/shared/address_space.hpp"
#include "comm/shared/group_control.hpp"
#include "comm/shared/platform.hpp"
#include "comm/shared/small_all_reduce.hpp"
#include "comm/shared/staging.hpp"

namespace trireme::comm {

// The collectives of ranks that share memory, threads or processes. A call publishes the address of its data. Once all ranks
// have published it, each reduces its own part, reading and writing all ranks' buffers in place. Small calls copy their data to
// parcels, and data that others can't reach go through staging blocks. Calls are processed in order.
class SegmentBackend final : public Backend, public Progress, public std::enable_shared_from_this<SegmentBackend> {
 public:
  struct Shared {
    std::shared_ptr<std::byte> memory;  // of `control`
    GroupControl control;
    std::vector<int> node_ranks;  // of the members
  };
  SegmentBackend(std::shared_ptr<RankContext> context, std::shared_ptr<Platform> platform, Members members, Shared shared,
                 std::unique_ptr<Mail> mail);
  ~SegmentBackend() override;

  const Members& members() const override { return members_; }
  RankContext& context() override { return *context_; }
  std::unique_ptr<Operation> start(const Call& call) override;
  std::unique_ptr<Operation> receive(const Call& message) override;
  void send(const Call& message) override;
  std::shared_ptr<device::MemoryResource> memory() override;
  std::shared_ptr<Backend> make_group(const Members& members) override;

  void advance() override;

  // Called by the operation with this number.
  bool done(std::uint64_t sequence) const { return sequence < next_; }  // this rank's part is done
  bool done_by_all(std::uint64_t sequence);
  void check_peers(std::uint64_t sequence) const;
  ErrorFields describe_wait(std::uint64_t sequence) const;
  std::string describe_call(std::uint64_t sequence) const;
  void abandon(std::uint64_t sequence) noexcept;

 private:
  bool all_published();
  bool anyone_working() const;
  bool work_on(const Call& call);
  bool parcel_is_free(std::uint64_t sequence);
  bool work_on_parcels(const Call& call);
  void compare_calls();
  void gather_addresses(const Call& call);
  std::string describe_progress(int rank) const;
  void finish_call();

  std::shared_ptr<RankContext> context_;
  std::shared_ptr<Platform> platform_;
  Members members_;
  Shared shared_;
  std::unique_ptr<Mail> mail_;
  SmallAllReduce small_all_reduce_;
  Staging staging_;

  std::uint64_t published_ = 0;     // calls made by this rank
  std::uint64_t next_ = 1;          // the call to process
  int seen_ = 0;                    // ranks below this one have published `next_`
  bool compared_ = false;           // all ranks' calls of `next_` are the same
  std::uint64_t all_finished_ = 0;  // every rank has finished the calls up to this one
  std::optional<Error> mismatch_;
  std::vector<Call> calls_;         // this rank's, by sequence % slots
  std::vector<std::byte*> blocks_;  // the data of `next_`, by rank; null: out of reach
};

}  // namespace trireme::comm

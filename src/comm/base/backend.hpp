#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "comm/base/rank_context.hpp"
#include "comm/base/waiting.hpp"
#include "comm/calls/call.hpp"
#include "comm/calls/members.hpp"
#include "comm/flight/flight_recorder.hpp"
#include "trireme/comm/base/group.hpp"

namespace trireme::comm {

// One collective or receive under way.
class Operation : public Awaited, public PendingOperation {
 public:
  ~Operation() override = default;
  virtual RankContext& context() = 0;

  bool done() final;
  void wait_on_host() final;
  void wait_on_stream() final;

  // Lets what this thread's current stream gets from now on wait for the result. False: that can wait on the host alone.
  virtual bool order_before_current() { return false; }

  // After an error: returns as soon as no other rank touches this operation's memory any more.
  virtual void abandon() noexcept = 0;

 private:
  template <typename Action>
  auto or_abandon(Action action);
};

// What a group needs from a way of communicating. Arguments are already checked.
class Backend {
 public:
  Backend() = default;
  Backend(const Backend&) = delete;
  Backend& operator=(const Backend&) = delete;
  virtual ~Backend() = default;

  virtual const Members& members() const = 0;
  virtual RankContext& context() = 0;

  // Null when nothing is left to wait for.
  virtual std::unique_ptr<Operation> start(const Call& call) = 0;
  virtual std::unique_ptr<Operation> receive(const Call& message) = 0;
  virtual void send(const Call& message) = 0;

  virtual std::shared_ptr<device::MemoryResource> memory() = 0;
  virtual std::uint64_t bytes_sent() { return 0; }   // by this rank to ranks of other nodes
  virtual bool on_one_node() const { return true; }  // all ranks reach each other's memory()
  virtual std::vector<std::vector<int>> nodes() const { return {ranks_below(members().size())}; }  // group ranks by node

  // Collective over this group; every rank passes the members of its own new group.
  virtual std::shared_ptr<Backend> make_group(const Members& members) = 0;

  RecordedGroup recorded;
};

// What users of a group call: these keep the flight recorder too.
Pending start(Backend& backend, const Call& call);
Pending receive(Backend& backend, const Call& message);
void send(Backend& backend, const Call& message);

}  // namespace trireme::comm

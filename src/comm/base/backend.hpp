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

  // Makes later work of this thread's current stream wait for the result. False: only the host can wait for it.
  virtual bool order_before_current() { return false; }

  // Called after an error: returns as soon as no other rank accesses this operation's memory.
  virtual void abandon() noexcept = 0;

 private:
  template <typename Action>
  auto or_abandon(Action action);
};

// The interface between a group and a way of communicating. Arguments are already checked.
class Backend {
 public:
  Backend() = default;
  Backend(const Backend&) = delete;
  Backend& operator=(const Backend&) = delete;
  virtual ~Backend() = default;

  virtual const Members& members() const = 0;
  virtual RankContext& context() = 0;

  // Null if the call is done already.
  virtual std::unique_ptr<Operation> start(const Call& call) = 0;
  virtual std::unique_ptr<Operation> receive(const Call& message) = 0;
  virtual void send(const Call& message) = 0;

  virtual std::shared_ptr<device::MemoryResource> memory() = 0;
  virtual std::uint64_t bytes_sent() { return 0; }   // by this rank to ranks of other nodes
  virtual bool on_one_node() const { return true; }  // whether all ranks reach each other's memory()
  virtual std::vector<std::vector<int>> nodes() const { return {ranks_below(members().size())}; }  // group ranks by node

  // Every rank passes the members of its own new group. Collective over this group.
  virtual std::shared_ptr<Backend> make_group(const Members& members) = 0;

  RecordedGroup recorded;
};

// Call the backend and record the call in the flight recorder. Group uses these.
Pending start(Backend& backend, const Call& call);
Pending receive(Backend& backend, const Call& message);
void send(Backend& backend, const Call& message);

}  // namespace trireme::comm

#pragma once

#include <chrono>
#include <cstddef>
#include <exception>
#include <span>

namespace trireme::comm {

// Messages that are waited for together. It must not move until all of them are done or cancelled.
struct Batch {
  int outstanding = 0;
  std::exception_ptr failure;  // the failure of one of them
};

inline bool done(const Batch& batch) {  // throws the failure of a message
  if (batch.failure) std::rethrow_exception(batch.failure);
  return batch.outstanding == 0;
}

// Where a message goes, or comes from. A channel joins the ranks of one group, and carries only messages between them.
struct Route {
  int channel = 0;  // as this rank's transport numbers it
  int peer = 0;     // rank in the group
  int tag = 0;
};

// Moves messages of less than 2 GiB between a rank and the ranks of other nodes. Only the thread that has the wire's turn calls
// it. Only cancel() waits. An implementation must guarantee:
//   order     The n-th receive of a route gets the n-th message that is posted to it. Messages of different routes may overtake
//             each other. A message may arrive before its receive. No message is lost or duplicated while both ranks live.
//   progress  Data move whenever both ranks call test(), however rarely. A post may be under way until the peer receives it.
//   memory    A buffer is accessed only until its message is done or withdrawn by cancel().
//   failure   A message that can't be delivered, for example to a lost peer, fails its batch; others go on. A receive from a
//             lost peer may never end: an Alarm reports the loss, or a deadline passes. Errors are Error{internal} with the
//             network's own text. An exception of post(), receive() or test() ends the job.
class Transport {
 public:
  virtual ~Transport() = default;

  virtual void post(const Route& to, std::span<const std::byte> data, Batch& batch) = 0;
  virtual void receive(const Route& from, std::span<std::byte> buffer, Batch& batch) = 0;  // at most so many bytes

  // Checks all messages under way and removes those that are done from their batches. Returns the share that was done; 1 if
  // none were under way.
  virtual double test() = 0;

  // Gives a batch up. Waits, at most until `end`, for messages that the network can't withdraw at once. False if some are still
  // under way then; their buffers must never be freed.
  virtual bool cancel(Batch& batch, std::chrono::steady_clock::time_point end) noexcept = 0;
};

}  // namespace trireme::comm

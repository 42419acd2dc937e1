#pragma once

#include <chrono>
#include <cstddef>
#include <exception>
#include <span>

namespace trireme::comm {

// Messages that are waited for together. It stays where it is until all of them are done or cancelled.
struct Batch {
  int outstanding = 0;
  std::exception_ptr failure;  // of one of them
};

inline bool done(const Batch& batch) {  // throws what went wrong with a message
  if (batch.failure) std::rethrow_exception(batch.failure);
  return batch.outstanding == 0;
}

// Where a message goes, or comes from. A channel joins the ranks of one group; no other has its messages.
struct Route {
  int channel = 0;  // as this rank's transport numbers it
  int peer = 0;     // rank in the group
  int tag = 0;
};

// Moves messages of less than 2 GiB between a rank and the ranks of other nodes. One thread at a time calls it: the one that
// has the wire's turn. Only cancel() waits. An implementation owes:
//   order     The n-th receive of a route gets the n-th message that is posted to it. Messages of different routes may overtake
//             each other. A message may arrive before its receive. None is lost or comes twice while both ranks live.
//   progress  Data move whenever both ranks call test(), however seldom. A post may be under way until the peer receives it.
//   memory    A buffer is read or written until its message is done or withdrawn by cancel(), never later.
//   failure   A message that can't be delivered fails its batch, as one to a peer that is lost does; others go on. A receive
//             from that peer may be under way for ever: an Alarm tells of the loss, or a deadline passes. Errors are
//             Error{internal} with the network's own text. What post(), receive() or test() throws ends the job.
class Transport {
 public:
  virtual ~Transport() = default;

  virtual void post(const Route& to, std::span<const std::byte> data, Batch& batch) = 0;
  virtual void receive(const Route& from, std::span<std::byte> buffer, Batch& batch) = 0;  // that many bytes, or fewer

  // Looks at all messages under way; those that are done leave their batches. Returns their share, 1 where none were.
  virtual double test() = 0;

  // Gives a batch up. For what the network can't withdraw at once it waits, at most until `end`. False: some is still under
  // way then, and its buffers have to stay for ever.
  virtual bool cancel(Batch& batch, std::chrono::steady_clock::time_point end) noexcept = 0;
};

}  // namespace trireme::comm

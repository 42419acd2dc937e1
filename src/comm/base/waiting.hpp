#pragma once

#include <cstdint>
#include <string>

#include "trireme/core/error.hpp"

namespace trireme::comm {

class RankContext;

// Something a rank waits for.
class Awaited {
 public:
  virtual ~Awaited() = default;
  virtual bool ready() = 0;
  virtual void check_peers() {}                   // throws if a rank that it needs has left
  virtual ErrorFields describe_wait() const = 0;  // for the error of a missed deadline: the call, and the missing ranks
  virtual std::string wait_text() const { return describe_wait().message; }  // the call only

  std::uint64_t flight_number = 0;  // number in this rank's flight recorder
};

// Every blocking wait of the library. Advances all collectives of this rank, spins, yields, sleeps, and throws if a rank
// failed, a rank left or the deadline passed.
void wait_for(RankContext& context, Awaited& awaited);

}  // namespace trireme::comm

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
  virtual void check_peers() {}                   // throws when a rank it needs has left
  virtual ErrorFields describe_wait() const = 0;  // for the error of a missed deadline: what, and who is missing
  virtual std::string wait_text() const { return describe_wait().message; }  // what alone

  std::uint64_t flight_number = 0;  // number in this rank's flight recorder
};

// Every blocking wait of the library goes through here: it advances all collectives of this rank, spins, yields, sleeps,
// and throws when a rank failed, a rank left or the deadline passed.
void wait_for(RankContext& context, Awaited& awaited);

}  // namespace trireme::comm

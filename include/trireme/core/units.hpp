#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

#include "trireme/core/export.hpp"

// Units for the length of a run, and for how often something happens in the run:
//
//   Amount until = Epochs{20};  // or Steps{600}, Tokens{1'000'000}, Seconds{3600}
namespace trireme TRIREME_EXPORT {

struct Steps {
  std::int64_t count = 0;
  friend bool operator==(const Steps&, const Steps&) = default;
};
struct Samples {  // over all ranks
  std::int64_t count = 0;
  friend bool operator==(const Samples&, const Samples&) = default;
};
struct Tokens {  // over all ranks
  std::int64_t count = 0;
  friend bool operator==(const Tokens&, const Tokens&) = default;
};
struct Epochs {  // passes over the data; 0.5 is half a pass
  double count = 0;
  friend bool operator==(const Epochs&, const Epochs&) = default;
};
struct Seconds {
  double count = 0;
  friend bool operator==(const Seconds&, const Seconds&) = default;
};

using Amount = std::variant<Steps, Samples, Tokens, Epochs, Seconds>;
using Place = std::variant<Steps, Samples, Tokens, Epochs>;  // without Seconds, because the clocks of ranks differ

std::string to_text(const Amount& amount);  // "600 steps", "20 epochs", "90 s"

// Parses the texts of to_text(), and "600" (steps), "1 epoch", "30s", "10min", "2h". Throws Error{invalid_argument} for other
// texts and for values that are not above 0.
Amount parse_amount(std::string_view text);

}  // namespace trireme

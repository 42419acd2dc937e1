#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <utility>

#include "trireme/autograd/tape.hpp"
#include "trireme/core/range.hpp"

namespace trireme {

// Ranks may be threads with copies of the same options. Each rank counts its own calls, together with the threads that its loss
// starts.
struct StreamCalls::Counts {
  struct OfRank {
    std::uint64_t seed = 0;
    std::uint64_t step = 0;
    std::map<std::pair<std::int64_t, std::uint64_t>, std::uint64_t> calls = {};  // by first sample and stream
    std::map<std::int64_t, std::int64_t> ends = {};                              // of micro-batches, by first sample
  };
  std::mutex mutex;
  std::map<std::uint64_t, OfRank> ranks;

  static void require_own_samples(OfRank& rank, const Range& samples);

  std::uint64_t next(const TapeOptions& at, std::uint64_t stream) {
    const std::lock_guard lock(mutex);
    OfRank& rank = ranks[at.calls.rank_];
    if (rank.seed != at.seed || rank.step != at.step) rank = {.seed = at.seed, .step = at.step};
    if (at.samples) require_own_samples(rank, {at.first_sample, at.first_sample + *at.samples});
    return rank.calls[{at.first_sample, stream}]++;
  }

  // The calls of the micro-batch of `at` so far.
  StreamCalls::OfStreams calls_of(const TapeOptions& at) {
    const std::lock_guard lock(mutex);
    OfStreams calls;
    const OfRank& rank = ranks[at.calls.rank_];
    if (rank.seed != at.seed || rank.step != at.step) return calls;
    for (auto call = rank.calls.lower_bound({at.first_sample, 0}); call != rank.calls.end(); ++call) {
      if (call->first.first != at.first_sample) break;
      calls.emplace(call->first.second, call->second);
    }
    return calls;
  }
  void set_calls(const TapeOptions& at, const StreamCalls::OfStreams& calls) {
    const std::lock_guard lock(mutex);
    OfRank& rank = ranks[at.calls.rank_];
    if (rank.seed != at.seed || rank.step != at.step) rank = {.seed = at.seed, .step = at.step};
    std::erase_if(rank.calls, [&](const auto& call) { return call.first.first == at.first_sample; });
    for (const auto& [stream, count] : calls) rank.calls[{at.first_sample, stream}] = count;
  }
};

}  // namespace trireme

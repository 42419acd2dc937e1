#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "trireme/autograd/planes/plane_device.hpp"
#include "trireme/comm/base/group.hpp"
#include "trireme/nn/base/flow.hpp"

namespace trireme::parallel {

// Brings flows from stage to stage, and their gradients back. Shapes may change with every micro-batch, yet a receive is posted
// long before: each flow is announced by a small message, and is expected to look like those of the step before, where these
// were all alike. One that does not takes another way; what was expected then comes too, and is thrown away.
class FlowTransfers {
 public:
  FlowTransfers(Group ranks, int num_stages, const PlaneDevice& device);

  void begin_step(int micro_batches);

  // A flow on its way to a stage of this rank.
  struct Arrival {
    // Whether it is as expected, how many numbers its layout has, and of how many micro-batches it is one.
    std::vector<std::int64_t> announced = {0, 0, 0};
    std::vector<nn::FlowPart> expected = {};
    std::vector<Pending> pending = {};
  };
  void expect(int stage, const std::string& name, Arrival& arrival);
  nn::PackedFlow take(int stage, const std::string& name, Arrival& arrival);
  void send(int stage, const std::string& name, const nn::PackedFlow& flow);

  // The gradients of a stage's output, which the rank of the next stage sends, and some numbers with them.
  std::vector<Pending> expect_gradients(int stage, const std::string& name, std::vector<std::int64_t>& numbers,
                                        const std::vector<nn::FlowPart>& parts) const;
  void send_gradients(int stage, const std::string& name, const std::vector<std::int64_t>& numbers,
                      const std::vector<nn::FlowPart>& parts) const;

  const PlaneDevice& device() const { return device_; }  // where flows lie

 private:
  // The flows that go to one stage: both ends see the same ones, and so expect the same.
  struct Link {
    std::vector<std::int64_t> layout = {};    // of the first flow of this step
    bool alike = true;                        // all of this step have it
    std::vector<std::int64_t> expected = {};  // empty: nothing
  };
  void note(Link& link, const std::vector<std::int64_t>& layout);
  int rank_of(int stage) const { return stage % ranks_.size(); }
  enum class Way : std::uint8_t { announcement, expected, other, gradient };
  int tag(Way way, int stage) const { return static_cast<int>(way) * num_stages_ + stage; }

  Group ranks_;
  int num_stages_;
  std::int64_t micro_batches_ = 0;  // of the step
  const PlaneDevice& device_;
  std::vector<Link> links_;  // by the stage that takes the flow
};

}  // namespace trireme::parallel

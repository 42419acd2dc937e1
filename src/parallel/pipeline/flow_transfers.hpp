#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "trireme/autograd/planes/plane_device.hpp"
#include "trireme/comm/base/group.hpp"
#include "trireme/nn/base/flow.hpp"

namespace trireme::parallel {

// Moves flows from stage to stage, and their gradients back. Shapes may change with every micro-batch, but receives are posted
// early: a flow is expected to have the layout of the last step's flows, if these were all alike, and a small message announces
// whether it does. Otherwise it is sent in other messages, and the expected ones are sent too and dropped.
class FlowTransfers {
 public:
  FlowTransfers(Group ranks, int num_stages, const PlaneDevice& device);

  void begin_step(int micro_batches);

  // A flow on its way to a stage of this rank.
  struct Arrival {
    // Whether the flow is as expected, the size of its layout, and the number of micro-batches in the step.
    std::vector<std::int64_t> announced = {0, 0, 0};
    std::vector<nn::FlowPart> expected = {};
    std::vector<Pending> pending = {};
  };
  void expect(int stage, const std::string& name, Arrival& arrival);
  nn::PackedFlow take(int stage, const std::string& name, Arrival& arrival);
  void send(int stage, const std::string& name, const nn::PackedFlow& flow);

  // Receives of the gradients of a stage's output, and of `numbers`, from the rank of the next stage.
  std::vector<Pending> expect_gradients(int stage, const std::string& name, std::vector<std::int64_t>& numbers,
                                        const std::vector<nn::FlowPart>& parts) const;
  void send_gradients(int stage, const std::string& name, const std::vector<std::int64_t>& numbers,
                      const std::vector<nn::FlowPart>& parts) const;

  const PlaneDevice& device() const { return device_; }  // where flows lie

 private:
  // The flows to one stage. Both ends see the same flows, and so expect the same layout.
  struct Link {
    std::vector<std::int64_t> layout = {};    // of this step's first flow
    bool alike = true;                        // whether all of this step's flows have it
    std::vector<std::int64_t> expected = {};  // in this step; empty: none
  };
  void note(Link& link, const std::vector<std::int64_t>& layout);
  int rank_of(int stage) const { return stage % ranks_.size(); }
  enum class Way : std::uint8_t { announcement, expected, other, gradient };
  int tag(Way way, int stage) const { return static_cast<int>(way) * num_stages_ + stage; }

  Group ranks_;
  int num_stages_;
  std::int64_t micro_batches_ = 0;  // of the step
  const PlaneDevice& device_;
  std::vector<Link> links_;  // by the stage that receives the flow
};

}  // namespace trireme::parallel

#pragma once

#include "trireme/comm/base/group.hpp"
#include "trireme/core/export.hpp"

namespace trireme TRIREME_EXPORT {

struct MeshOptions {
  int data = 0;  // 0: what is left of the ranks
  int pipeline = 1;
  int tensor = 1;
  int expert = 1;  // with no tensor axis
};

// Ranks as points (data, expert, pipeline, tensor), with one group along each axis. The tensor axis varies fastest, so that its
// ranks share a node; then pipeline, expert, data. Ranks of the data and the expert axis have samples of their own. Collective.
class ProcessMesh {
 public:
  explicit ProcessMesh(const Group& world, const MeshOptions& options = {});

  const Group& world() const { return world_; }
  const Group& data() const { return data_; }          // replicas: the other coordinates are the same
  const Group& pipeline() const { return pipeline_; }  // same data, expert and tensor coordinate
  const Group& tensor() const { return tensor_; }      // same data, expert and pipeline coordinate
  const Group& expert() const { return expert_; }      // same data, pipeline and tensor coordinate
  const Group& batch() const { return batch_; }        // that share out a batch: same pipeline and tensor coordinate

 private:
  Group world_;
  Group data_;
  Group pipeline_;
  Group tensor_;
  Group expert_;
  Group batch_;
};

}  // namespace trireme

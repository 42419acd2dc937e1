#pragma once

#include "trireme/comm/base/group.hpp"
#include "trireme/core/export.hpp"

namespace trireme TRIREME_EXPORT {

struct MeshOptions {
  int data = 0;  // 0: all ranks / (pipeline x tensor x expert)
  int pipeline = 1;
  int tensor = 1;
  int expert = 1;  // must be 1 if `tensor` is above 1
};

// Arranges ranks on the axes (data, expert, pipeline, tensor), with one group along each axis. The tensor axis varies fastest,
// so that its ranks share a node; then come pipeline, expert and data. Ranks along the data and expert axes have different
// samples. The constructor is collective.
class ProcessMesh {
 public:
  explicit ProcessMesh(const Group& world, const MeshOptions& options = {});

  const Group& world() const { return world_; }
  const Group& data() const { return data_; }          // replicas: same expert, pipeline and tensor coordinate
  const Group& pipeline() const { return pipeline_; }  // same data, expert and tensor coordinate
  const Group& tensor() const { return tensor_; }      // same data, expert and pipeline coordinate
  const Group& expert() const { return expert_; }      // same data, pipeline and tensor coordinate
  const Group& batch() const { return batch_; }        // ranks that divide a batch: same pipeline and tensor coordinate

 private:
  Group world_;
  Group data_;
  Group pipeline_;
  Group tensor_;
  Group expert_;
  Group batch_;
};

}  // namespace trireme

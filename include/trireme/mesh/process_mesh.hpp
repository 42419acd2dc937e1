#pragma once

#include "trireme/comm/base/group.hpp"
#include "trireme/core/export.hpp"

namespace trireme TRIREME_EXPORT {

struct MeshOptions {
  int data = 0;  // 0: what is left of the ranks
  int pipeline = 1;
  int tensor = 1;
};

// Ranks as points (data, pipeline, tensor), with one group along each axis. The tensor axis varies fastest, so that its ranks
// share a node; then pipeline, then data. Collective.
class ProcessMesh {
 public:
  explicit ProcessMesh(const Group& world, const MeshOptions& options = {});

  const Group& world() const { return world_; }
  const Group& data() const { return data_; }          // same pipeline and tensor coordinate
  const Group& pipeline() const { return pipeline_; }  // same data and tensor coordinate
  const Group& tensor() const { return tensor_; }      // same data and pipeline coordinate

 private:
  Group world_;
  Group data_;
  Group pipeline_;
  Group tensor_;
};

}  // namespace trireme

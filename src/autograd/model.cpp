#include "trireme/autograd/model.hpp"

#include "trireme/core/error.hpp"

namespace trireme {

int ModelContext::num_stages() const { return (pipeline == nullptr ? 1 : pipeline->size()) * chunks; }

std::vector<int> ModelContext::stages() const {
  const int ranks = pipeline == nullptr ? 1 : pipeline->size();
  std::vector<int> here;
  for (int stage = pipeline == nullptr ? 0 : pipeline->rank(); stage < num_stages(); stage += ranks) here.push_back(stage);
  return here;
}

void Model::share(int parameter, std::string module) {
  require(!store_.is_distributed(),
          "{} shares a parameter after the layers of its model were divided into stages: make it before layers()", module);
  shared_.push_back({parameter, std::move(module)});
}

Model::Model(const ModelContext& context, DType dtype, DType compute_dtype, const PlaneDevice& device)
    : context_(context), store_(dtype, compute_dtype, device) {
  require(context.chunks > 0, "a rank of a pipeline has at least one stage, got {}", context.chunks);
  if (context.lora) context.lora->check();
}

}  // namespace trireme

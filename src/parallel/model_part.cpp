#include "trireme/parallel/model_part.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>

#include "trireme/core/bfloat16.hpp"
#include "trireme/core/float16.hpp"
#include "trireme/parallel/settings.hpp"

namespace trireme::parallel {
namespace {

class GroupTransfer final : public TensorAxis::Transfer {
 public:
  explicit GroupTransfer(Pending pending) : pending_(std::move(pending)) {}
  bool done() override { return pending_.done(); }
  void wait() override { pending_.wait(); }

 private:
  Pending pending_;
};

// The collectives of a group, where it may have been split off for this alone.
class GroupAxis final : public TensorAxis {
 public:
  GroupAxis(const Group& group, bool sequence_parallel)
      : TensorAxis(group.rank(), group.size(), sequence_parallel), group_(group) {}

 private:
  std::unique_ptr<Transfer> start(Collective collective, void* data, std::size_t count, DType dtype,
                                  std::string_view name) const override {
    switch (dtype) {
      case DType::float64: return start(collective, std::span(static_cast<double*>(data), count), name);
      case DType::bfloat16: return start(collective, std::span(static_cast<bfloat16*>(data), count), name);
      case DType::float16: return start(collective, std::span(static_cast<float16*>(data), count), name);
      case DType::float32: return start(collective, std::span(static_cast<float*>(data), count), name);
      default:
        throw Error({.code = ErrorCode::invalid_argument,
                     .message = fmt::format("a tensor axis adds up numbers with a fraction, not {}", name_of(dtype))});
    }
  }

  template <typename T>
  std::unique_ptr<Transfer> start(Collective collective, std::span<T> data, std::string_view name) const {
    const auto started = [&] {
      switch (collective) {
        case Collective::all_reduce: return group_.all_reduce(data, ReduceOp::sum, name);
        case Collective::reduce_scatter: return group_.reduce_scatter(data, ReduceOp::sum, name);
        case Collective::all_gather: return group_.all_gather(data, name);
      }
      return Pending();
    };
    return std::make_unique<GroupTransfer>(started());
  }

  Group group_;
};

class GroupPipelineAxis final : public PipelineAxis {
 public:
  explicit GroupPipelineAxis(const Group& group) : PipelineAxis(group.rank(), group.size()), group_(group) {}

  std::vector<std::string> gather_texts(std::string_view text, std::string_view name) const override {
    return group_.gather_texts(text, name);
  }

 private:
  void send_bytes(std::span<const std::byte> data, int to, std::string_view name) const override {
    group_.send(std::span(reinterpret_cast<const std::uint8_t*>(data.data()), data.size()), to, 0, name);
  }
  void receive_bytes(std::span<std::byte> data, int from, std::string_view name) const override {
    group_.receive(numbers(data), from, 0, name).wait_on_host();
  }
  void broadcast_bytes(std::span<std::byte> data, int root, std::string_view name) const override {
    group_.broadcast(numbers(data), root, name).wait_on_host();
  }
  static std::span<std::uint8_t> numbers(std::span<std::byte> data) {
    return {reinterpret_cast<std::uint8_t*>(data.data()), data.size()};
  }

  Group group_;
};

}  // namespace

nn::ModelPart model_part(const ProcessMesh& mesh, const ModelPartOptions& options) {
  const Group& pipeline = mesh.pipeline();
  require(options.num_chunks > 0, "a rank of a pipeline has at least one stage, got {}", options.num_chunks);
  require_same(mesh.world(), "setting of the model part",
               {{"sequence_parallel", options.sequence_parallel ? "on" : "off"},
                {"num_chunks", std::to_string(options.num_chunks)},
                {"layer_costs", fmt::format("{}", fmt::join(options.layer_costs, ","))}});
  nn::ModelPart part{.num_stages = pipeline.size() * options.num_chunks, .stages = {}, .layer_costs = options.layer_costs};
  for (int chunk = 0; chunk < options.num_chunks; ++chunk) part.stages.push_back(chunk * pipeline.size() + pipeline.rank());
  if (pipeline.size() > 1) {
    const bool end = pipeline.rank() == 0 || pipeline.rank() == pipeline.size() - 1;
    const Group ends = pipeline.split(end ? 0 : 1, pipeline.rank(), "first and last stage");
    part.pipeline = std::make_shared<const GroupPipelineAxis>(pipeline.split(0, pipeline.rank(), "stages of a model"));
    if (end) part.ends = std::make_shared<const GroupAxis>(ends, false);
  }
  if (mesh.tensor().size() > 1) {
    const Group layers = mesh.tensor().split(0, mesh.tensor().rank(), "split layers");
    part.tensor = std::make_shared<const GroupAxis>(layers, options.sequence_parallel);
  }
  return part;
}

}  // namespace trireme::parallel

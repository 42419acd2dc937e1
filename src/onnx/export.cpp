#include "trireme/onnx/export.hpp"

#include <utility>

#include "onnx/builder.hpp"
#include "onnx/graph.hpp"
#include "onnx/trace.hpp"
#include "trireme/autograd/tape.hpp"
#include "trireme/core/error.hpp"
#include "trireme/files/file_system.hpp"

namespace trireme::onnx {
namespace {

// Sets evaluation mode while in scope.
class Evaluation {
 public:
  explicit Evaluation(Model& model) : modes_(model.modes()), before_(modes_) { modes_.set("", false); }
  ~Evaluation() { modes_ = before_; }
  Evaluation(const Evaluation&) = delete;
  Evaluation& operator=(const Evaluation&) = delete;

 private:
  TrainingModes& modes_;
  TrainingModes before_;
};

void require_whole(Model& model) {
  const ModelContext& context = model.context();
  require(context.tensor == nullptr && context.pipeline == nullptr && context.expert == nullptr,
          "this model is divided over ranks, but an ONNX file holds a whole model: make the model without axes, load its "
          "weights and export it");
  require(model.store().on_host() && model.store().dtype() == DType::float32,
          "only a model with float32 weights on the CPU can be exported to ONNX; it may compute in bfloat16 or float16");
  require(Tape::current() == nullptr, "export_model() records nothing: call it without a tape");
}

void require_place(const Location& path) {
  require(!path.empty(), "an export needs the name of a file to write");
  require(!is_folder(path), "{} is a folder, and an export writes a file", path);
}

detail::Trace trace(Model& model, int number, const std::function<void(Example&)>& pass) {
  detail::Tracer tracer(model, number);
  const Observation observation(tracer);
  Example example(tracer);
  pass(example);
  return tracer.take();
}

}  // namespace

Exported export_model(Model& model, const Location& path, const std::function<void(Example&)>& pass,
                      const ExportOptions& options) {
  require_place(path);
  require_whole(model);
  model.store().require_values();
  const Evaluation evaluation(model);
  const detail::Trace first = trace(model, 0, pass), second = trace(model, 1, pass);
  const Graph graph = detail::Builder(model, first, second).build();
  Exported exported{.nodes = std::ssize(graph.nodes)};
  for (const Initializer& initializer : graph.initializers) {
    if (!initializer.read) continue;
    ++exported.weights;
    exported.weight_bytes += initializer.num_bytes;
  }
  exported.external_data = exported.weight_bytes > options.external_data_above;
  write_graph(graph, path, options.metadata, exported.external_data);
  return exported;
}

}  // namespace trireme::onnx

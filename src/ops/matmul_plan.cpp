#include "ops/matmul_plan.hpp"

#include <omp.h>

#include <dnnl.hpp>
#include <map>
#include <unordered_map>

#include "trireme/core/error.hpp"
#include "trireme/device/memory.hpp"

namespace trireme::ops {
namespace {

using dnnl::memory;

struct Plan {
  dnnl::matmul product;
  memory a;
  memory b;
  memory bias;
  memory c;
  std::unordered_map<int, memory> arguments;
};

memory::desc matrix(std::int64_t rows, std::int64_t columns, bool transposed) {
  return {{rows, columns}, memory::data_type::f32, transposed ? memory::format_tag::ba : memory::format_tag::ab};
}

// The plans of one thread; oneDNN runs each on that thread's OpenMP team.
class PlanTable {
 public:
  void run(const MatmulKey& key, const float* a, const float* b, const float* bias, float* c) {
    auto found = plans_.find(key);
    if (found == plans_.end()) found = plans_.emplace(key, make(key)).first;
    Plan& plan = found->second;
    plan.a.set_data_handle(const_cast<float*>(a));  // oneDNN's handles are not const; operands are only read
    plan.b.set_data_handle(const_cast<float*>(b));
    if (key.bias) plan.bias.set_data_handle(const_cast<float*>(bias));
    plan.c.set_data_handle(c);
    plan.product.execute(stream_, plan.arguments);
  }

 private:
  Plan make(const MatmulKey& key) {
    const memory::desc a = matrix(key.m, key.k, key.transpose_a);
    const memory::desc b = matrix(key.k, key.n, key.transpose_b);
    const memory::desc c = matrix(key.m, key.n, false);
    const memory::desc bias = matrix(1, key.n, false);
    dnnl::primitive_attr attributes;
    attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    if (key.accumulate) {
      dnnl::post_ops sum;
      sum.append_sum();
      attributes.set_post_ops(sum);
    }
    const auto description = key.bias ? dnnl::matmul::desc(a, b, bias, c) : dnnl::matmul::desc(a, b, c);
    const dnnl::matmul::primitive_desc primitive(description, attributes, engine_);
    Plan plan{.product = dnnl::matmul(primitive),
              .a = memory(a, engine_, nullptr),
              .b = memory(b, engine_, nullptr),
              .bias = memory(bias, engine_, nullptr),
              .c = memory(c, engine_, nullptr),
              .arguments = {}};
    plan.arguments = {{DNNL_ARG_SRC, plan.a}, {DNNL_ARG_WEIGHTS, plan.b}, {DNNL_ARG_DST, plan.c}};
    if (key.bias) plan.arguments.emplace(DNNL_ARG_BIAS, plan.bias);
    plan.arguments.emplace(DNNL_ARG_SCRATCHPAD, scratchpad(primitive.scratchpad_desc()));
    return plan;
  }

  // One block serves all plans of a thread: they run one after the other.
  memory scratchpad(const memory::desc& wanted) {
    if (wanted.get_size() > (scratchpad_ ? scratchpad_->bytes() : 0)) {
      scratchpad_ = std::make_unique<device::Storage>(device::host_memory(), wanted.get_size());
      for (auto& [key, plan] : plans_) plan.arguments.at(DNNL_ARG_SCRATCHPAD).set_data_handle(scratchpad_->data());
    }
    return {wanted, engine_, scratchpad_ ? scratchpad_->data() : nullptr};
  }

  dnnl::engine engine_{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream_{engine_};
  std::map<MatmulKey, Plan> plans_;
  std::unique_ptr<device::Storage> scratchpad_;
};

}  // namespace

void run_matmul_plan(MatmulKey key, const float* a, const float* b, const float* bias, float* c) {
  if (key.m == 0 || key.n == 0) return;
  thread_local PlanTable table;
  key.threads = omp_get_max_threads();
  try {
    table.run(key, a, b, bias, c);
  } catch (const dnnl::error& error) {
    throw Error(
        {.code = ErrorCode::internal,
         .message = fmt::format("oneDNN refused a matrix product of {} x {} x {}: {}", key.m, key.n, key.k, error.what()),
         .operation = "matmul"});
  }
}

}  // namespace trireme::ops

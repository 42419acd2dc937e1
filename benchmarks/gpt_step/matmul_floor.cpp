#include "matmul_floor.hpp"

#include <algorithm>

#include "measurement/random_memory.hpp"
#include "ops/base/onednn.hpp"
#include "ops/matmul/matmul_plan.hpp"

namespace {

// The linear layers of a block before and after attention, and the results of the last layer.
struct Products {
  struct Linear {
    std::int64_t in;
    std::int64_t out;
    std::int64_t experts = 1;  // each computes its part of the rows of all choices
    std::int64_t choices = 1;
  };

  std::int64_t rows;
  std::int64_t time;
  std::int64_t heads;  // of all sequences
  std::int64_t head_size;
  int layers;
  std::vector<Linear> before;
  std::vector<Linear> behind;
  Linear last;

  std::vector<Product> of_step() const {
    std::vector<Product> products;
    const auto rows_of = [&](const Linear& linear) { return rows * linear.choices / linear.experts; };
    const auto forward = [&](const Linear& linear) {
      products.push_back({linear.experts, rows_of(linear), linear.out, linear.in, false, true});
    };
    const auto backward = [&](const Linear& linear) {
      products.push_back({linear.experts, linear.out, linear.in, rows_of(linear), true, false});  // of the weight
      products.push_back({linear.experts, rows_of(linear), linear.in, linear.out, false, false});
    };
    for (int layer = 0; layer < layers; ++layer) {
      std::ranges::for_each(before, forward);
      products.push_back({heads, time, time, head_size, false, true});
      products.push_back({heads, time, head_size, time, false, false});
      std::ranges::for_each(behind, forward);
    }
    forward(last);
    backward(last);
    for (int layer = 0; layer < layers; ++layer) {
      for (auto linear = behind.rbegin(); linear != behind.rend(); ++linear) backward(*linear);
      products.push_back({heads, time, head_size, time, true, false});   // dv = p^T do
      products.push_back({heads, time, time, head_size, false, true});   // dp = do v^T
      products.push_back({heads, time, head_size, time, false, false});  // dq = ds k
      products.push_back({heads, time, head_size, time, true, false});   // dk = ds^T q
      for (auto linear = before.rbegin(); linear != before.rend(); ++linear) backward(*linear);
    }
    return products;
  }
};

}  // namespace

std::vector<Product> products_of_step(const trireme::models::GptOptions& model, std::int64_t batch) {
  const std::int64_t width = model.width;
  return Products{.rows = batch * model.block,
                  .time = model.block,
                  .heads = batch * model.heads,
                  .head_size = width / model.heads,
                  .layers = model.layers,
                  .before = {{width, 3 * width}},
                  .behind = {{width, width}, {width, 4 * width}, {4 * width, width}},
                  .last = {width, model.vocabulary}}
      .of_step();
}

std::vector<Product> products_of_step(const trireme::models::LlamaOptions& model, std::int64_t batch) {
  const std::int64_t width = model.width;
  const std::int64_t size = model.head_size == 0 ? width / model.heads : model.head_size;
  const std::int64_t kv_heads = model.kv_heads == 0 ? model.heads : model.kv_heads;
  const std::int64_t experts = std::max<std::int64_t>(model.experts.count, 1);
  const std::int64_t choices = model.experts.count > 0 ? model.experts.top_k : 1;
  return Products{.rows = batch * model.block,
                  .time = model.block,
                  .heads = batch * model.heads,
                  .head_size = size,
                  .layers = model.layers,
                  .before = {{width, (model.heads + 2 * kv_heads) * size}},
                  .behind = {{model.heads * size, width},
                             {width, model.hidden, experts, choices},
                             {width, model.hidden, experts, choices},
                             {model.hidden, width, experts, choices}},
                  .last = {width, model.vocabulary}}
      .of_step();
}

struct MatmulFloor::Plans {
  struct Plan {
    dnnl::matmul primitive;
    std::unordered_map<int, dnnl::memory> arguments;
  };
  dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream{engine};
  RandomMemory random_memory{engine};
  std::vector<Plan> plans;

  static dnnl::memory::desc matrix(std::int64_t batch, std::int64_t rows, std::int64_t columns, bool transposed,
                                   trireme::DType dtype) {
    const auto type = trireme::ops::onednn_type(dtype);
    const dnnl::memory::dims strides =
        transposed ? dnnl::memory::dims{rows * columns, 1, rows} : dnnl::memory::dims{rows * columns, columns, 1};
    if (batch > 1) return {{batch, rows, columns}, type, strides};
    return {{rows, columns}, type, {strides[1], strides[2]}};
  }
};

MatmulFloor::MatmulFloor(const std::vector<Product>& products, trireme::DType dtype) : plans_(std::make_unique<Plans>()) {
  for (const Product& product : products) {
    const auto a = Plans::matrix(product.batch, product.m, product.k, product.transpose_a, dtype);
    const auto b = Plans::matrix(product.batch, product.k, product.n, product.transpose_b, dtype);
    const bool weight_gradient = product.batch == 1 && product.transpose_a;
    const auto c = Plans::matrix(product.batch, product.m, product.n, false, weight_gradient ? trireme::DType::float32 : dtype);
    trireme::ops::PrimitiveOptions options{plans_->engine};
    if (product.batch == 1 && dtype == trireme::DType::float32) options.leave_out = trireme::ops::product_in_place;
    const auto description = trireme::ops::describe<dnnl::matmul>(options, a, b, c);
    plans_->plans.push_back({dnnl::matmul(description),
                             {{DNNL_ARG_SRC, plans_->random_memory(a)},
                              {DNNL_ARG_WEIGHTS, plans_->random_memory(b)},
                              {DNNL_ARG_DST, plans_->random_memory(c)}}});
  }
}

std::unique_ptr<MatmulFloor> MatmulFloor::make(const std::vector<Product>& products, trireme::DType dtype) {
  if (!trireme::ops::has_matmul(dtype)) return nullptr;
  return std::make_unique<MatmulFloor>(products, dtype);
}

MatmulFloor::~MatmulFloor() = default;

void MatmulFloor::run() {
  for (auto& plan : plans_->plans) plan.primitive.execute(plans_->stream, plan.arguments);
  plans_->stream.wait();
}

#include "matmul_floor.hpp"

#include <algorithm>
#include <dnnl.hpp>
#include <random>

std::vector<Product> products_of_step(const trireme::models::GptOptions& model, std::int64_t batch) {
  const std::int64_t rows = batch * model.block;
  const std::int64_t width = model.width;
  const std::int64_t head_size = width / model.heads;
  const std::int64_t heads = batch * model.heads;
  const std::int64_t time = model.block;
  const auto forward = [&](std::int64_t in, std::int64_t out) { return Product{1, rows, out, in, false, true}; };

  std::vector<Product> products;
  for (int layer = 0; layer < model.layers; ++layer) {
    products.push_back(forward(width, 3 * width));
    products.push_back({heads, time, time, head_size, false, true});
    products.push_back({heads, time, head_size, time, false, false});
    products.push_back(forward(width, width));
    products.push_back(forward(width, 4 * width));
    products.push_back(forward(4 * width, width));
  }
  products.push_back(forward(width, model.vocabulary));

  const auto backward = [&](std::int64_t in, std::int64_t out) {
    products.push_back({1, out, in, rows, true, false});  // of the weight
    products.push_back({1, rows, in, out, false, false});
  };
  backward(width, model.vocabulary);
  for (int layer = 0; layer < model.layers; ++layer) {
    backward(4 * width, width);
    backward(width, 4 * width);
    backward(width, width);
    products.push_back({heads, time, head_size, time, true, false});   // dv = p^T do
    products.push_back({heads, time, time, head_size, false, true});   // dp = do v^T
    products.push_back({heads, time, head_size, time, false, false});  // dq = ds k
    products.push_back({heads, time, head_size, time, true, false});   // dk = ds^T q
    backward(width, 3 * width);
  }
  return products;
}

struct MatmulFloor::Plans {
  struct Plan {
    dnnl::matmul primitive;
    std::unordered_map<int, dnnl::memory> arguments;
  };
  dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream{engine};
  std::vector<Plan> plans;

  dnnl::memory random_memory(const dnnl::memory::desc& layout) {
    dnnl::memory memory(layout, engine);
    auto* values = static_cast<float*>(memory.get_data_handle());
    std::generate_n(values, layout.get_size() / sizeof(float), [this] { return distribution(generator); });
    return memory;
  }

  static dnnl::memory::desc matrix(std::int64_t batch, std::int64_t rows, std::int64_t columns, bool transposed) {
    const dnnl::memory::dims strides =
        transposed ? dnnl::memory::dims{rows * columns, 1, rows} : dnnl::memory::dims{rows * columns, columns, 1};
    if (batch > 1) return {{batch, rows, columns}, dnnl::memory::data_type::f32, strides};
    return {{rows, columns}, dnnl::memory::data_type::f32, {strides[1], strides[2]}};
  }

  std::minstd_rand generator{1};
  std::uniform_real_distribution<float> distribution{-1, 1};
};

MatmulFloor::MatmulFloor(const std::vector<Product>& products) : plans_(std::make_unique<Plans>()) {
  for (const Product& product : products) {
    const auto a = Plans::matrix(product.batch, product.m, product.k, product.transpose_a);
    const auto b = Plans::matrix(product.batch, product.k, product.n, product.transpose_b);
    const auto c = Plans::matrix(product.batch, product.m, product.n, false);
    const dnnl::matmul::primitive_desc description(dnnl::matmul::desc(a, b, c), plans_->engine);
    plans_->plans.push_back({dnnl::matmul(description),
                             {{DNNL_ARG_SRC, plans_->random_memory(a)},
                              {DNNL_ARG_WEIGHTS, plans_->random_memory(b)},
                              {DNNL_ARG_DST, plans_->random_memory(c)}}});
  }
}

MatmulFloor::~MatmulFloor() = default;

void MatmulFloor::run() {
  for (auto& plan : plans_->plans) plan.primitive.execute(plans_->stream, plan.arguments);
  plans_->stream.wait();
}

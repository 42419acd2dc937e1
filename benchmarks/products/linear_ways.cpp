#include "ops/matmul/packed_product.hpp"
#include "products/operands.hpp"
#include "products/ways.hpp"
#include "trireme/ops/matmul/matmul.hpp"

using namespace trireme;

namespace {

// c[m, n] = op(a) op(b).
struct Product {
  std::int64_t m;
  std::int64_t n;
  std::int64_t k;
  bool transpose_a;
  bool transpose_b;

  Shape a() const { return transpose_a ? Shape{k, m} : Shape{m, k}; }
  Shape b() const { return transpose_b ? Shape{n, k} : Shape{k, n}; }
};

Product product_of(const LinearLayer& layer, LayerPass pass) {
  const auto& [rows, in, out, times, passes] = layer;
  switch (pass) {
    case LayerPass::forward: return {.m = rows, .n = out, .k = in, .transpose_a = false, .transpose_b = true};
    case LayerPass::data: return {.m = rows, .n = in, .k = out, .transpose_a = false, .transpose_b = false};
    case LayerPass::weight: break;
  }
  return {.m = out, .n = in, .k = rows, .transpose_a = true, .transpose_b = false};
}

dnnl::memory::desc matrix(std::int64_t rows, std::int64_t columns, bool transposed) {
  using Dims = dnnl::memory::dims;
  return {Dims{rows, columns}, dnnl::memory::data_type::f32, transposed ? Dims{1, rows} : Dims{columns, 1}};
}

Way onednn(const std::string& name, const Product& product, bool packed) {
  const auto a = matrix(product.m, product.k, product.transpose_a);
  const auto any = dnnl::memory::desc({product.k, product.n}, dnnl::memory::data_type::f32, dnnl::memory::format_tag::any);
  const auto b = packed ? any : matrix(product.k, product.n, product.transpose_b);
  const auto c = matrix(product.m, product.n, false);
  ops::PrimitiveOptions options{Plan::engine()};
  if (!packed) options.leave_out = ops::product_in_place;
  const auto found = ops::describe<dnnl::matmul>(options, a, b, c);
  auto plan = std::make_shared<Plan>(
      dnnl::matmul(found),
      std::unordered_map<int, dnnl::memory::desc>{
          {DNNL_ARG_SRC, found.src_desc()}, {DNNL_ARG_WEIGHTS, found.weights_desc()}, {DNNL_ARG_DST, found.dst_desc()}});
  return {.name = name, .run = [plan] { plan->run(); }};
}

}  // namespace

std::vector<Way> ways_of(const LinearLayer& layer, LayerPass pass, const Blas& blas) {
  const Product product = product_of(layer, pass);
  const Tensor<float> a = filled(product.a());
  const Tensor<float> b = filled(product.b());
  Tensor<float> c = filled({product.m, product.n});
  std::vector<Way> ways;
  if (pass == LayerPass::forward) {
    ways.push_back({.name = "library", .run = [=]() mutable { ops::linear(a, b, Tensor<float>(), c); }});
  } else {
    ways.push_back({.name = "library", .run = [=]() mutable {
                      ops::matmul(a, b, c, {.transpose_a = product.transpose_a, .transpose_b = product.transpose_b});
                    }});
  }
  const ops::MatmulShape shape{
      .m = product.m, .n = product.n, .k = product.k, .transpose_a = product.transpose_a, .transpose_b = product.transpose_b};
  ways.push_back(
      {.name = "own", .run = [=]() mutable { ops::run_packed_product(shape, a.data(), b.data(), nullptr, c.data()); }});
  ways.push_back(onednn("oneDNN", product, false));
  ways.push_back(onednn("oneDNN, packed", product, true));
  ways.push_back({.name = "BLAS"});
  if (blas) {
    ways.back().run = [=, &blas] {
      blas.multiply(product.transpose_a, product.transpose_b, static_cast<int>(product.m), static_cast<int>(product.n),
                    static_cast<int>(product.k), a.data(), b.data(), c.data());
    };
  }
  return ways;
}

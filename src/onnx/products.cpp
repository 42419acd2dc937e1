#include "onnx/builder.hpp"

// Matrix products, embeddings and softmax.
namespace trireme::onnx::detail {

std::string gelu_tanh_of(Builder& b, const std::string& x);

namespace {

// x weight^T + bias. A weight lies in the file once, also where an embedding looks up its rows.
std::string linear_of(Builder& b, const std::string& x, std::size_t dims, std::size_t weight, std::size_t bias) {
  if (dims == 2) {
    std::vector<std::string> operands{x, b.operand(weight)};
    if (b.has(bias)) operands.push_back(b.operand(bias));
    return b.node("Gemm", operands, {{"transB", std::int64_t{1}}});
  }
  const std::string w = b.operand(weight);
  const std::string turned = b.once("transposed " + w, [&] { return b.transpose(w, {1, 0}); });
  const std::string product = b.node("MatMul", {x, turned});
  return b.has(bias) ? b.node("Add", {product, b.operand(bias)}) : product;
}

void linear(Builder& b) { b.set_result(linear_of(b, b.operand(0), b.dims(0).size(), 1, 2)); }

void linear_gelu_linear(Builder& b) {
  const std::size_t dims = b.dims(0).size();
  const std::string middle = linear_of(b, b.operand(0), dims, 1, 2);
  b.set_result(linear_of(b, gelu_tanh_of(b, middle), dims, 3, 4));
}

void matmul(Builder& b) { b.set_result(b.node("MatMul", {b.operand(0), b.operand(1)})); }

void embedding(Builder& b) { b.set_result(b.node("Gather", {b.operand(1), b.operand(0)}, {{"axis", std::int64_t{0}}})); }

// The embeddings of tokens [batch, time] plus those of positions from 0 on.
void token_embedding(Builder& b) {
  const Dim time = b.dims(0).at(1);
  const std::string of_tokens = b.node("Gather", {b.operand(1), b.operand(0)}, {{"axis", std::int64_t{0}}});
  const std::string positions = b.node("Slice", {b.operand(2), b.numbers_of({0}), b.extents({time}), b.numbers_of({0})});
  b.set_result(b.node("Add", {of_tokens, positions}));
}

void softmax(Builder& b) { b.set_result(b.node("Softmax", {b.operand(0)}, {{"axis", std::int64_t{-1}}})); }
void log_softmax(Builder& b) { b.set_result(b.node("LogSoftmax", {b.operand(0)}, {{"axis", std::int64_t{-1}}})); }

void refuse_adapter(Builder& b) { b.refuse("adds an adapter; merge them into the weights by nn::merge_adapter() first"); }

}  // namespace

void add_products(Emitters& to) {
  to["linear"] = linear;
  to["linear_gelu_linear"] = linear_gelu_linear;
  to["matmul"] = matmul;
  to["embedding"] = embedding;
  to["token_embedding"] = token_embedding;
  to["add_low_rank"] = refuse_adapter;
  to["softmax"] = softmax;
  to["log_softmax"] = log_softmax;
}

}  // namespace trireme::onnx::detail

#include <fmt/format.h>

#include <cmath>

#include "onnx/builder.hpp"
#include "trireme/ops/elementwise/rotary.hpp"

// Attention as products and a softmax, and rotary positions.
namespace trireme::onnx::detail {
namespace {

std::string unsqueezed(Builder& b, const std::string& x, const Numbers& dims) {
  return b.node("Unsqueeze", {x, b.numbers_of(dims)});
}

// The last dim of x cut into parts.
std::vector<std::string> cut(Builder& b, const std::string& x, const Numbers& sizes) {
  if (sizes.size() == 1) return {x};
  return b.nodes("Split", {x, b.numbers_of(sizes)}, sizes.size(), {{"axis", std::int64_t{-1}}});
}

// [queries, keys], true where a query does not see a key by its place.
std::string hidden_places(Builder& b, const Dim& queries, const Dim& keys, std::int64_t window) {
  return b.once(fmt::format("hidden {} {}", key_of({queries, keys}), window), [&] {
    std::string row = b.positions(queries);
    if (queries != keys) row = b.node("Add", {row, b.node("Sub", {b.extent(keys), b.extent(queries)})});
    const std::string distance = b.node("Sub", {unsqueezed(b, row, {1}), b.positions(keys)});
    std::string hidden = b.node("Less", {distance, b.numbers_of({0}, true)});
    if (window == 0) return hidden;
    const std::string far = b.node("GreaterOrEqual", {distance, b.numbers_of({window}, true)});
    return b.node("Or", {hidden, far});
  });
}

struct Heads {
  std::int64_t count, kv, size, value_size;
};

Heads heads_of(const Builder& b) {
  Heads heads{.count = b.whole("heads"), .kv = b.whole("kv_heads"), .size = 0, .value_size = b.whole("value_size")};
  if (heads.kv == 0) heads.kv = heads.count;
  const std::int64_t width = b.fixed(b.dims(0).back());
  if (b.has(1)) {
    heads.size = width / heads.count;
  } else if (heads.value_size == 0) {
    heads.size = width / (heads.count + 2 * heads.kv);
  } else {
    heads.size = (width - heads.kv * heads.value_size) / (heads.count + heads.kv);
  }
  if (heads.value_size == 0) heads.value_size = heads.size;
  return heads;
}

// Operands: queries, or packed queries, keys and values; keys and values; a mask. Heads that share keys form their own dim.
void attention(Builder& b) {
  const Heads heads = heads_of(b);
  const Dims of_q = b.dims(0);
  const Dims of_kv = b.has(1) ? b.dims(1) : of_q;
  if (b.has(3)) b.refuse("sees documents that are packed in rows: give the export batches without document_starts");
  const Dim keys = b.dynamic_whole("keys");
  if (keys != Dim(0) && keys != of_kv[1]) b.refuse("reads a cache");
  const std::int64_t q_width = heads.count * heads.size, k_width = heads.kv * heads.size, v_width = heads.kv * heads.value_size;
  std::vector<std::string> parts;
  if (b.has(1)) {
    parts = cut(b, b.operand(1), {k_width, v_width});
    parts.insert(parts.begin(), b.operand(0));
  } else {
    parts = cut(b, b.operand(0), {q_width, k_width, v_width});
  }
  const std::int64_t group = heads.count / heads.kv;
  const bool shares = group > 1;
  const auto split = [&](const std::string& x, const Dims& dims, std::int64_t of_group, std::int64_t size, const Numbers& plain,
                         const Numbers& shared) {
    const Dims from{dims[0], dims[1], heads.kv * of_group * size};
    const Dims to = shares ? Dims{dims[0], dims[1], heads.kv, of_group, size} : Dims{dims[0], dims[1], heads.kv, size};
    return b.transpose(b.reshape(x, from, to), shares ? shared : plain);
  };
  const double scale = b.real("scale") == 0 ? 1 / std::sqrt(static_cast<double>(heads.size)) : b.real("scale");
  const std::string q =
      b.node("Mul", {split(parts[0], of_q, group, heads.size, {0, 2, 1, 3}, {0, 2, 3, 1, 4}), b.number(scale)});
  const std::string k = split(parts[1], of_kv, 1, heads.size, {0, 2, 3, 1}, {0, 2, 3, 4, 1});
  const std::string v = split(parts[2], of_kv, 1, heads.value_size, {0, 2, 1, 3}, {0, 2, 3, 1, 4});
  std::string scores = b.node("MatMul", {q, k});
  std::string hidden;
  if (b.whole("causal") != 0) hidden = hidden_places(b, of_q[1], of_kv[1], b.whole("window"));
  const bool is_padded = b.has(2);
  if (is_padded) {
    if (b.is_made_by_program(2)) b.refuse("has a padding mask that is no input; make it by Example::padding_mask()");
    const std::string mask = b.operand(2);
    const std::string padding = b.once(fmt::format("padding {} {}", mask, shares), [&] {
      return unsqueezed(b, b.cast(mask, Type::boolean), shares ? Numbers{1, 2, 3} : Numbers{1, 2});
    });
    hidden = hidden.empty() ? padding : b.once("hidden " + hidden + padding, [&] { return b.node("Or", {hidden, padding}); });
  }
  if (!hidden.empty()) scores = b.node("Where", {hidden, b.number(-1e30), scores});
  std::string shares_of_keys = b.node("Softmax", {scores}, {{"axis", std::int64_t{-1}}});
  if (is_padded) shares_of_keys = b.node("Where", {hidden, b.number(0), shares_of_keys});  // zeros where no key is seen
  const std::string out =
      b.transpose(b.node("MatMul", {shares_of_keys, v}), shares ? Numbers{0, 3, 1, 2, 4} : Numbers{0, 2, 1, 3});
  const Dims from = shares ? Dims{of_q[0], of_q[1], heads.kv, group, heads.value_size}
                           : Dims{of_q[0], of_q[1], heads.count, heads.value_size};
  b.set_result(b.reshape(out, from, b.result_dims()));
}

ops::RotaryOptions rotary_options(const Builder& b) {
  ops::RotaryOptions options{.size = b.whole("size"), .heads = b.whole("heads"), .first_position = b.whole("first_position")};
  options.base = b.real("base");
  options.scaling = {.kind = static_cast<ops::RotaryScalingKind>(b.whole("scaling")),
                     .factor = b.real("factor"),
                     .trained_positions = b.real("trained_positions"),
                     .low_frequency = b.real("low_frequency"),
                     .high_frequency = b.real("high_frequency"),
                     .beta_fast = b.real("beta_fast"),
                     .beta_slow = b.real("beta_slow"),
                     .truncate = b.whole("truncate") != 0,
                     .attention_factor = b.real("attention_factor")};
  return options;
}

// Cosines or sines [time, 1, size / 2] of the angles at each position.
std::string turns(Builder& b, std::string_view function, const Dim& time, const ops::RotaryOptions& options) {
  const std::string frequencies = b.floats(ops::rotary_frequencies(options));
  const double factor = options.scaling.kind == ops::RotaryScalingKind::yarn ? options.scaling.attention_factor : 1;
  const std::string key = fmt::format("{} {} {} {}", key_of({time}), frequencies, factor, options.first_position);
  const std::string angles = b.once("angles " + key, [&] {
    const std::string positions = b.cast(b.positions(time, options.first_position), Type::float32);
    return b.node("Mul", {unsqueezed(b, positions, {1, 2}), frequencies});
  });
  return b.once(std::string(function) + " of " + key, [&] {
    const std::string turned = b.node(function, {angles});
    return factor == 1 ? turned : b.node("Mul", {turned, b.number(factor)});
  });
}

void rotary(Builder& b) {
  if (b.has(1))
    b.refuse("counts positions of documents that are packed in rows: give the export batches without document_starts");
  const ops::RotaryOptions options = rotary_options(b);
  const Dims dims = b.dims(0);
  const std::int64_t half = options.size / 2, turned = options.heads * options.size, rest = b.fixed(dims[2]) - turned;
  std::vector<std::string> parts = cut(b, b.operand(0), rest > 0 ? Numbers{turned, rest} : Numbers{turned});
  const Dims flat{dims[0], dims[1], turned}, by_head{dims[0], dims[1], options.heads, options.size};
  const auto halves = cut(b, b.reshape(parts[0], flat, by_head), {half, half});
  const std::string cosines = turns(b, "Cos", dims[1], options), sines = turns(b, "Sin", dims[1], options);
  const auto times = [&](const std::string& x, const std::string& y) { return b.node("Mul", {x, y}); };
  const std::string first = b.node("Sub", {times(halves[0], cosines), times(halves[1], sines)});
  const std::string second = b.node("Add", {times(halves[1], cosines), times(halves[0], sines)});
  parts[0] = b.reshape(b.node("Concat", {first, second}, {{"axis", std::int64_t{-1}}}), by_head, flat);
  b.set_result(parts.size() == 1 ? parts[0] : b.node("Concat", parts, {{"axis", std::int64_t{-1}}}));
}

}  // namespace

void add_attention(Emitters& to) {
  to["scaled_dot_product_attention"] = attention;
  to["rotary"] = rotary;
}

}  // namespace trireme::onnx::detail

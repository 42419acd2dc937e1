#include <string_view>

#include "onnx/builder.hpp"

namespace trireme::onnx::detail {
namespace {

// Operands: x, h0, c0, then the weight_ih of all directions, their weight_hh, bias_ih and bias_hh, and lengths.
struct Operands {
  std::size_t directions;
  std::size_t weight_ih, weight_hh, bias_ih, bias_hh, lengths;

  explicit Operands(const Builder& b)
      : directions((b.num_operands() - 4) / 4),
        weight_ih(3),
        weight_hh(3 + directions),
        bias_ih(3 + 2 * directions),
        bias_hh(3 + 3 * directions),
        lengths(3 + 4 * directions) {}
};

std::string joined(Builder& b, const std::vector<std::string>& parts) {
  return parts.size() == 1 ? parts[0] : b.node("Concat", parts, {{"axis", std::int64_t{0}}});
}

// Reorders a weight's gates [gates * hidden, ...] as in ONNX: i, o, f, c for an LSTM and z, r, h for a GRU.
std::string in_order(Builder& b, const std::string& weight, bool lstm, std::int64_t hidden) {
  const std::vector<std::size_t> order = lstm ? std::vector<std::size_t>{0, 3, 1, 2} : std::vector<std::size_t>{1, 0, 2};
  const auto gates =
      b.nodes("Split", {weight, b.numbers_of(Numbers(order.size(), hidden))}, order.size(), {{"axis", std::int64_t{0}}});
  std::vector<std::string> ordered;
  for (const std::size_t gate : order) ordered.push_back(gates[gate]);
  return joined(b, ordered);
}

void recurrent_layer(Builder& b) {
  const Operands at(b);
  if (b.has(at.lengths)) b.refuse("reads sequences of several lengths");
  const bool lstm = b.has(2);
  const std::int64_t hidden = b.dims(at.weight_hh)[1].first;
  const auto of_directions = [&](const auto& make) {
    std::vector<std::string> parts;
    for (std::size_t i = 0; i < at.directions; ++i) parts.push_back(b.node("Unsqueeze", {make(i), b.numbers_of({0})}));
    return joined(b, parts);
  };
  const auto weights = [&](std::size_t first) {
    return of_directions([&](std::size_t i) { return in_order(b, b.operand(first + i), lstm, hidden); });
  };
  std::vector<std::string> operands{b.transpose(b.operand(0), {1, 0, 2}), weights(at.weight_ih), weights(at.weight_hh)};
  operands.push_back(!b.has(at.bias_ih) ? std::string() : of_directions([&](std::size_t i) {
    return joined(b,
                  {in_order(b, b.operand(at.bias_ih + i), lstm, hidden), in_order(b, b.operand(at.bias_hh + i), lstm, hidden)});
  }));
  operands.insert(operands.end(), {std::string(), b.operand(1)});  // no lengths
  if (lstm) operands.push_back(b.operand(2));
  std::vector<Attribute> attributes{{"hidden_size", hidden},
                                    {"direction", std::string(at.directions == 2 ? "bidirectional" : "forward")}};
  if (!lstm) attributes.push_back({"linear_before_reset", std::int64_t{1}});
  const auto results = b.nodes(lstm ? "LSTM" : "GRU", operands, lstm ? 3 : 2, attributes);
  const Dims out = b.result_dims();
  const Dims by_direction{out[0], out[1], static_cast<std::int64_t>(at.directions), hidden};
  b.set_result(b.reshape(b.transpose(results[0], {2, 0, 1, 3}), by_direction, out));  // of [time, directions, batch, hidden]
  for (std::size_t i = 1; i < results.size(); ++i) b.set_result(results[i], i);
}

}  // namespace

void add_recurrent(Emitters& to) { to["recurrent_layer"] = recurrent_layer; }

}  // namespace trireme::onnx::detail

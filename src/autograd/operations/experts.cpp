#include "trireme/autograd/operations/experts.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "precision/instantiate.hpp"
#include "trireme/autograd/record.hpp"
#include "trireme/core/bfloat16.hpp"
#include "trireme/core/float16.hpp"

namespace trireme {
namespace {

void describe_rows(const ops::ExpertRows& rows, Attributes& to) {
  to["experts"] = rows.experts();
  to["limited"] = std::int64_t{rows.limited};
}

struct TakeExpertRows {
  static constexpr std::string_view name = "take_expert_rows";
  ExpertRows rows;
  void forward(const auto& x, auto& y) const { ops::take_expert_rows(*rows, x, y); }
  void describe(Attributes& to) const { describe_rows(*rows, to); }
  void backward(const auto& dy, const auto& dx) const {
    dx.contribute([&](auto& out, bool accumulate) { ops::take_expert_rows_backward(*rows, dy, out, accumulate); });
  }
};

struct ExpertLinear {
  static constexpr std::string_view name = "expert_linear";
  ExpertRows rows;
  void forward(const auto& x, const auto& weight, auto& y) const { ops::expert_linear(*rows, x, weight, y); }
  void describe(Attributes& to) const { describe_rows(*rows, to); }
  void input_gradients(const auto& dy, const auto&, const auto& weight, const auto& dx, const auto&) const {
    dx.contribute([&](auto& out, bool accumulate) { ops::expert_linear_input_gradient(*rows, dy, weight, out, accumulate); });
  }
  void weight_gradients(const auto& dy, const auto& x, const auto&, const auto&, const auto& dweight) const {
    dweight.contribute([&](auto& out, bool accumulate) { ops::expert_linear_weight_gradient(*rows, dy, x, out, accumulate); });
  }
};

struct CombineExpertRows {
  static constexpr std::string_view name = "combine_expert_rows";
  ExpertRows rows;
  void forward(const auto& x, const auto& weights, auto& y) const { ops::combine_expert_rows(*rows, x, weights, y); }
  void describe(Attributes& to) const { describe_rows(*rows, to); }
  template <typename T, typename D, typename A>
  void backward(const Tensor<T, D>& dy, const Tensor<T, D>& x, const Tensor<A, D>& weights, const Gradient<T, D>& dx,
                const Gradient<A, D>& dweights) const {
    Tensor<T, D> of_x = dx.needed() ? Tensor<T, D>(x.shape()) : Tensor<T, D>();
    Tensor<A, D> of_weights = dweights.needed() ? Tensor<A, D>(weights.shape()) : Tensor<A, D>();
    ops::combine_expert_rows_backward(*rows, dy, x, weights, of_x, of_weights);
    if (dx.needed()) dx.give(std::move(of_x));
    if (dweights.needed()) dweights.give(std::move(of_weights));
  }
};

std::int64_t total(const std::vector<std::int64_t>& counts) { return std::reduce(counts.begin(), counts.end()); }

// Sends never block, so all ranks send first and then receive.
template <typename T, typename D>
void send_and_receive(const Tensor<T, D>& x, const RowExchange& exchange, const Collectives& axis, std::string_view name,
                      Tensor<T, D>& y) {
  const auto each = [&axis](const Tensor<T, D>& all, const std::vector<std::int64_t>& counts, const auto& use) {
    std::int64_t first = 0;
    for (int rank = 0; rank < axis.size(); ++rank) {
      const std::int64_t count = counts[static_cast<std::size_t>(rank)];
      if (count > 0) use(rank, all.narrow(first, count));
      first += count;
    }
  };
  Tensor<T, D> kept;
  each(x, exchange.to, [&](int rank, const Tensor<T, D>& rows) {
    if (rank == axis.rank()) {
      kept = rows;
    } else {
      axis.send(std::span<const T>(rows.span()), rank, 0, name);
    }
  });
  std::vector<Pending> pending;
  each(y, exchange.from, [&](int rank, const Tensor<T, D>& rows) {
    if (rank == axis.rank()) {
      device::copy_bytes(D{}, rows.data(), D{}, kept.data(), rows.span().size_bytes());
    } else {
      pending.push_back(axis.receive(rows.span(), rank, 0, name));
    }
  });
  for (Pending& each_receive : pending) each_receive.wait_on_stream();
}

struct ExchangeRows {
  static constexpr std::string_view name = "exchange_rows";
  static constexpr bool repeatable = false;
  RowExchange exchange;
  const Collectives& axis;

  void forward(const auto& x, auto& y) const { send_and_receive(x, exchange, axis, "rows of experts", y); }
  template <typename T, typename D>
  void backward(const Tensor<T, D>& dy, const Gradient<T, D>& dx) const {
    Tensor<T, D> back({total(exchange.to), dy.dim(1)});
    send_and_receive(dy, {.to = exchange.from, .from = exchange.to}, axis, "gradients of rows of experts", back);
    dx.give(std::move(back));
  }
};

Shape matrix_of(std::string_view name, const Shape& x, std::int64_t rows, std::int64_t width) {
  require(x.size() == 2, "{}: x has shape {}, but needs two dims", name, x);
  return {rows, width};
}

}  // namespace

template <typename T, typename D>
Variable<T, D> take_expert_rows(const Variable<T, D>& x, const ExpertRows& rows) {
  const auto result = [&] { return Result<T, D>{matrix_of(TakeExpertRows::name, x.shape(), rows->count(), x.shape().back())}; };
  return record(TakeExpertRows{rows}, result, x);
}

template <typename T, typename D>
Variable<T, D> expert_linear(const Variable<T, D>& x, const Variable<T, D, Accumulate<T>>& weight, const ExpertRows& rows) {
  const auto result = [&] {
    require(weight.shape().size() == 2 && weight.shape()[0] % rows->experts() == 0,
            "expert_linear: a weight {} does not have equally many rows for each of {} experts", weight.shape(),
            rows->experts());
    return Result<T, D>{matrix_of(ExpertLinear::name, x.shape(), rows->count(), weight.shape()[0] / rows->experts())};
  };
  return record(ExpertLinear{rows}, result, kept(x), kept(trireme::weight(weight)));
}

template <typename T, typename D>
Variable<T, D> combine_expert_rows(const Variable<T, D>& x, const Variable<Accumulate<T>, D>& weights, const ExpertRows& rows) {
  const auto result = [&] {
    return Result<T, D>{matrix_of(CombineExpertRows::name, x.shape(), rows->tokens, x.shape().back())};
  };
  return record(CombineExpertRows{rows}, result, kept(x), kept(weights));
}

template <typename T, typename D>
Variable<T, D> exchange_rows(const Variable<T, D>& x, const RowExchange& exchange, const Collectives& axis) {
  const auto result = [&] {
    require(x.shape().size() == 2 && x.shape()[0] == total(exchange.to) && std::ssize(exchange.to) == axis.size() &&
                std::ssize(exchange.from) == axis.size(),
            "exchange_rows: x {} is not made of the {} rows for {} ranks", x.shape(), total(exchange.to), axis.size());
    return Result<T, D>{{total(exchange.from), x.shape()[1]}};
  };
  return record(ExchangeRows{exchange, axis}, result, x);
}

TRIREME_INSTANTIATE(FLOATS, take_expert_rows, TRIREME_DEVICE)
TRIREME_INSTANTIATE(FLOATS, exchange_rows, TRIREME_DEVICE)
TRIREME_INSTANTIATE(FLOATS, expert_linear, TRIREME_DEVICE)
TRIREME_INSTANTIATE(FLOATS, combine_expert_rows, TRIREME_DEVICE)

}  // namespace trireme

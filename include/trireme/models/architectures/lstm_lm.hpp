#pragma once

#include "trireme/core/export.hpp"
#include "trireme/data/text/token_batch.hpp"
#include "trireme/nn/layers/layers.hpp"
#include "trireme/nn/recurrent/recurrent.hpp"
#include "trireme/nn/staged/staged.hpp"

namespace trireme TRIREME_EXPORT {
namespace models {

struct LstmLmOptions {
  std::int64_t vocabulary = 256;
  std::int64_t embedding = 256;  // width of a token's vector
  std::int64_t hidden = 512;
  int layers = 2;
  double dropout = 0;  // of the embedding and of every layer's output (Zaremba, Sutskever, Vinyals 2014, arXiv 1409.2329)
};

// An LSTM language model, with the list of layers embed, lstm, fc. If batch.continues, each row starts from the states at the
// end of the previous step, without a gradient (truncated backpropagation through time). forward() returns logits [batch, time,
// vocabulary].
//
//   models::LstmLm<Float32> model({.vocabulary = 80}, parallel::model_context(mesh, {.batch_size = 32}));
template <typename P, typename D = Cpu>
class LstmLm : public nn::Staged<P, D, data::BasicTokenBatch<D>> {
 public:
  using T = typename P::Compute;
  using Batch = data::BasicTokenBatch<D>;

  explicit LstmLm(const LstmLmOptions& options, const ModelContext& context = {});

  const LstmLmOptions& options() const { return options_; }

  using State = nn::RecurrentState<T, D>;
  // For generating: returns the logits of tokens that continue from `state`, and updates `state`. At the beginning of a text,
  // pass an empty `state`.
  Variable<T, D> logits(const Tensor<std::int32_t, D>& tokens, State& state) const;

  // Targets equal to ops::ignored_target are ignored.
  Loss<T, D> loss(const Variable<T, D>& logits, const Batch& batch) const;

 private:
  Variable<T, D> embedded(const Tensor<std::int32_t, D>& tokens) const;

  LstmLmOptions options_;
  nn::Embedding<P, D> embed_;
  nn::Dropout<P, D> embed_dropout_;
  nn::Lstm<P, D> lstm_;
  nn::Dropout<P, D> lstm_dropout_;
  nn::Linear<P, D> fc_;
};

extern template class LstmLm<Float32, Cpu>;
extern template class LstmLm<Float32, Cuda>;

}  // namespace models
}  // namespace trireme

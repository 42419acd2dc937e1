#pragma once

#include "trireme/nn/layers.hpp"
#include "trireme/nn/recurrent.hpp"

namespace trireme::models {

struct LstmLmOptions {
  std::int64_t vocabulary = 256;
  std::int64_t embedding = 256;  // width of a token's vector
  std::int64_t hidden = 512;
  int layers = 2;
  double dropout = 0;  // of the embedding and of every layer's output: Zaremba, Sutskever, Vinyals 2014, arXiv 1409.2329
};

// A language model: embed -> lstm -> fc. The state is handed from one stretch of a text to the next.
template <typename P, typename D = Cpu>
class LstmLm : public nn::Module<P, D> {
 public:
  using T = typename P::Compute;
  using State = nn::RecurrentState<T, D>;

  explicit LstmLm(const LstmLmOptions& options, const ModelContext& context = {});

  const LstmLmOptions& options() const { return options_; }

  struct Logits {
    Variable<T, D> logits;  // [batch, time, vocabulary]
    State state;            // after the last token
  };
  // tokens [batch, time]; an empty state is that of a text's start.
  Logits logits(const Tensor<std::int32_t, D>& tokens, const State& state = {}) const;

  struct LossAndState {
    Loss<T, D> loss;
    State state;  // without a gradient, for the tokens that follow: truncated backpropagation through time
  };
  // targets [batch, time]; ops::ignored_target counts for nothing.
  LossAndState loss(const Tensor<std::int32_t, D>& tokens, const Tensor<std::int32_t, D>& targets,
                    const State& state = {}) const;

 private:
  LstmLmOptions options_;
  nn::Embedding<P, D> embed_;
  nn::Dropout<P, D> embed_dropout_;
  nn::Lstm<P, D> lstm_;
  nn::Dropout<P, D> lstm_dropout_;
  nn::Linear<P, D> fc_;
};

extern template class LstmLm<Float32, Cpu>;
extern template class LstmLm<Float32, Cuda>;

}  // namespace trireme::models

#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "trireme/nn/transformer.hpp"

namespace trireme::models {

struct GptOptions {
  int layers = 6;
  int heads = 6;
  std::int64_t width = 384;
  std::int64_t block = 256;  // longest sequence
  std::int64_t vocabulary = 256;
  double dropout = 0;                       // of the embedding and of what each block adds to the residual stream
  Float8Scaling fp8 = Float8Scaling::none;  // of the blocks' linear layers; with MixedBfloat16 and without a tensor axis
};

// GPT-2 (Radford et al. 2019): names as in Hugging Face's GPT2LMHeadModel, output layer tied to the token embedding. On a
// tensor axis the ranks divide heads, hidden features and vocabulary. On a pipeline axis each stage has a run of layers: the
// embedding, the blocks and the output layer, which is the token embedding once more. ModelContext::layer_costs are those of
// these layers; without them stages have equally many blocks.
template <typename P, typename D = Cpu>
class Gpt : public nn::Module<P, D> {
 public:
  using T = typename P::Compute;
  using M = typename P::Master;

  explicit Gpt(const GptOptions& options, const ModelContext& context = {});

  const GptOptions& options() const { return options_; }

  // A stage that lies here: from what the stage before gives (undefined in the first one) to what the next one takes. The last
  // stage gives the loss instead. tokens, targets [batch, time]: of the micro-batch, the same in all stages.
  Variable<M, D> stage(int stage, const Variable<M, D>& x, const Tensor<std::int32_t, D>& tokens) const;
  Loss<M, D> last_stage(const Variable<M, D>& x, const Tensor<std::int32_t, D>& targets) const;
  Shape stage_shape(std::int64_t batch, std::int64_t time) const;  // of what goes from stage to stage

  // For models whose stages are all here: tokens [batch, time <= block] -> [batch, time, vocabulary], of which a rank of a
  // tensor axis has its part.
  Variable<T, D> logits(const Tensor<std::int32_t, D>& tokens) const;

  // targets [batch, time]; ops::ignored_target counts for nothing. On a pipeline axis all ranks call it without a tape, run
  // their stages one after the other, and get the same loss.
  Loss<M, D> loss(const Tensor<std::int32_t, D>& tokens, const Tensor<std::int32_t, D>& targets) const;

  // Logits of the position after the last token: [batch, vocabulary]; records nothing. All ranks of a divided model call it.
  Tensor<T, D> next_token_logits(const Tensor<std::int32_t, D>& tokens) const;

 private:
  struct Transformer : nn::Module<P, D> {
    Transformer(const nn::Module<P, D>& parent, const GptOptions& options, const std::vector<Range>& blocks);

    std::optional<nn::Embedding<P, D>> wte;  // of the first and the last stage
    std::optional<nn::Embedding<P, D>> wpe;  // of the first
    nn::Dropout<P, D> drop;
    std::vector<std::unique_ptr<nn::TransformerBlock<P, D>>> h;  // null where another rank has it
    std::optional<nn::LayerNorm<P, D>> ln_f;                     // of the last
  };

  const nn::LayerNorm<P, D>& norm_before(std::int64_t layer) const;
  Variable<M, D> embedded(const Tensor<std::int32_t, D>& tokens) const;
  std::optional<Variable<M, D>> last_input(const Tensor<std::int32_t, D>& tokens) const;
  Variable<T, D> final_states(const Variable<M, D>& x, std::int64_t time) const;
  Tensor<T, D> last_logits(const Variable<M, D>& x, std::int64_t batch, std::int64_t time) const;
  Variable<T, D> project(const Variable<T, D>& states, std::int64_t time) const;
  Loss<M, D> loss_of(const Variable<T, D>& logits, const Tensor<std::int32_t, D>& targets) const;

  GptOptions options_;
  std::vector<Range> blocks_;  // by stage
  Transformer transformer_;
};

extern template class Gpt<Float32, Cpu>;
extern template class Gpt<MixedBfloat16, Cpu>;
extern template class Gpt<MixedFloat16, Cpu>;
extern template class Gpt<Float32, Cuda>;
extern template class Gpt<MixedBfloat16, Cuda>;
extern template class Gpt<MixedFloat16, Cuda>;

}  // namespace trireme::models

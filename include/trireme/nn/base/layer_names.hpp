#pragma once

#include "trireme/core/export.hpp"
#include "trireme/ops/recurrent/recurrent_cell.hpp"

// Forward declarations of the layers, for the short names in Module. Each layer's own header defines the layer.
namespace trireme TRIREME_EXPORT {
namespace nn {

template <typename P, typename D>
class BatchNorm2d;
template <typename P, typename D>
class Carried;
template <typename P, typename D>
class CausalSelfAttention;
template <typename P, typename D>
class Conv1d;
template <typename P, typename D>
class Conv2d;
template <typename P, typename D>
class Conv3d;
template <typename P, typename D>
class ConvTranspose1d;
template <typename P, typename D>
class ConvTranspose2d;
template <typename P, typename D>
class Dropout;
template <typename P, typename D>
class DropPath;
template <typename P, typename D>
class Embedding;
template <typename P, typename D>
class GatedMlp;
template <typename P, typename D>
class GroupNorm;
template <typename P, typename D>
class InstanceNorm2d;
template <typename P, typename D>
class LayerNorm;
template <typename P, typename D>
class Linear;
template <typename P, typename D>
class MixtureOfExperts;
template <typename P, typename D>
class MultiheadAttention;
template <typename P, typename D>
class PixelShuffle;
template <typename P, typename D>
class PRelu;
template <typename P, ops::RecurrentCell kind, typename D>
class Recurrent;
template <typename P, typename D>
struct Residual;
template <typename P, typename D>
class RmsNorm;
template <typename P, typename D>
class Sequential;
template <typename P, typename D>
class SpectralNormConv2d;
template <typename P, typename D>
class SpectralNormLinear;
template <typename P, typename D>
class TokenEmbedding;
template <typename P, typename D>
class TokenLogits;
template <typename P, typename D>
class TransformerBlock;
template <typename P, typename D>
class TransformerEncoderLayer;
template <typename P, typename D>
class TransformerMlp;
template <typename P, typename D>
class Upsample;
template <typename P, typename D>
class WeightNormConv1d;
template <typename P, typename D>
class WeightNormLinear;

}  // namespace nn
}  // namespace trireme

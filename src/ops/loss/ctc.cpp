#include "ops/base/parallel.hpp"
#include "ops/loss/ctc_on.hpp"
#include "precision/instantiate.hpp"

namespace trireme::ops {
namespace {

template <typename T, typename Body>
void each_ctc_sample(const CtcSamples<T>& samples, const Body& body) {
  parallel_rows(samples.batch, samples.time * samples.most_states() * 16, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t sample = begin; sample < end; ++sample) body(device::LoneThread(), sample);
  });
}

}  // namespace

template <>
template <typename T>
void Ctc<Cpu>::check(const CtcSamples<T>& samples) {
  for (std::int64_t sample = 0; sample < samples.batch; ++sample) {
    const CtcSample<T> of(samples, sample);
    require(of.rows >= 0 && of.rows <= samples.time, "ctc_loss: the input length of sample {} is {}, but must lie in [0, {}]",
            sample, of.rows, samples.time);
    require(of.labels >= 0 && of.labels <= samples.labels,
            "ctc_loss: the target length of sample {} is {}, but must lie in [0, {}]", sample, of.labels, samples.labels);
    require(of.fits(samples), "ctc_loss: a label of sample {} is no class in [0, {}), or the blank, {}", sample,
            samples.classes, samples.blank);
  }
}

template <>
template <typename T>
void Ctc<Cpu>::forward(const CtcSamples<T>& samples, T* losses, double* alpha) {
  each_ctc_sample(samples, CtcForward<T>{samples, losses, alpha});
}

template <>
template <typename T>
void Ctc<Cpu>::backward(const CtcBackward<T>& pass) {
  each_ctc_sample(pass.samples, pass);
}

TRIREME_INSTANTIATE(SINGLE_AND_DOUBLE, ctc_loss, Cpu)
TRIREME_INSTANTIATE(SINGLE_AND_DOUBLE, ctc_loss_backward, Cpu)

}  // namespace trireme::ops

#include "parallel/hooks/codec_kernels.hpp"
#include "trireme/parallel/hooks/compression.hpp"

namespace trireme::parallel {
namespace {

template <typename T>
class CastHook final : public CommunicationHook {
 public:
  CastHook(std::string name, const CastKernels<T>& kernels) : name_(std::move(name)), kernels_(kernels) {}

  std::string str() const override { return name_; }

  HookTask reduce(GradientBucket& bucket) override {
    const auto ranks = static_cast<float>(bucket.size());
    std::vector<T> wire(bucket.numel());
    std::size_t begin = 0;
    for (const auto& [name, values] : bucket.gradients()) {
      kernels_.narrow(values.data(), 1 / ranks, wire.data() + begin, values.span().size());
      begin += values.span().size();
    }
    co_await bucket.all_reduce(std::span(wire));
    begin = 0;
    for (const auto& [name, values] : bucket.gradients()) {
      kernels_.widen(wire.data() + begin, ranks, values.data(), values.span().size());
      begin += values.span().size();
    }
  }

 private:
  std::string name_;
  const CastKernels<T>& kernels_;
};

}  // namespace

HookFactory float16_hook() {
  return [] { return std::make_shared<CastHook<float16>>("fp16", codec_kernels().to_float16); };
}

HookFactory bfloat16_hook() {
  return [] { return std::make_shared<CastHook<bfloat16>>("bf16", codec_kernels().to_bfloat16); };
}

}  // namespace trireme::parallel

#include <algorithm>
#include <cstring>

#include "parallel/hooks/codec_kernels.hpp"
#include "trireme/parallel/hooks/compression.hpp"

namespace trireme::parallel {
namespace {

// Treats the bucket's elements as one row and divides it into equal parts of whole blocks, one for each rank; the last may be
// padded. A coded part holds its scales, then its codes.
class Int8Hook final : public CommunicationHook {
 public:
  std::string str() const override { return "int8"; }
  int max_exchanges() const override { return 2; }

  HookTask reduce(GradientBucket& bucket) override {
    const auto ranks = static_cast<std::size_t>(bucket.size());
    const std::size_t blocks = (int8_blocks(bucket.numel()) + ranks - 1) / ranks;  // of a part
    const std::size_t part = blocks * int8_block;
    const std::size_t stride = blocks * sizeof(float) + part;

    std::vector<float> row(part * ranks);
    gather(bucket, row);
    std::vector<std::uint8_t> parts(stride * ranks);
    for (std::size_t rank = 0; rank < ranks; ++rank) encode(row.data() + rank * part, parts.data() + rank * stride, blocks);
    std::vector<std::uint8_t> received;
    co_await bucket.all_to_all(parts, received);

    std::vector<float> sum(part);
    for (std::size_t rank = 0; rank < ranks; ++rank) add(received.data() + rank * stride, sum.data(), blocks);
    std::vector<std::uint8_t> own(stride);
    encode(sum.data(), own.data(), blocks);
    co_await bucket.all_gather(own, parts);

    std::ranges::fill(row, 0.0F);
    for (std::size_t rank = 0; rank < ranks; ++rank) add(parts.data() + rank * stride, row.data() + rank * part, blocks);
    scatter(row, bucket);
  }

 private:
  static void gather(const GradientBucket& bucket, std::vector<float>& row) {
    auto place = row.begin();
    for (const auto& [name, values] : bucket.gradients()) place = std::ranges::copy(values.span(), place).out;
  }
  static void scatter(const std::vector<float>& row, const GradientBucket& bucket) {
    auto place = row.begin();
    for (const auto& [name, values] : bucket.gradients()) {
      std::copy_n(place, values.numel(), values.data());
      place += values.numel();
    }
  }

  // A coded part starts at a multiple of 4 bytes.
  static void encode(const float* values, std::uint8_t* coded, std::size_t blocks) {
    auto* codes = reinterpret_cast<std::int8_t*>(coded + blocks * sizeof(float));
    codec_kernels().to_int8(values, codes, reinterpret_cast<float*>(coded), blocks * int8_block);
  }
  static void add(const std::uint8_t* coded, float* sum, std::size_t blocks) {
    const auto* codes = reinterpret_cast<const std::int8_t*>(coded + blocks * sizeof(float));
    codec_kernels().add_int8(codes, reinterpret_cast<const float*>(coded), sum, blocks * int8_block);
  }
};

}  // namespace

HookFactory int8_hook() {
  return [] { return std::make_shared<Int8Hook>(); };
}

}  // namespace trireme::parallel

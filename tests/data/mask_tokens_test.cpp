#include "trireme/data/text/mask_tokens.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "catch.hpp"
#include "trireme/core/error.hpp"

using namespace trireme;

namespace {

constexpr std::int64_t rows = 400, length = 100;
const data::MaskingOptions masking{.mask_token = 3, .vocabulary = 1000, .special = {1, 2}, .seed = 7};

// Tokens from 10 on, between a 1 and a 2.
data::TextBatch texts(std::int64_t first, std::int64_t count) {
  data::TextBatch batch{.tokens = Tensor<std::int32_t>({count, length}), .first_sample = first};
  for (std::int64_t row = 0; row < count; ++row) {
    for (std::int64_t place = 0; place < length; ++place) {
      const auto token = static_cast<std::int32_t>(10 + ((first + row) * 31 + place * 7) % 900);
      batch.tokens.at(row, place) = place == 0 ? 1 : place == length - 1 ? 2 : token;
    }
  }
  return batch;
}

}  // namespace

TEST_CASE("of 15 % of the tokens 80 % are hidden, 10 % are others and 10 % stay") {
  const data::TextBatch batch = texts(0, rows), masked = data::mask_tokens(batch, masking);
  double chosen = 0, hidden = 0, stayed = 0;
  for (std::int64_t at = 0; at < batch.tokens.numel(); ++at) {
    const std::int32_t before = batch.tokens.data()[at], after = masked.tokens.data()[at], target = masked.targets.data()[at];
    if (target == data::no_target) {
      REQUIRE(after == before);
      continue;
    }
    REQUIRE(target == before);
    REQUIRE(before >= 10);  // no special one
    REQUIRE((after >= 0 && after < 1000));
    ++chosen;
    hidden += after == 3 ? 1 : 0;
    stayed += after == before ? 1 : 0;
  }
  const double candidates = static_cast<double>(rows * (length - 2));
  CHECK(std::abs(chosen / candidates - 0.15) < 0.01);
  CHECK(std::abs(hidden / chosen - 0.8) < 0.03);
  CHECK(std::abs(stayed / chosen - 0.1) < 0.03);
}

TEST_CASE("what is masked does not depend on how samples are divided") {
  const data::TextBatch whole = data::mask_tokens(texts(0, 8), masking);
  for (const std::int64_t first : {0, 4}) {
    const data::TextBatch part = data::mask_tokens(texts(first, 4), masking);
    CHECK(std::ranges::equal(part.tokens.span(), whole.tokens.narrow(first, 4).span()));
    CHECK(std::ranges::equal(part.targets.span(), whole.targets.narrow(first, 4).span()));
  }
  data::MaskingOptions other = masking;
  other.seed = 8;
  CHECK(!std::ranges::equal(data::mask_tokens(texts(0, 8), other).tokens.span(), whole.tokens.span()));
}

TEST_CASE("padding is never masked") {
  data::TextBatch batch = texts(0, 2);
  const std::vector<std::int64_t> lengths{length, 5};
  batch.key_padding_mask = data::padding_mask(lengths, length);
  CHECK(batch.key_padding_mask.at(1, 4) == 0);
  CHECK(batch.key_padding_mask.at(1, 5) == 1);
  data::MaskingOptions all = masking;
  all.probability = 1;
  const data::TextBatch masked = data::mask_tokens(batch, all);
  for (std::int64_t place = 0; place < length; ++place) {
    CHECK((masked.targets.at(1, place) != data::no_target) == (place > 0 && place < 5));
  }
}

TEST_CASE("masking with wrong numbers is refused") {
  const auto refused = [](auto change, const char* text) {
    data::MaskingOptions wrong = masking;
    change(wrong);
    CHECK_THROWS_WITH(data::mask_tokens(texts(0, 1), wrong), ContainsSubstring(text));
  };
  refused([](auto& options) { options.probability = 1.5; }, "in [0, 1], got 1.5");
  refused([](auto& options) { options.random = 0.3; }, "0.8 and 0.3");
  refused([](auto& options) { options.mask_token = 1000; }, "got 1000 and 1000");
  const std::vector<std::int64_t> longer{length + 1};
  CHECK_THROWS_WITH(data::padding_mask(longer, length), ContainsSubstring("row 0 has a length of 101 tokens"));
}

// The expected numbers are those of torch.nn.TransformerEncoderLayer in double.
#include "trireme/nn/attention/encoder_layer.hpp"

#include <cmath>
#include <string>
#include <vector>

#include "comm/expect.hpp"
#include "gradient_check.hpp"

using namespace trireme;
using namespace trireme::tests;

namespace {

using Doubles = std::vector<double>;

double sine(double x) { return std::sin(x); }
double cosine(double x) { return std::cos(x); }

Tensor<double> waves(const Shape& shape, double (*wave)(double)) {
  Tensor<double> tensor(shape);
  for (std::int64_t i = 0; i < tensor.numel(); ++i) tensor.data()[i] = wave(static_cast<double>(i + 1));
  return tensor;
}

struct Encoder : nn::Module<Float64> {
  explicit Encoder(bool norm_first)
      : layer(*this, "layer",
              {.d_model = 4,
               .nhead = 2,
               .dim_feedforward = 6,
               .activation = ops::Activation::gelu_erf,
               .layer_norm_eps = 1e-3,
               .norm_first = norm_first}) {
    bool odd = false;
    for (const char* name : {"linear1.bias", "linear1.weight", "linear2.bias", "linear2.weight", "norm1.bias", "norm1.weight",
                             "norm2.bias", "norm2.weight", "self_attn.in_proj_bias", "self_attn.in_proj_weight",
                             "self_attn.out_proj.bias", "self_attn.out_proj.weight"}) {
      const int parameter = store().find(std::string("layer.") + name);
      store().write_values(parameter, waves(store().parameter(parameter).shape, odd ? sine : cosine));
      odd = !odd;
    }
  }

  TransformerEncoderLayer layer;
};

void check_layer(bool norm_first, const Doubles& wanted) {
  CAPTURE(norm_first);
  const Encoder model(norm_first);
  const Variable<double> x(waves({2, 3, 4}, sine));
  Tensor<std::int32_t> padding = Tensor<std::int32_t>::zeros({2, 3});
  padding.at(0, 2) = 1;
  const auto forward = [&] { return model.layer.forward({.stream = x}, 3, padding).settled().stream; };
  const auto got = elements(forward().value());
  REQUIRE(got.size() == wanted.size());
  for (std::size_t i = 0; i < got.size(); ++i) CHECK(got[i] == Approx(wanted[i]).margin(1e-8));
  expect_passed(testing::check_parameter_gradients(model.store(), forward));
}

}  // namespace

TEST_CASE("an encoder layer is torch.nn.TransformerEncoderLayer, with norms before or after") {
  check_layer(
      true, {-0.498664536, 2.420171809,  -2.730746108, -5.839598904, -2.834484995,  0.9410830662, -2.097145703, -4.228046746,
             -1.198168411, 1.065115314,  -3.667967456, -5.981003449, -0.5453354072, 2.702783074,  -2.757995861, -4.854097764,
             -2.156593815, 0.5896867027, -2.993625548, -3.829869218, 0.1157089,     1.561751945,  -4.244964014, -5.708214377});
  check_layer(false, {1.648502982,  0.1437634482,  -1.139699431, 0.006207400895, 1.494023538,  0.315370158,
                      -1.169948168, -0.1521200102, 1.557453764,  0.2789915632,   -1.137353779, 0.04944835213,
                      1.565230213,  0.2681402683,  -1.137753239, 0.04526863759,  1.453753437,  0.3796524439,
                      -1.164449622, -0.1053486468, 1.563204324,  0.2649467231,   -1.145991,    -0.003389078272});
}

TEST_CASE("an encoder layer drops where torch's does, each place by itself, and nothing in evaluation") {
  struct Drops : nn::Module<Float64> {
    explicit Drops(const nn::TransformerEncoderLayerOptions& options) : layer(*this, "layer", options) {}
    TransformerEncoderLayer layer;
  };
  struct Names : Observer {
    int dropouts = 0;
    void before(Pass, const OperationView& of) override { dropouts += of.name == "dropout" ? 1 : 0; }
  };
  const auto places = [](const nn::TransformerEncoderLayerOptions& options, bool training = true) {
    Drops net(options);
    net.initialize();
    net.train(training);
    Names names;
    const Observation observation(names);
    const Tape tape({.seed = 3});
    net.layer.forward({.stream = Variable<double>(waves({2, 3, 4}, sine))}, 3);
    return names.dropouts;
  };
  const nn::TransformerEncoderLayerOptions plain{.d_model = 4, .nhead = 2, .dim_feedforward = 6};
  auto all = plain;
  all.dropout = 0.3;
  CHECK(places(plain) == 0);
  CHECK(places(all) == 4);
  CHECK(places(all, false) == 0);
  auto of_stream = all;
  of_stream.attention_dropout = of_stream.mlp_dropout = 0;
  CHECK(places(of_stream) == 2);
  auto of_mlp = plain;
  of_mlp.mlp_dropout = 0.3;
  CHECK(places(of_mlp) == 1);
  of_mlp.mlp_dropout = 1;
  CHECK_THROWS_WITH(places(of_mlp), ContainsSubstring("layer: mlp_dropout 1 does not lie in [0, 1)"));
}

#include "trireme/models/architectures/gan.hpp"

#include <algorithm>
#include <cmath>

#include "gradient_check.hpp"
#include "temporary_folder.hpp"
#include "trireme/files/safetensors.hpp"
#include "trireme/nn/weights/weights.hpp"
#include "trireme/parallel/model_context.hpp"
#include "trireme/testing/ranks.hpp"

using namespace trireme;
using namespace trireme::tests;

namespace {

constexpr models::DcGanOptions small_dc{.image = {4, 8},
                                        .channels = 2,
                                        .latent = 3,
                                        .features = 2,
                                        .weight_initializer = {Initializer::Kind::normal, 0, 0.5},
                                        .norm_weight_initializer = {Initializer::Kind::normal, 1, 0.2}};
constexpr models::MlpGanOptions small_mlp{.image = {2, 3}, .channels = 2, .latent = 3, .hidden = 5};

// Each model's gradients of its own loss.
template <typename Generator, typename Discriminator, typename Options>
void check_both(const Options& options) {
  Generator generator(options);
  Discriminator discriminator(options);
  generator.initialize({.seed = 1});
  discriminator.initialize({.seed = 2});
  const auto latent = random({3, options.latent}, 1);
  const Variable<double> real(random({3, options.image.height, options.image.width, options.channels}, 2));
  const auto loss_d = [&] { return models::discriminator_loss(discriminator, real, generator.images(latent)).sum; };
  const auto loss_g = [&] { return models::generator_loss(discriminator, generator.images(latent)).sum; };
  for (const auto& check : {testing::check_parameter_gradients(discriminator.store(), loss_d),
                            testing::check_parameter_gradients(generator.store(), loss_g)}) {
    expect_passed(check);
  }
}

bool has_gradients(FlatStore& store) {
  bool any = false;
  for (int index = 0; index < store.num_parameters(); ++index) any = any || store.has_gradient(index);
  return any;
}

}  // namespace

TEST_CASE("gradients of a GAN's two losses") {
  check_both<models::MlpGenerator<Float64>, models::MlpDiscriminator<Float64>>(small_mlp);
  check_both<models::DcGenerator<Float64>, models::DcDiscriminator<Float64>>(small_dc);
}

TEST_CASE("a GAN in several stages computes what it does in one, bit by bit") {
  const auto run = []<typename Generator, typename Discriminator>(const auto& options, int stages) {
    Generator generator(options, ModelContext{.chunks = stages});
    Discriminator discriminator(options, ModelContext{.chunks = stages});
    CHECK((std::ssize(generator.stages()) == stages && std::ssize(discriminator.stages()) == stages));
    generator.initialize({.seed = 1});
    discriminator.initialize({.seed = 2});
    Tape tape;
    const auto fake = generator.images(random({3, options.latent}, 1));
    const auto loss = models::generator_loss(discriminator, fake);
    loss.backward();
    std::vector<double> all{loss.sum.value().item()};
    for (int index = 0; index < generator.store().num_parameters(); ++index) {
      const auto gradient = generator.store().template gradient<double>(index);
      all.insert(all.end(), gradient.span().begin(), gradient.span().end());
    }
    return all;
  };
  const auto mlp = [&](int stages) {
    return run.operator()<models::MlpGenerator<Float64>, models::MlpDiscriminator<Float64>>(small_mlp, stages);
  };
  const auto dc = [&](int stages) {
    return run.operator()<models::DcGenerator<Float64>, models::DcDiscriminator<Float64>>(small_dc, stages);
  };
  CHECK(mlp(2) == mlp(1));
  CHECK(dc(2) == dc(1));
  CHECK(dc(3) == dc(1));
}

TEST_CASE("a GAN in a pipeline makes the images of one rank, and judges them alike") {
  const auto logits = []<typename Generator, typename Discriminator>(const auto& options, int ranks) {
    std::vector<std::vector<double>> all(static_cast<std::size_t>(ranks));
    testing::run_ranks(ranks, [&](const Group& world) {
      const ModelContext context = parallel::model_context(ProcessMesh(world, {.pipeline = ranks}));
      Generator generator(options, context);
      Discriminator discriminator(options, context);
      generator.initialize();
      discriminator.initialize();
      const auto of_all = discriminator.logits(generator.images(random({3, options.latent}, 1))).value();
      all[static_cast<std::size_t>(world.rank())].assign(of_all.span().begin(), of_all.span().end());
    });
    CHECK(std::ranges::count(all, all.front()) == ranks);
    return all.front();
  };
  const auto mlp = [&](int ranks) {
    return logits.operator()<models::MlpGenerator<Float64>, models::MlpDiscriminator<Float64>>(small_mlp, ranks);
  };
  const auto dc = [&](int ranks) {
    return logits.operator()<models::DcGenerator<Float64>, models::DcDiscriminator<Float64>>(small_dc, ranks);
  };
  CHECK(mlp(2) == mlp(1));
  CHECK(dc(3) == dc(1));
}

TEST_CASE("each loss of a GAN has gradients of its own model alone, both update the discriminator's running statistics") {
  models::DcGenerator<Float32> generator(small_dc);
  models::DcDiscriminator<Float32> discriminator(small_dc);
  generator.initialize({.seed = 1});
  discriminator.initialize({.seed = 2});
  const auto running_mean = [&] { return discriminator.store().buffers().values<float>(0).data()[0]; };
  Tape tape;
  const auto fake = generator.images(random<float>({3, 3}, 1));
  float before = running_mean();
  {
    Tape inner;
    models::discriminator_loss(discriminator, {random<float>({3, 4, 8, 2}, 2)}, fake).backward();
  }
  CHECK(running_mean() != before);
  CHECK(has_gradients(discriminator.store()));
  CHECK_FALSE(has_gradients(generator.store()));
  discriminator.store().clear_gradients();
  before = running_mean();
  models::generator_loss(discriminator, fake).backward();
  CHECK(running_mean() != before);
  CHECK_FALSE(has_gradients(discriminator.store()));
  CHECK(has_gradients(generator.store()));
}

TEST_CASE("a DCGAN's first weights are normal") {
  models::DcGenerator<Float32> generator({.features = 16});
  generator.initialize({.seed = 1});
  const auto statistics = [&](const char* name) {
    const auto values = generator.store().values<float>(generator.store().find(name));
    double sum = 0, squares = 0;
    for (const float value : values.span()) {
      sum += static_cast<double>(value);
      squares += static_cast<double>(value) * static_cast<double>(value);
    }
    const double mean = sum / static_cast<double>(values.numel());
    return std::pair(mean, std::sqrt(squares / static_cast<double>(values.numel()) - mean * mean));
  };
  CHECK(statistics("ct1.weight").first == Approx(0).margin(5e-4));
  CHECK(statistics("ct1.weight").second == Approx(0.02).margin(5e-4));
  CHECK(statistics("bn1.weight").first == Approx(1).margin(0.02));
  CHECK(statistics("bn1.weight").second == Approx(0.02).margin(0.01));
}

TEST_CASE("two models share a file under their prefixes; one that does not fit changes neither") {
  const tests::TemporaryFolder folder;
  const std::string path = folder.path() / "gan.safetensors";
  models::DcGenerator<Float32> generator(small_dc), read_generator(small_dc);
  models::DcDiscriminator<Float32> discriminator(small_dc), read_discriminator(small_dc);
  generator.initialize({.seed = 1});
  discriminator.initialize({.seed = 2});
  nn::save_weights<float>({{"G.", generator}, {"D.", discriminator}}, path);
  CHECK(SafetensorsFile(path).find("G.bn2.running_var") != nullptr);
  CHECK(SafetensorsFile(path).find("D.conv1.weight") != nullptr);

  nn::load_weights<float>({{"G.", read_generator}, {"D.", read_discriminator}}, path);
  const auto same = [](FlatStore& a, FlatStore& b) {
    const auto first = a.values<float>(), second = b.values<float>();
    return std::ranges::equal(first.span(), second.span());
  };
  CHECK(same(generator.store(), read_generator.store()));
  CHECK(same(discriminator.store(), read_discriminator.store()));

  auto wider_options = small_dc;
  wider_options.features = 4;
  models::DcDiscriminator<Float32> wider(wider_options);
  read_generator.initialize({.seed = 3});
  try {
    nn::load_weights<float>({{"G.", read_generator}, {"D.", wider}}, path);
    FAIL("no error");
  } catch (const Error& error) {
    CHECK(error.fields().name == "D.conv1.weight");
  }
  CHECK_FALSE(same(generator.store(), read_generator.store()));
  CHECK_THROWS_AS(nn::load_weights<float>({{"G.", read_generator}}, path), Error);  // D. is unknown
}

TEST_CASE("a GAN says what it can't read or make") {
  CHECK_THROWS_AS(models::DcGenerator<Float32>({.image = {28, 30}}), Error);
  CHECK_THROWS_AS(models::MlpGenerator<Float32>({.latent = 0}), Error);
  const models::DcGenerator<Float32> generator(small_dc);
  const models::DcDiscriminator<Float32> discriminator(small_dc);
  CHECK_THROWS_AS(generator.images(random<float>({3, 4}, 1)), Error);
  CHECK_THROWS_AS(discriminator.logits({random<float>({3, 4, 8, 1}, 1)}), Error);
}

// Three weights after 10 steps of PyTorch's optimizers: results in double, of version 2.15.

#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "catch.hpp"
#include "trireme/optim/adadelta.hpp"
#include "trireme/optim/adafactor.hpp"
#include "trireme/optim/muon.hpp"
#include "trireme/optim/nadam.hpp"
#include "trireme/optim/radam.hpp"
#include "trireme/optim/schedule_free_adamw.hpp"

using namespace trireme;

namespace {

using Wanted = std::vector<std::pair<int, std::vector<double>>>;  // weights after so many steps

template <typename Kind, typename P, typename Options>
void require_values(const Options& options, const Wanted& wanted, const Shape& shape = {3},
                    const std::vector<double>& swapped_in = {}) {
  using T = typename P::Master;
  Model model(dtype_of<T>);
  FlatStore& store = model.store();
  const int weight = store.add("weight", shape, Initializer::constant(0));
  store.initialize<T>(1);
  const auto values = store.values<T>(weight).span();
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<T>((i % 2 == 0 ? 0.25 : -0.25) * static_cast<double>(i + 1));
  Kind optimizer(model, options);
  const auto check = [&](std::span<const double> weights) {
    for (std::size_t i = 0; i < weights.size(); ++i) {
      CHECK(static_cast<double>(values[i]) == Approx(weights[i]).epsilon(sizeof(T) == 8 ? 1e-13 : 1e-6));
    }
  };
  int done = 0;
  for (const auto& [steps, weights] : wanted) {
    for (; done < steps; ++done) {
      const auto gradient = store.gradient<T>(weight).span();
      for (std::size_t i = 0; i < gradient.size(); ++i) {
        gradient[i] = static_cast<T>((7 * i + 5 * static_cast<std::size_t>(done)) % 11) / 4 - T(1.25);
      }
      optimizer.step({.target_weight = 1, .gradient_scale = 0.5, .gradient_norm = 1, .used = {true}});
    }
    CAPTURE(steps);
    check(weights);
  }
  if constexpr (requires { optimizer.swap(); }) {
    optimizer.swap();
    check(swapped_in);
  }
}

}  // namespace

#define EACH_PRECISION "", Float32, Float64

TEMPLATE_TEST_CASE("NAdam makes torch.optim.NAdam's steps", EACH_PRECISION) {
  using Kind = optim::Nadam<TestType>;
  require_values<Kind, TestType>(optim::NadamOptions{.learning_rate = 0.01},
                                 {{1, {0.2605645176145216, -0.5105645173609732, 0.7605645173609732}},
                                  {6, {0.25172902549873305, -0.5016569810479004, 0.7613534278470337}},
                                  {10, {0.25412707886149694, -0.509342111042821, 0.7658315265431419}}});
  require_values<Kind, TestType>(optim::NadamOptions{.learning_rate = 0.01, .weight_decay = 0.1, .momentum_decay = 0.1},
                                 {{1, {0.260570624476504, -0.5105706241241499, 0.7605706240486454}},
                                  {6, {0.24978182699606763, -0.4977581776016605, 0.7540902299768004}},
                                  {10, {0.25015787382327703, -0.5013908788030624, 0.752672845740832}}});
  require_values<Kind, TestType>(optim::NadamOptions{.learning_rate = 0.01,
                                                     .beta1 = 0.8,
                                                     .beta2 = 0.9,
                                                     .epsilon = 1e-3,
                                                     .weight_decay = 0.1,
                                                     .decoupled_weight_decay = true,
                                                     .maximize = true},
                                 {{1, {0.23881471562957637, -0.4885908557515774, 0.7383408557515774}},
                                  {6, {0.24754157045124703, -0.4960372694633778, 0.7333830431690684}},
                                  {10, {0.24411673336933087, -0.48458999531003755, 0.7253264712982123}}});
}

TEMPLATE_TEST_CASE("RAdam makes torch.optim.RAdam's steps, from the sixth on adaptive ones", EACH_PRECISION) {
  using Kind = optim::Radam<TestType>;
  require_values<Kind, TestType>(optim::RadamOptions{.learning_rate = 0.01},
                                 {{1, {0.25625, -0.5025, 0.7525}},
                                  {6, {0.2576201445678112, -0.49685050416400056, 0.7536925027311682}},
                                  {10, {0.2574918138911586, -0.4970157273703403, 0.7540455966374252}}});
  require_values<Kind, TestType>(optim::RadamOptions{.learning_rate = 0.01, .beta1 = 0.8, .beta2 = 0.9, .weight_decay = 0.1},
                                 {{1, {0.256, -0.502, 0.75175}},
                                  {6, {0.25456996171197627, -0.49369932051961624, 0.7497813403229868}},
                                  {10, {0.2523575759287114, -0.49463130638527053, 0.7499670552624186}}});
  require_values<Kind, TestType>(
      optim::RadamOptions{
          .learning_rate = 0.01, .epsilon = 1e-3, .weight_decay = 0.1, .decoupled_weight_decay = true, .maximize = true},
      {{1, {0.2435, -0.497, 0.74675}},
       {6, {0.24092352980871692, -0.5001565457060616, 0.7418334787267298}},
       {10, {0.24008576163179546, -0.4979979400084342, 0.7385284936259516}}});
  // A second moment that forgets too soon is never asked.
  require_values<Kind, TestType>(optim::RadamOptions{.learning_rate = 0.01, .beta2 = 0.6},
                                 {{1, {0.25625, -0.5025, 0.7525}},
                                  {6, {0.25724839367268165, -0.49690957823841153, 0.7542783571868229}},
                                  {10, {0.25572079900721345, -0.4983811587307217, 0.7578878253787866}}});
}

TEMPLATE_TEST_CASE("Adadelta makes torch.optim.Adadelta's steps", EACH_PRECISION) {
  using Kind = optim::Adadelta<TestType>;
  require_values<Kind, TestType>(optim::AdadeltaOptions{},
                                 {{1, {0.2531622371837915, -0.5031620247083094, 0.7531620247083094}},
                                  {6, {0.24949899310218418, -0.5004900134887207, 0.7536499092446709}},
                                  {10, {0.2509297588914809, -0.504248270176167, 0.7549544863037876}}});
  require_values<Kind, TestType>(
      optim::AdadeltaOptions{.learning_rate = 0.5, .smoothing = 0.8, .epsilon = 1e-3, .weight_decay = 0.1, .maximize = true},
      {{1, {0.21485202542166812, -0.4655876399194157, 0.7154528897755723}},
       {6, {0.2475797843824442, -0.4759332417902753, 0.6835510597295412}},
       {10, {0.22361689146500535, -0.419348427843294, 0.6494811559228066}}});
}

TEMPLATE_TEST_CASE("schedule-free AdamW makes the steps of its authors' package", EACH_PRECISION) {  // schedulefree 1.4.1
  using Kind = optim::ScheduleFreeAdamW<TestType>;
  require_values<Kind, TestType>(optim::ScheduleFreeAdamWOptions{.learning_rate = 0.01},
                                 {{1, {0.25999999984, -0.5099999996, 0.7599999996}},
                                  {6, {0.2500499482081552, -0.4974213435887529, 0.7580237873683958}},
                                  {10, {0.24801169949544158, -0.5018916244769236, 0.7630688536163747}}},
                                 {3}, {0.24762902698689165, -0.5006519723871807, 0.762823291608377});
  require_values<Kind, TestType>(
      optim::ScheduleFreeAdamWOptions{
          .learning_rate = 0.01, .beta1 = 0.8, .beta2 = 0.9, .epsilon = 1e-3, .weight_decay = 0.1, .warmup = 4},
      {{1, {0.25243350638977635, -0.5023650398406374, 0.7523025398406374}},
       {6, {0.24112610395673548, -0.4913932342084493, 0.7522628198335521}},
       {10, {0.2403810362331345, -0.4976146702078035, 0.7557583280847933}}},
      {3}, {0.23920850818187944, -0.495352110543362, 0.7561744527688474});
}

// torch.optim.Muon iterates in bfloat16, with 3 digits of these: its formulas in double.
TEMPLATE_TEST_CASE("Muon makes torch.optim.Muon's steps, in the type of the weights", EACH_PRECISION) {
  using Kind = optim::Muon<TestType>;
  require_values<Kind, TestType>(optim::MuonOptions{.learning_rate = 0.01, .bfloat16 = false},
                                 {{1,
                                   {0.2611024669815173, -0.49706400487760494, 0.7478054055049587, -1.007873965413133,
                                    1.2501848664484312, -1.492890593071756}},
                                  {6,
                                   {0.2440289088187054, -0.4817478727243138, 0.751790131513002, -1.0209565528896551,
                                    1.2491137850144856, -1.4688413198646189}},
                                  {10,
                                   {0.2334525740922878, -0.4976551546144874, 0.7577655182466081, -1.0202191821903923,
                                    1.2272187477107315, -1.472544254735547}}},
                                 {3, 2});
  require_values<Kind, TestType>(optim::MuonOptions{.learning_rate = 0.01, .bfloat16 = false},
                                 {{1,
                                   {0.2560418944328808, -0.502951614049996, 0.7533248515678918, -1.0051085892805585,
                                    1.2465934258670446, -1.4932767526369255}},
                                  {6,
                                   {0.2592335284530076, -0.4971697420561886, 0.7473458520390714, -1.0239465393839755,
                                    1.243800337198806, -1.4659134602108335}},
                                  {10,
                                   {0.24684422419583443, -0.4992436020834062, 0.7640093018396275, -1.0180434403514165,
                                    1.2319357955070978, -1.4728795551262743}}},
                                 {2, 3});
  require_values<Kind, TestType>(optim::MuonOptions{.learning_rate = 0.01,
                                                    .momentum = 0.9,
                                                    .nesterov = false,
                                                    .weight_decay = 0,
                                                    .scale = optim::MuonScale::as_adamw,
                                                    .iterations = 3,
                                                    .bfloat16 = false},
                                 {{1, {0.25259000227843265, -0.49941313088323946, 0.7494131308832395, -1.0025900022784326}},
                                  {6, {0.24659334466102573, -0.49991291557432743, 0.7489452458579606, -1.012647651455399}},
                                  {10, {0.24442467055148945, -0.5066813576048937, 0.7553921347693026, -1.0160241329097783}}},
                                 {2, 1, 2});
}

TEMPLATE_TEST_CASE("Adafactor makes torch.optim.Adafactor's steps", EACH_PRECISION) {
  using Kind = optim::Adafactor<TestType>;
  const optim::AdafactorOptions options{.epsilon1 = 1e-7};
  require_values<Kind, TestType>(options, {{1, {0.25540061724867325, -0.5054006172486732, 0.7554006172486732}},
                                           {6, {0.2476621925546652, -0.5007799605898684, 0.7558286712418522}},
                                           {10, {0.25112099171587005, -0.5073042115588643, 0.7573974694237898}}});
  require_values<Kind, TestType>(options,
                                 {{1,
                                   {0.26360974267888415, -0.5048370294814563, 0.7554438970715537, -1.0120925737036406,
                                    1.2453646886716088, -1.4876442534145358}},
                                  {6,
                                   {0.24729565153496014, -0.49501552983668645, 0.7566863869278068, -1.013267705474832,
                                    1.2357695872600918, -1.4701726444243326}},
                                  {10,
                                   {0.2540291063610102, -0.5064519350344481, 0.7593817400367036, -0.9951483525174454,
                                    1.2343746953891654, -1.4867404673235614}}},
                                 {3, 2});
  require_values<Kind, TestType>(options,
                                 {{1,
                                   {0.26629161839527626, -0.5065166473581105, 0.7565166473581105, -1.0162916183952764,
                                    1.2451477804984823, -1.4799937864765604, 1.7346559346681172, -2.0}},
                                  {6,
                                   {0.24555337526524948, -0.49609415526472234, 0.7562774524819506, -1.0209680219391473,
                                    1.234475475064492, -1.4579278436246692, 1.7468556262898989, -2.036298481076097}},
                                  {10,
                                   {0.25397053389871077, -0.5102567404384827, 0.7603607412717668, -0.9983706787358211,
                                    1.234934584285591, -1.478696609577863, 1.7428400842988576, -2.020137971649284}}},
                                 {2, 2, 2});
  require_values<Kind, TestType>(optim::AdafactorOptions{.learning_rate = 0.5,
                                                         .beta2_decay = -0.5,
                                                         .epsilon1 = 1e-3,
                                                         .epsilon2 = 0.9,
                                                         .clip = 1.5,
                                                         .weight_decay = 0.1,
                                                         .maximize = true},
                                 {{1,
                                   {-0.2566258478721322, 0.15002525201512104, 0.3248757937737565, -0.47019969431717384,
                                    1.4909523576005521, -1.9895794895318106}},
                                  {6,
                                   {0.39179615489437947, -0.09918717061803725, 0.41015299420303786, -0.45934460625214985,
                                    1.487696976571264, -2.1323640453745893}},
                                  {10,
                                   {0.2873421863317695, 0.26907906074126864, 0.15929666875713228, -0.802359426781594,
                                    1.1509674535302836, -1.2103372370456313}}},
                                 {2, 3});
}

TEST_CASE("NAdam, RAdam and Adadelta refuse options that make no sense") {
  Model model(DType::float32);
  model.store().add("weight", {3}, Initializer::constant(0));
  CHECK_THROWS_WITH(optim::Nadam<Float32>(model, {.beta2 = 1}),
                    ContainsSubstring("NAdam's betas lie in [0, 1), got 0.9 and 1"));
  CHECK_THROWS_WITH(optim::Nadam<Float32>(model, {.momentum_decay = -1}), ContainsSubstring("momentum_decay are 0 or more"));
  CHECK_THROWS_WITH(optim::Radam<Float32>(model, {.beta1 = -0.1}), ContainsSubstring("RAdam's betas lie in [0, 1)"));
  CHECK_THROWS_WITH(optim::Radam<Float32>(model, {.epsilon = -1}), ContainsSubstring("RAdam's epsilon is 0 or more, got -1"));
  CHECK_THROWS_WITH(optim::Adadelta<Float32>(model, {.smoothing = 1}), ContainsSubstring("smoothing lies in [0, 1), got 1"));
  CHECK_THROWS_WITH(optim::Adadelta<Float32>(model, {.epsilon = 0}), ContainsSubstring("epsilon is above 0, got 0"));
}

TEST_CASE("NAdam's momenta come to an end") {
  // 1 minus their product is 1 after some hundred updates: the count of updates may be any.
  const ops::NadamUpdate<double> late({.learning_rate = 1, .update = 1'000'000'000'000});
  CHECK(late.gradient_rate == Approx(0.1));
  CHECK(late.moment_rate == Approx(0.9));
}

#include "trireme/autograd/model.hpp"

#include <memory>
#include <string>
#include <vector>

#include "catch.hpp"
#include "trireme/autograd/frozen_parameters.hpp"
#include "trireme/autograd/parameter.hpp"
#include "trireme/core/error.hpp"

using namespace trireme;

namespace {

// One of several ranks; it never communicates.
class Quiet final : public Collectives {
 public:
  Quiet(int rank, int size) : Collectives(rank, size) {}

 private:
  Pending start(const Call&) const override { return {}; }
};

// The members of nn::Module that contexts and lists of layers use.
struct Part {
  Model& model() const { return *of; }
  const std::string& name() const { return called; }

  Model* of;
  std::string called;
};

}  // namespace

TEST_CASE("a context says which stages lie here: stage s on rank s % ranks") {
  const ModelContext alone{.chunks = 3};
  CHECK(alone.num_stages() == 3);
  CHECK(alone.stages() == std::vector<int>{0, 1, 2});
  CHECK(ModelContext{}.stages() == std::vector<int>{0});

  const ModelContext second{.pipeline = std::make_shared<const Quiet>(1, 4), .chunks = 2};
  CHECK(second.num_stages() == 8);
  CHECK(second.stages() == std::vector<int>{1, 5});
}

TEST_CASE("a model of ranks without stages is refused") {
  CHECK_THROWS_WITH(Model({.chunks = 0}, DType::float32, DType::float32),
                    ContainsSubstring("a rank of a pipeline has at least one stage, got 0"));
}

TEST_CASE("a switch counts for a module and what lies within it, the innermost first") {
  ModuleSwitches switches;
  CHECK(switches.is_on(""));
  switches.set("encoder", false);
  CHECK_FALSE(switches.is_on("encoder.block.0.weight"));
  CHECK(switches.is_on("encoders.weight"));  // a name that begins alike
  CHECK(switches.is_on(""));
  switches.set("encoder.block", true);
  CHECK(switches.is_on("encoder.block.0.weight"));
  CHECK_FALSE(switches.is_on("encoder.bias"));
  switches.set("encoder", false);  // all within it once more
  CHECK_FALSE(switches.is_on("encoder.block.0.weight"));
  switches.set("", true);
  CHECK(switches.is_on("encoder.bias"));
}

TEST_CASE("parameters of one module are frozen, those of others go on learning") {
  const auto model = std::make_shared<Model>(DType::float32);
  const auto add = [&](const char* name) {
    return Parameter<float>(model, model->store().add(name, {2}, Initializer::constant(2)));
  };
  const Parameter<float> body = add("body.weight");
  const Parameter<float> norm = add("body.norm.weight");
  const Parameter<float> head = add("head.weight");
  model->store().initialize<float>(1);
  Tape tape;
  const auto learns = [](const Parameter<float>& parameter) { return parameter.variable().slot() != nullptr; };
  const auto learning = [&] { return std::vector<bool>{learns(body), learns(norm), learns(head)}; };
  {
    const FrozenParameters frozen(Part{.of = model.get(), .called = "body.norm"});
    CHECK(learning() == std::vector<bool>{true, false, true});
    {
      const FrozenParameters larger(*model, "body");
      CHECK(learning() == std::vector<bool>{false, false, true});
      const FrozenParameters all(*model);
      CHECK(learning() == std::vector<bool>{false, false, false});
    }
    CHECK(learning() == std::vector<bool>{true, false, true});  // the end of inner scopes does not end the outer one
  }
  CHECK(learning() == std::vector<bool>{true, true, true});
}

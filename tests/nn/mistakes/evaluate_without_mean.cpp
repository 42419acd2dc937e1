// wanted: the function of evaluate\(\) returns a Mean, a Loss or a std::array of Means
#include "trireme/data/tables/table.hpp"
#include "trireme/trainer/run.hpp"

using namespace trireme;

struct Net : nn::Module<Float32> {
  using Module::Module;
  Value forward(const data::Rows& rows) const { return linear.forward(rows.x); }
  Linear linear{*this, "linear", {.in = 4, .out = 2}};
};

void test(trainer::Run& run, const Net& net, const data::Table& table) {
  run.evaluate(net, table, [](const auto& y, const auto&) { return 1.0 * y.value().data()[0]; });
}

// wanted: evaluate\(\) reads a dataset: a type with size\(\) and at\(index\)
#include "trireme/data/tables/table.hpp"
#include "trireme/trainer/run.hpp"

using namespace trireme;

struct Net : nn::Module<Float32> {
  using Module::Module;
  Value forward(const data::Rows& rows) const { return linear.forward(rows.x); }
  Loss<float> loss(const Value& y, const data::Rows& rows) const { return cross_entropy(y, rows.labels); }
  Linear linear{*this, "linear", {.in = 4, .out = 2}};
};

void test(trainer::Run& run, const Net& net, const data::Rows& rows) { run.evaluate(net, rows); }

#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "trireme/autograd/parameter.hpp"
#include "trireme/autograd/tape.hpp"

namespace trireme::tests {

// A model of parameters that begin as 2.
struct Store {
  std::shared_ptr<Model> model = std::make_shared<Model>(DType::float32);
  FlatStore* store = &model->store();
  Parameter<float> add(std::string name, const Shape& shape = {2}) {
    return Parameter<float>(model, store->add(std::move(name), shape, Initializer::constant(2)));
  }
};

struct Listener : GradientListener {
  std::vector<int> final_parameters;
  void on_final(int parameter) override { final_parameters.push_back(parameter); }
};

}  // namespace trireme::tests

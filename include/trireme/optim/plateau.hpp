#pragma once

#include <cstdint>
#include <string>

#include "trireme/core/export.hpp"
#include "trireme/core/state.hpp"

namespace trireme TRIREME_EXPORT {
namespace optim {

struct PlateauOptions {
  double factor = 0.1;         // of the rate, each time
  std::int64_t patience = 10;  // results in a row without an improvement that are borne
  double threshold = 1e-4;     // by which a result is better than the best so far
  bool relative = true;        // that is a share of the best's magnitude
  bool maximize = false;       // higher results are better: accuracies
  std::int64_t cooldown = 0;   // results after a reduction that are not counted
  double minimum = 0;          // of the factors together
};

// Lowers the learning rate where validation no longer improves; the decisions of torch ReduceLROnPlateau (which takes a
// relative threshold the wrong way round for results below 0).
//
//   optim::Plateau plateau({.factor = 0.5, .patience = 3});
//   run.keep([&](State& state) { plateau.add_to(state); });
//   ...
//   plateau.update(validation_loss);  // after each validation
//   step.update(optimizer, {.learning_rate = rate(number) * plateau.factor()});
//
// It is a value of each rank: give all ranks the same results, as Run::evaluate and Group::all_reduce return them.
class Plateau {
 public:
  explicit Plateau(const PlateauOptions& options = {});

  // One that is inf or nan is no improvement. True where it lowers the factor.
  bool update(double result);

  double factor() const { return factor_; }  // of the learning rate: 1 at first

  // What a checkpoint keeps.
  void add_to(State& state, const std::string& prefix = "plateau.");

 private:
  bool improves(double result) const;

  PlateauOptions options_;
  double factor_ = 1;
  double best_ = 0;
  std::int64_t has_best_ = 0;  // 1 from the first finite result on
  std::int64_t without_improvement_ = 0;
  std::int64_t cooling_ = 0;  // results left that are not counted
};

}  // namespace optim
}  // namespace trireme

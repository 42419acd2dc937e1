#pragma once

#include <cstdint>
#include <string>

#include "trireme/core/export.hpp"
#include "trireme/core/state.hpp"

namespace trireme TRIREME_EXPORT {
namespace optim {

struct PlateauOptions {
  double factor = 0.1;         // multiplies the rate at each reduction
  std::int64_t patience = 10;  // tolerated results in a row without an improvement
  double threshold = 1e-4;     // a result is an improvement if it is better than the best so far by more than this
  bool relative = true;        // threshold is relative to the magnitude of the best result
  bool maximize = false;       // higher results are better, as for accuracies
  std::int64_t cooldown = 0;   // results after a reduction that are not counted
  double minimum = 0;          // lower bound of factor()
};

// Lowers the learning rate when validation does not improve. It decides like torch's ReduceLROnPlateau, except that a relative
// threshold also works for results below 0.
//
//   optim::Plateau plateau({.factor = 0.5, .patience = 3});
//   run.keep([&](State& state) { plateau.add_to(state); });
//   ...
//   plateau.update(validation_loss);  // after each validation
//   step.update(optimizer, {.learning_rate = rate(number) * plateau.factor()});
//
// Each rank has its own Plateau: give all ranks the same results, as Run::evaluate and Group::all_reduce return them.
class Plateau {
 public:
  explicit Plateau(const PlateauOptions& options = {});

  // Returns true if it lowers the factor. A result of inf or nan is no improvement.
  bool update(double result);

  double factor() const { return factor_; }  // on the learning rate; starts as 1

  // Adds the state of this object to a checkpoint's state.
  void add_to(State& state, const std::string& prefix = "plateau.");

 private:
  bool improves(double result) const;

  PlateauOptions options_;
  double factor_ = 1;
  double best_ = 0;
  std::int64_t has_best_ = 0;  // 1 from the first finite result on
  std::int64_t without_improvement_ = 0;
  std::int64_t cooling_ = 0;  // remaining results that are not counted
};

}  // namespace optim
}  // namespace trireme

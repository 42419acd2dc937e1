#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "trireme/core/export.hpp"

namespace trireme TRIREME_EXPORT {

namespace ops {
struct RandomPosition;
}

class FlatStore;
class Model;
struct StepTotals;
class Tape;

// A layer of a list that ranks divide between them. Calls of one stream of random numbers can't be counted over several ranks,
// so each layer has streams of its own where other layers may use the same name: the name of a module that several layers have,
// or a name that belongs to no module of the layer.
struct LayerOfList {
  std::uint64_t number = 0;               // from 1
  std::vector<std::string> modules = {};  // that it uses
  std::uint64_t repetition = 0;           // differs between layers that have a module in common
};

// The part of a gradient that does not depend on its element type.
class GradientSlot {
 public:
  explicit GradientSlot(Tape& tape);
  GradientSlot(const GradientSlot&) = delete;
  GradientSlot& operator=(const GradientSlot&) = delete;
  virtual ~GradientSlot() = default;

  bool on(const Tape& tape) const;
  Tape& tape() const;                                        // an error unless it is this thread's current tape
  virtual void count_use() {}                                // the variable is an operand of an operation
  virtual std::string_view parameter() const { return {}; }  // its name, if it is one

  // What the gradient is summed in: one for all slots of a parameter.
  virtual const void* place() const { return this; }

 private:
  std::uint64_t tape_serial_;
};

// Hears of every parameter's final gradient during backward: the ones that forward did not use first, or, where the backward
// pass is split, with those that are put off.
class GradientListener {
 public:
  virtual ~GradientListener() = default;
  virtual void on_final(int parameter) = 0;
};

// A loss that add_loss() has put on a tape, beside the one from which backward() starts. Typed ones are AddedLossOf<T, D>.
class AddedLoss {
 public:
  AddedLoss() = default;
  AddedLoss(const AddedLoss&) = delete;
  AddedLoss& operator=(const AddedLoss&) = delete;
  virtual ~AddedLoss() = default;

  virtual double value() const = 0;                   // of a GPU: the host waits
  virtual void add_to(StepTotals* totals) const = 0;  // which lie where the value does
  virtual void begin_alone() = 0;                     // its backward pass, with a gradient of 1, unless that has begun
};

// The layers of lists that compute, from the innermost outwards.
struct LayersAround {
  const LayerOfList* layer;
  std::shared_ptr<const LayersAround> outer;
};

// How often a micro-batch has drawn from each stream of random numbers so far, and in which layer it draws.
class StreamCalls {
 public:
  StreamCalls();

 private:
  friend class Tape;
  friend struct TapeOptions;
  struct Counts;
  std::shared_ptr<Counts> counts_;                // of all copies
  std::uint64_t rank_ = 0;                        // whose copies count together: the thread of their first tape; 0: none yet
  std::shared_ptr<const LayersAround> layers_{};  // in which a tape had them; null: none
};

// Names the random numbers of a micro-batch, so that they do not depend on which rank computes it. The n-th call of a stream, a
// dropout layer's, draws the n-th numbers, counted over all tapes of a micro-batch: all are given copies of the same options.
//
//   const TapeOptions names{.seed = 1, .step = step, .first_sample = batch.first_sample, .samples = batch.size()};
//   Tape tape(names);  ...  Tape inner(names);
//
// A thread that a loss starts opens a tape by a copy of *Tape::current()->options(): it then draws in the same layer and counts
// on where the loss is. Threads that draw at the same time give their streams different names.
struct TapeOptions {
  std::uint64_t seed = 0;
  std::uint64_t step = 0;
  std::int64_t first_sample = 0;  // global index of the micro-batch's first sample
  // How many samples the micro-batch has. A layer may make several rows of one, as channels, patches or windows: what is drawn
  // for a row is named by its sample and its place in it. Where this is not said, only the samples from 0 on can draw.
  std::optional<std::int64_t> samples = {};

  // Where operations on a GPU read step and first_sample, unless null: StepGraph.
  const ops::RandomPosition* on_device = nullptr;

  StreamCalls calls = {};

  // For doing the same once more, with the same numbers: calls are counted from the first again, in the same layer.
  TapeOptions restarted() const;
};

// Records what the forward pass does, for one backward pass. While in scope it is the current tape of its thread; without
// one nothing is recorded. Use one for each micro-batch. Without options there are no random numbers: dropout is an error.
//
// A pipeline has several micro-batches under way, a tape each, of which it resumes the one it works on:
//   Tape tape(options);  ...forward...  tape.suspend();  ...others...  tape.resume();  loss.backward();  tape.suspend();
class Tape {
 public:
  Tape();
  explicit Tape(const TapeOptions& options);
  ~Tape();
  Tape(const Tape&) = delete;
  Tape& operator=(const Tape&) = delete;

  static Tape* current();  // null when nothing is recorded
  const std::optional<TapeOptions>& options() const { return options_; }

  void suspend();  // the tape that was current before it is again; what it has recorded stays
  void resume();   // the current tape once more

  // Where operation number `call` of a stream finds its random numbers; an error for a tape without options.
  struct RandomCall {
    const TapeOptions& at;
    std::uint64_t stream;
    std::uint64_t call;
  };
  RandomCall next_call(std::string_view operation, std::string_view stream);

  // How many of a micro-batch's rows belong to each of its samples; an error where that is no whole number, or can't be known.
  std::int64_t rows_per_sample(std::string_view operation, std::int64_t rows) const;

  // What is drawn between these two is drawn in this layer, also on tapes that are opened there. Lists may lie within a layer.
  void enter_layer(const LayerOfList& layer);
  void leave_layer();

  std::uint64_t serial() const { return serial_; }

  // The listener hears of this store's parameters; it must outlive the backward pass.
  void listen(FlatStore& store, GradientListener& listener);

  // One step of the backward pass; it is destroyed, with the activations it kept, as soon as it has run.
  class Node {
   public:
    virtual ~Node() = default;
    virtual void backward() = 0;

    // Of a split backward pass: the gradients of inputs. True where weight_gradients() is left to be done.
    virtual bool input_gradients() {
      backward();
      return false;
    }
    virtual void weight_gradients() {}
  };
  void add(std::unique_ptr<Node> node);

  // Splits the backward pass: backward() puts off what nobody waits for, the gradients of parameters that are weights of matrix
  // products and convolutions, with what they need, to run_weight_gradients(). A parameter is final no sooner than that. The
  // gradients are the same bits, unless a parameter has several uses of which some are put off.
  void split_backward();        // before backward()
  void run_weight_gradients();  // after it

  void run_backward();  // Variable::backward calls it

  void add_loss(std::shared_ptr<AddedLoss> loss);  // trireme::add_loss does
  const std::vector<std::shared_ptr<AddedLoss>>& added_losses() const { return added_losses_; }

  void use(const std::shared_ptr<Model>& model, int parameter);  // which lives until the tape ends
  void contributed(FlatStore& store, int parameter);

 private:
  void leave();  // is no tape of its thread any more

  void set_layers(std::shared_ptr<const LayersAround> layers);

  struct Uses {
    FlatStore* store;
    GradientListener* listener;
    std::vector<int> missing;                 // contributions, by parameter
    std::shared_ptr<const Model> model = {};  // whose store it is
  };
  Uses& uses_of(FlatStore& store);
  struct Final {
    GradientListener* listener;
    int parameter;
  };
  std::vector<Final> finals(bool used) const;

  std::optional<TapeOptions> options_;
  std::uint64_t serial_;
  std::shared_ptr<const LayersAround> layers_;  // that compute; null: none
  Tape* outer_;                                 // the tape that was current before
  bool suspended_ = false;
  bool ran_ = false;
  bool splits_ = false;
  std::vector<std::unique_ptr<Node>> nodes_;
  std::vector<std::unique_ptr<Node>> put_off_;  // of a split backward pass
  std::vector<Final> unused_;                   // likewise
  std::vector<Uses> uses_;
  std::vector<std::shared_ptr<AddedLoss>> added_losses_;
};

}  // namespace trireme

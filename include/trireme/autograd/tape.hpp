#pragma once

#include <any>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
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

// A layer of a list that is divided over ranks. Calls of one stream of random numbers can't be counted over several ranks. So a
// layer has its own streams for names that other layers may use too: names of modules that several layers share, and names that
// belong to no module of the layer.
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
  virtual std::string_view parameter() const { return {}; }  // the name of a parameter, if this is its slot

  // Identifies the memory in which the gradient is summed: the same for all slots of a parameter.
  virtual const void* place() const { return this; }

  // For results of a recomputed function. has_own_gradient(): whether this slot has a gradient that belongs to no parameter.
  // take_over() takes the gradient of `first`, the slot of the same result in the first run; a different type or shape is an
  // error.
  virtual bool has_own_gradient() const = 0;
  virtual void take_over(GradientSlot& first) = 0;

 private:
  std::uint64_t tape_serial_;
};

// During the backward pass, a listener learns when each parameter's gradient is final. Parameters that the forward pass did not
// use come first. If the backward pass is split, these parameters come together with the deferred gradients.
class GradientListener {
 public:
  virtual ~GradientListener() = default;
  virtual void on_final(int parameter) = 0;
};

// A loss that add_loss() has put on a tape, besides the loss from which backward() starts. AddedLossOf<T, D> implements it.
class AddedLoss {
 public:
  AddedLoss() = default;
  AddedLoss(const AddedLoss&) = delete;
  AddedLoss& operator=(const AddedLoss&) = delete;
  virtual ~AddedLoss() = default;

  virtual std::shared_ptr<GradientSlot> slot() const = 0;
  virtual double value() const = 0;                   // on a GPU the host waits for it
  virtual void add_to(StepTotals* totals) const = 0;  // totals lie on the value's device
  virtual void begin_alone() = 0;                     // begins its backward pass with a gradient of 1, unless it has begun
};

// The layers of lists in which a tape computes, from the innermost outwards.
struct LayersAround {
  const LayerOfList* layer;
  std::shared_ptr<const LayersAround> outer;
};

// How often a micro-batch has drawn from each stream of random numbers so far, and in which layer it draws.
class StreamCalls {
 public:
  StreamCalls();
  using OfStreams = std::map<std::uint64_t, std::uint64_t>;  // the number of calls, by stream

 private:
  friend class Tape;
  friend struct TapeOptions;
  struct Counts;
  std::shared_ptr<Counts> counts_;  // shared by all copies
  std::uint64_t rank_ = 0;          // the thread of the first tape; copies of the same rank count together; 0: no tape yet
  std::shared_ptr<const LayersAround> layers_{};  // the layers around the tape whose options were copied; null: none
};

// Identifies the random numbers of a micro-batch, so that they do not depend on the rank that computes the micro-batch. The
// n-th call of a stream, such as the stream of a dropout layer, draws the n-th numbers. Calls are counted over all tapes of a
// micro-batch, if each tape is given a copy of the same options.
//
//   const TapeOptions names{.seed = 1, .step = step, .first_sample = batch.first_sample, .samples = batch.size()};
//   Tape tape(names);  ...  Tape inner(names);
//
// If a loss starts a thread, the thread must open its tape with a copy of the loss's *Tape::current()->options(). The thread
// then draws in the same layer and continues the loss's counts. Threads that draw at the same time must use streams with
// different names.
struct TapeOptions {
  std::uint64_t seed = 0;
  std::uint64_t step = 0;
  std::int64_t first_sample = 0;  // global index of the micro-batch's first sample
  // How many samples the micro-batch has. A layer may make several rows of one sample (channels, patches, windows); the random
  // numbers of a row depend on the row's sample and on the row's place in the sample. Required unless first_sample is 0.
  std::optional<std::int64_t> samples = {};

  // Unless null, operations on a GPU read step and first_sample from here, see StepGraph.
  const ops::RandomPosition* on_device = nullptr;

  StreamCalls calls = {};

  // Returns options to compute a micro-batch again with the same random numbers: calls are counted from the first call again,
  // in the same layer.
  TapeOptions restarted() const;
};

// Records the operations of a forward pass for one backward pass. While a Tape is in scope, it is the current tape of its
// thread. Without a tape, nothing is recorded. Use one tape for each micro-batch. Without options there are no random numbers:
// dropout is an error.
//
// A pipeline has several micro-batches under way, each with its tape, and resumes the tape of the micro-batch that it works on:
//   Tape tape(options);  ...forward...  tape.suspend();  ...others...  tape.resume();  loss.backward();  tape.suspend();
class Tape {
  struct Run;  // of a function that is recomputed
  class RecomputedNode;

 public:
  Tape();
  explicit Tape(const TapeOptions& options);
  ~Tape();
  Tape(const Tape&) = delete;
  Tape& operator=(const Tape&) = delete;

  static Tape* current();  // null when nothing is recorded
  const std::optional<TapeOptions>& options() const { return options_; }

  void suspend();  // makes the previous tape current again; keeps the recorded operations
  void resume();   // makes this the current tape again

  // Where operation number `call` of a stream finds its random numbers; an error for a tape without options.
  struct RandomCall {
    const TapeOptions& at;
    std::uint64_t stream;
    std::uint64_t call;
  };
  RandomCall next_call(std::string_view operation, std::string_view stream);

  // How many of a micro-batch's rows belong to each of its samples; an error if this is not a whole number or is unknown.
  std::int64_t rows_per_sample(std::string_view operation, std::int64_t rows) const;

  // Random numbers drawn between enter_layer() and leave_layer() belong to this layer, also on tapes that are opened in
  // between. A layer may contain lists.
  void enter_layer(const LayerOfList& layer);
  void leave_layer();

  std::uint64_t serial() const { return serial_; }

  // The listener learns about this store's parameters. It must outlive the backward pass.
  void listen(FlatStore& store, GradientListener& listener);

  // One operation's step of the backward pass. As soon as the step has run, the tape destroys the step and the activations that
  // it kept.
  class Node {
   public:
    virtual ~Node() = default;
    virtual void backward() = 0;

    // In a split backward pass: computes the gradients of inputs. Returns whether weight_gradients() has to be called later.
    virtual bool input_gradients() {
      backward();
      return false;
    }
    virtual void weight_gradients() {}
  };
  void add(std::unique_ptr<Node> node);

  // Splits the backward pass. backward() leaves out the gradients of parameters that are weights of matrix products and
  // convolutions, and keeps the tensors that these gradients need. run_weight_gradients() computes them later; only then are
  // these gradients final. The gradients have the same bits as without the split, unless only some uses of a parameter are
  // deferred.
  void split_backward();        // before backward()
  void run_weight_gradients();  // after backward()

  void run_backward();  // Variable::backward calls it

  void add_loss(std::shared_ptr<AddedLoss> loss);  // trireme::add_loss does
  const std::vector<std::shared_ptr<AddedLoss>>& added_losses() const { return added_losses_; }

  // The first run of a recomputed function, see recompute(). Until finish(), nothing that the function records is kept.
  class FirstRun {
   public:
    explicit FirstRun(Tape& tape);
    ~FirstRun();
    FirstRun(const FirstRun&) = delete;
    FirstRun& operator=(const FirstRun&) = delete;

    // results: the slots of the function's results, null for constants. again(): runs the function again and returns the slots
    // of its results. version(): the sum of the versions of the inputs, which must not change.
    void finish(std::vector<std::shared_ptr<GradientSlot>> results,
                std::function<std::vector<std::shared_ptr<GradientSlot>>()> again, std::function<std::uint32_t()> version);

   private:
    Tape& tape_;
    std::unique_ptr<Run> run_;
  };

  // in_run(): whether a recomputed function is running. leaves_out(): whether this run can leave out the forward pass of an
  // operation that the function records. Further runs only have to compute what is kept.
  struct Kept {
    bool operands = false;
    bool results = false;  // or a state of the operation
  };
  bool in_run() const { return !runs_.empty(); }
  bool leaves_out(const Kept& kept);

  // Whether a recomputed function runs again. Operations then leave out their side effects, such as running statistics.
  static bool repeats() {
    const Tape* tape = innermost_with_run();
    return tape != nullptr && tape->in_further_run();
  }

  // Returns make(). In further runs of a recomputed function, returns what make() returned in the first run. Use it for values
  // that depend on a state that the operation changes.
  template <typename Make>
  static auto once(const Make& make) {
    using Value = decltype(make());
    Tape* tape = innermost_with_run();
    if (tape == nullptr) return make();
    return std::any_cast<Value>(tape->made_once([&]() -> std::any { return make(); }));
  }

  void use(const std::shared_ptr<Model>& model, int parameter);  // keeps the model alive until the tape ends
  void contributed(FlatStore& store, int parameter);

 private:
  void leave();                       // removes this tape from its thread's stack of tapes
  static Tape* innermost_with_run();  // of this thread: the tape on which a recomputed function runs; null: there is none
  bool in_further_run() const;
  std::any made_once(const std::function<std::any()>& make);

  void set_layers(std::shared_ptr<const LayersAround> layers);

  struct Uses {
    FlatStore* store;
    GradientListener* listener;
    std::vector<int> missing;                 // contributions still to come, by parameter
    std::shared_ptr<const Model> model = {};  // the owner of the store
  };
  Uses& uses_of(FlatStore& store);
  struct Final {
    GradientListener* listener;
    int parameter;
  };
  std::vector<Final> finals(bool used) const;

  std::optional<TapeOptions> options_;
  std::uint64_t serial_;
  std::shared_ptr<const LayersAround> layers_;  // the layers in which the tape computes; null: none
  Tape* outer_;                                 // the tape that was current before
  bool suspended_ = false;
  bool ran_ = false;
  bool splits_ = false;
  std::vector<std::unique_ptr<Node>> nodes_;
  std::vector<std::unique_ptr<Node>> put_off_;  // nodes that split_backward() defers
  std::vector<Final> unused_;                   // parameters without a use, which run_weight_gradients() announces
  std::vector<Uses> uses_;
  std::vector<std::shared_ptr<AddedLoss>> added_losses_;
  std::vector<Run*> runs_;  // under way, from the outermost inwards
  bool in_once_ = false;    // a value of once() is being made
};

}  // namespace trireme

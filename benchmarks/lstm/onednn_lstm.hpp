#pragma once

#include <cstdint>
#include <memory>

struct LstmSizes {
  std::int64_t batch = 32;
  std::int64_t time = 64;
  std::int64_t hidden = 512;  // also the input's width, which oneDNN requires for several layers
  int layers = 2;
};

// Forward and backward of oneDNN's own LSTM primitive, with weights in torch's layout: [gates * hidden, in].
class OnednnLstm {
 public:
  explicit OnednnLstm(const LstmSizes& sizes);
  ~OnednnLstm();

  void run();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// ProcessGroup: what the processes of a World say to each other: sums, copies and texts, on c10d with Gloo,
// which LibTorch carries. A world of one is a world: everything works, and no socket is opened.
#pragma once

#include <torch/types.h>

#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "calque/distributed/world.h"

namespace calque {

// A process ended, hangs or cannot be reached. Every process of the group throws this within the timeout.
class RankLost : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class ProcessGroup {
 public:
  ProcessGroup();                             // a world of one
  explicit ProcessGroup(const World& world);  // waits until all processes are there
  ~ProcessGroup();
  ProcessGroup(const ProcessGroup&) = delete;
  ProcessGroup& operator=(const ProcessGroup&) = delete;

  const World& world() const { return world_; }
  int rank() const { return world_.rank; }
  int size() const { return world_.size; }
  bool is_first() const { return world_.is_first(); }
  bool is_alone() const { return world_.is_alone(); }
  // "rank 2 (node7, process 4711)"
  std::string name(int rank) const;

  // How long an operation waits for the other processes. Generous until this is called: at the start some
  // work while the others wait.
  void set_timeout(double seconds) { timeout_seconds_ = seconds; }

  double waited_seconds() const { return waited_seconds_; }  // in all operations so far

  // An operation that goes on in the background, on tensors that must live until wait().
  class Pending {
   public:
    void wait();

   private:
    friend class ProcessGroup;
    struct Work;
    std::shared_ptr<Work> work_;  // empty: it was done at once
  };

  // All ranks call these in the same order, with tensors of the same sizes on the CPU. Sums have the same
  // bits on every rank, and the same from run to run.
  Pending start_sum(torch::Tensor tensor);  // in place
  void sum(const torch::Tensor& tensor);    // in place
  std::vector<double> sum(const std::vector<double>& values);
  void broadcast(const torch::Tensor& tensor, int from = 0);  // of any device
  torch::Tensor gather(const torch::Tensor& own);             // own: [n]; returns [size, n] on every rank
  void send(torch::Tensor tensor, int to);
  void receive(torch::Tensor tensor, int from);

  using Texts = std::vector<std::string>;  // of any bytes
  Texts gather(const std::string& own);    // by rank
  std::vector<Texts> gather(const Texts& own);
  std::string broadcast(const std::string& text, int from = 0);  // the text of rank `from`
  Texts broadcast(const Texts& texts, int from = 0);
  void barrier();

  // Rank 0's result, on all ranks. If it throws there, all ranks throw.
  std::string from_first(const std::function<std::string()>& make);
  // Every rank does its part; if it throws on one, all ranks throw, the others with that rank's message.
  void everywhere(const std::function<void()>& work);
  // The same, but the first process of each machine works before its others: they find what it has cached.
  void everywhere_in_turn(const std::function<void()>& work);

 private:
  struct Connection;
  template <class Start>
  Pending begin(const Start& start);
  [[noreturn]] void fail(const std::exception& reason);

  World world_;
  std::unique_ptr<Connection> connection_;  // none in a world of one
  double timeout_seconds_;
  double waited_seconds_ = 0;
};

}  // namespace calque

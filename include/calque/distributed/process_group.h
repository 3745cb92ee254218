// ProcessGroup: what the processes of a World say to each other: sums, copies and texts, on c10d with Gloo,
// which LibTorch carries. A world of one is a world: everything works, and no socket is opened.
#pragma once

#include <torch/types.h>

#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "calque/distributed/world.h"

namespace calque {

// A process ended, hangs or cannot be reached. Every process of the group throws this within the timeout.
class RankLost : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// What must be the same on every rank: names with values.
using Claims = std::vector<std::pair<std::string, std::string>>;

// Of a sum, whose messages go around a ring, from rank to rank: enough that the time of a message is that of
// its content, few enough that a slow network carries it within the timeout.
int64_t elements_per_message(int ranks);

class ProcessGroup {
 public:
  ProcessGroup();  // a world of one
  // Waits until all processes are there, and compares what they claim (what command they run), their builds
  // of calque and their versions of LibTorch.
  explicit ProcessGroup(const World& world, const Claims& claims = {});
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

  // How long an operation waits for a process that makes no progress; the world's timeout until this is
  // called. Progress is an operation, or a call of note_progress().
  void set_timeout(double seconds);
  double timeout_seconds() const;
  void note_progress();

  // While one lives, this process may work for as long as it has to: its use of the processor and of disks
  // counts as progress. everywhere() and from_first() have one.
  class LongWork {
   public:
    explicit LongWork(ProcessGroup& group);
    ~LongWork();
    LongWork(const LongWork&) = delete;
    LongWork& operator=(const LongWork&) = delete;

   private:
    ProcessGroup& group_;
  };
  // While one lives, this process waits for somebody outside (who types lines to translate), for any time.
  class OutsideWait {
   public:
    explicit OutsideWait(ProcessGroup& group);
    ~OutsideWait();
    OutsideWait(const OutsideWait&) = delete;
    OutsideWait& operator=(const OutsideWait&) = delete;

   private:
    ProcessGroup& group_;
  };

  double waited_seconds() const { return waited_seconds_; }  // in all operations so far

  // An operation that goes on in the background, on tensors that must live until wait().
  class Pending {
   public:
    void wait();

   private:
    friend class ProcessGroup;
    struct Work;
    std::vector<std::shared_ptr<Work>> works_;  // one per message; none: it was done at once
  };

  // All ranks call these in the same order, with contiguous tensors of the same sizes on the CPU. Sums have
  // the same bits on every rank, and the same from run to run.
  Pending start_sum(torch::Tensor tensor);  // in place
  void sum(const torch::Tensor& tensor);    // in place
  std::vector<double> sum(const std::vector<double>& values);
  void broadcast(const torch::Tensor& tensor, int from = 0);  // of any device
  torch::Tensor gather(const torch::Tensor& own);             // own: [n]; returns [size, n] on every rank
  void send(const torch::Tensor& tensor, int to);
  void receive(const torch::Tensor& tensor, int from);

  using Texts = std::vector<std::string>;  // of any bytes
  Texts gather(const std::string& own);    // by rank
  std::vector<Texts> gather(const Texts& own);
  std::string broadcast(const std::string& text, int from = 0);  // the text of rank `from`
  Texts broadcast(const Texts& texts, int from = 0);
  void barrier();

  // Throws a UserError with both values on every rank if a claim of one is not that of rank 0.
  void check_alike(
      const Claims& claims,
      const std::string& help = "all processes of a run need the same program, configuration and data");

  // Rank 0's result, on all ranks. If it throws there, all ranks throw.
  std::string from_first(const std::function<std::string()>& make);
  // Every rank does its part; if it throws on one, all ranks throw, the others with that rank's message.
  void everywhere(const std::function<void()>& work);
  // The texts that every rank has made, by rank; if it throws on one, all ranks throw.
  std::vector<Texts> gather_from_all(const std::function<Texts()>& make);
  // As everywhere(), but the first process of each machine works before its others: they find what it has
  // cached.
  void everywhere_in_turn(const std::function<void()>& work);

 private:
  struct Connection;
  template <class Start>
  Pending begin(const Start& start, bool point_to_point = false);
  void wait_for(Pending::Work& work);
  [[noreturn]] void fail(const std::string& reason, const std::vector<int>& stuck);
  std::string names(const std::vector<int>& ranks) const;

  World world_;
  std::unique_ptr<Connection> connection_;  // none in a world of one
  double waited_seconds_ = 0;
};

}  // namespace calque

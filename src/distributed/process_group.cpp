#include "calque/distributed/process_group.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <chrono>
#include <future>
#include <thread>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>

#include "calque/base/error.h"
#include "network.h"
#include "pulse.h"
#include "rendezvous.h"

namespace calque {

using torch::Tensor;

namespace {

constexpr Milliseconds store_patience{10'000};
// Of the operations themselves: who waits for them decides how long.
constexpr auto no_timeout = std::chrono::duration_cast<Milliseconds>(std::chrono::hours(24 * 365));

std::string text(const std::vector<uint8_t>& bytes) { return {bytes.begin(), bytes.end()}; }
std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

// A long transfer over a slow network is several messages, of up to twice `elements`: each that arrives is
// progress.
std::vector<Tensor> messages(const Tensor& tensor, int64_t elements) {
  const Tensor values = tensor.view(-1);
  return values.chunk(std::max<int64_t>(1, values.numel() / elements));
}

}  // namespace

// What keeps a group together: the store, the pulses in it, and the backend for tensors.
struct ProcessGroup::Connection {
  Connection(const World& world, const Meeting& meeting) : store(meeting.store) {
    auto options = c10d::ProcessGroupGloo::Options::create(milliseconds(world.start_seconds));
    options->devices.push_back(world.interface.empty()
                                   ? c10d::ProcessGroupGloo::createDeviceForHostname(
                                         own_address_towards(meeting.address, world.port))
                                   : c10d::ProcessGroupGloo::createDeviceForInterface(world.interface));
    try {
      backend = c10::make_intrusive<c10d::ProcessGroupGloo>(store, world.rank, world.size, options);
    } catch (const std::exception& error) {
      throw RankLost(fmt::format("rank {}: the processes did not all connect: {}", world.rank,
                                 first_line(error.what())));
    }
    c10d::Backend& base = *backend;
    base.setTimeout(no_timeout);
    for (const Introduction& one : meeting.processes) names.push_back(one.name);
    pulse.emplace(store, world.rank, world.size, world.timeout_seconds);
  }

  ~Connection() {
    pulse.reset();
    // A backend with unfinished operations would wait for processes that are gone.
    if (failed) backend.release();
  }

  c10::intrusive_ptr<c10d::Store> store;
  c10::intrusive_ptr<c10d::ProcessGroupGloo> backend;
  std::vector<std::string> names;  // by rank
  std::optional<Pulse> pulse;
  bool failed = false;
};

struct ProcessGroup::Pending::Work {
  ProcessGroup& group;
  c10::intrusive_ptr<c10d::Work> work;
  bool point_to_point;
  std::future<void> done = {};  // of an operation between two: a timeout of its own would break it

  ~Work() {
    if (done.valid() && done.wait_for(Milliseconds(0)) != std::future_status::ready)
      new std::future(std::move(done));  // its destructor would wait
  }

  // Throws what the operation has thrown.
  bool is_done_within(Milliseconds patience) {
    if (point_to_point) {
      if (!done.valid()) done = std::async(std::launch::async, [one = work] { one->wait(); });
      if (done.wait_for(patience) != std::future_status::ready) return false;
      done.get();
      return true;
    }
    try {
      work->wait(patience);
      return true;
    } catch (const std::exception&) {
      if (!work->isCompleted()) return false;
      work->wait();  // it may have ended well just after the time was over
      return true;
    }
  }
};

int64_t elements_per_message(int ranks) { return int64_t{std::max(1, ranks / 16)} << 20; }

ProcessGroup::ProcessGroup() = default;

ProcessGroup::ProcessGroup(const World& world, const Claims& claims) : world_(world) {
  if (world.is_alone()) return;
  const Meeting meeting = meet(world, claims);
  place(world_, meeting.processes);
  world_.address = meeting.address;
  connection_ = std::make_unique<Connection>(world_, meeting);
}

ProcessGroup::~ProcessGroup() = default;

std::string ProcessGroup::name(int rank) const {
  return connection_ ? fmt::format("rank {} ({})", rank, connection_->names[static_cast<size_t>(rank)])
                     : fmt::format("rank {}", rank);
}

std::string ProcessGroup::names(const std::vector<int>& ranks) const {
  std::string all;
  for (const int rank : ranks) all += (all.empty() ? "" : ", ") + name(rank);
  return all;
}

void ProcessGroup::set_timeout(double seconds) {
  if (connection_) connection_->pulse->set_timeout(seconds);
}

double ProcessGroup::timeout_seconds() const {
  return connection_ ? connection_->pulse->timeout_seconds() : world_.timeout_seconds;
}

void ProcessGroup::note_progress() {
  if (connection_) connection_->pulse->note_progress();
}

ProcessGroup::LongWork::LongWork(ProcessGroup& group) : group_(group) {
  if (group_.connection_) group_.connection_->pulse->add_busy(1);
}
ProcessGroup::LongWork::~LongWork() {
  if (group_.connection_) group_.connection_->pulse->add_busy(-1);
}
ProcessGroup::OutsideWait::OutsideWait(ProcessGroup& group) : group_(group) {
  if (group_.connection_) group_.connection_->pulse->add_paused(1);
}
ProcessGroup::OutsideWait::~OutsideWait() {
  if (group_.connection_) group_.connection_->pulse->add_paused(-1);
}

// The first that notices finds out who is dead or stuck, and tells the others, which may know less: to them,
// those that end because of it are gone as well.
void ProcessGroup::fail(const std::string& reason, const std::vector<int>& stuck) {
  Connection& connection = *connection_;
  connection.failed = true;
  connection.pulse->end();
  auto verdict = std::async(std::launch::async, [this, &connection, stuck] {
    std::string lost = names(Pulse::find_dead(*connection.store, rank(), size()));
    if (lost.empty() && !stuck.empty()) {
      lost =
          fmt::format("{}: no progress for {:g} seconds", names(stuck), connection.pulse->timeout_seconds());
    }
    return text(connection.store->compareSet("verdict", {}, bytes(lost.empty() ? "?" : lost)));
  });
  std::string lost = name(0) + ", which cannot be reached";
  if (verdict.wait_for(store_patience) == std::future_status::ready) {
    try {
      lost = verdict.get();
    } catch (const std::exception&) {  // the store went down with rank 0
    }
  } else {
    new std::future(std::move(verdict));  // its destructor would wait
  }
  if (is_first()) std::this_thread::sleep_for(std::chrono::seconds(1));  // the others still read the verdict
  throw RankLost(lost == "?" ? fmt::format("{}: an operation failed: {}", name(rank()), first_line(reason))
                             : fmt::format("{} lost {}", name(rank()), lost));
}

// Waits in slices, and looks in between whether the others go on.
void ProcessGroup::wait_for(Pending::Work& work) {
  Pulse& pulse = *connection_->pulse;
  const auto started = std::chrono::steady_clock::now();
  const auto seconds = [&] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
  };
  pulse.note_progress();
  pulse.set_waiting(true);
  try {
    while (!work.is_done_within(milliseconds(std::clamp(pulse.timeout_seconds() / 8, 0.05, 5.0)))) {
      if (seconds() < pulse.timeout_seconds()) continue;
      const auto stuck = pulse.stuck();
      if (!stuck.empty() || pulse.all_stand_still())
        fail(fmt::format("timeout after {:g} seconds", pulse.timeout_seconds()), stuck);
    }
  } catch (const RankLost&) {
    throw;
  } catch (const std::exception& error) {
    fail(error.what(), {});
  }
  pulse.set_waiting(false);
  pulse.note_progress();
  waited_seconds_ += seconds();
}

void ProcessGroup::Pending::wait() {
  for (const auto& one : works_) one->group.wait_for(*one);
  works_.clear();
}

// Some operations notice at their start that a connection is gone.
template <class Start>
ProcessGroup::Pending ProcessGroup::begin(const Start& start, bool point_to_point) {
  Pending pending;
  if (is_alone()) return pending;
  connection_->pulse->note_progress();
  try {
    pending.works_.push_back(std::shared_ptr<Pending::Work>(
        new Pending::Work{*this, start(*connection_->backend), point_to_point}));
  } catch (const std::exception& error) {
    fail(error.what(), {});
  }
  return pending;
}

ProcessGroup::Pending ProcessGroup::start_sum(Tensor tensor) {
  Pending all;
  for (const Tensor& message : messages(tensor, elements_per_message(size()))) {
    std::vector<Tensor> tensors = {message};
    const Pending one = begin([&](c10d::Backend& backend) { return backend.allreduce(tensors); });
    all.works_.insert(all.works_.end(), one.works_.begin(), one.works_.end());
  }
  return all;
}

void ProcessGroup::sum(const Tensor& tensor) { start_sum(tensor).wait(); }

std::vector<double> ProcessGroup::sum(const std::vector<double>& values) {
  const Tensor all = torch::tensor(values, torch::kFloat64);
  sum(all);
  const double* data = all.const_data_ptr<double>();
  return {data, data + values.size()};
}

void ProcessGroup::broadcast(const Tensor& tensor, int from) {
  if (is_alone()) return;
  const Tensor values = tensor.cpu();  // itself, if it is there
  c10d::BroadcastOptions options;
  options.rootRank = from;
  for (const Tensor& message : messages(values, elements_per_message(size()))) {
    std::vector<Tensor> tensors = {message};
    begin([&](c10d::Backend& backend) { return backend.broadcast(tensors, options); }).wait();
  }
  if (!tensor.is_cpu()) tensor.copy_(values);
}

Tensor ProcessGroup::gather(const Tensor& own) {
  if (is_alone()) return own.unsqueeze(0);
  const Tensor all = torch::empty({size(), own.numel()}, own.options());
  std::vector<std::vector<Tensor>> outputs(1);
  for (int i = 0; i < size(); ++i) outputs[0].push_back(all[i]);
  std::vector<Tensor> inputs = {own.contiguous()};
  begin([&](c10d::Backend& backend) { return backend.allgather(outputs, inputs); }).wait();
  return all;
}

void ProcessGroup::send(const Tensor& tensor, int to) {
  for (const Tensor& message : messages(tensor, elements_per_message(2))) {
    std::vector<Tensor> tensors = {message};
    begin([&](c10d::Backend& backend) { return backend.send(tensors, to, 0); }, true).wait();
  }
}

void ProcessGroup::receive(const Tensor& tensor, int from) {
  for (const Tensor& message : messages(tensor, elements_per_message(2))) {
    std::vector<Tensor> tensors = {message};
    begin([&](c10d::Backend& backend) { return backend.recv(tensors, from, 0); }, true).wait();
  }
}

}  // namespace calque

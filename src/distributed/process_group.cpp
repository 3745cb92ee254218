#include "calque/distributed/process_group.h"

#include <ATen/ATen.h>
#include <c10/util/Logging.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <future>
#include <thread>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include "calque/base/error.h"
#include "network.h"

namespace calque {

using torch::Tensor;
using Milliseconds = std::chrono::milliseconds;

namespace {

constexpr double patient_seconds = 6 * 3600;  // at the start: rank 0 may train a tokenizer on a large corpus
constexpr Milliseconds beat_interval{500};
constexpr Milliseconds beat_patience{3000};  // a process whose beat stands still for so long is lost
constexpr Milliseconds store_patience{10'000};

Milliseconds milliseconds(double seconds) { return Milliseconds(static_cast<int64_t>(seconds * 1000)); }

std::vector<uint8_t> bytes(const std::string& text) { return {text.begin(), text.end()}; }
std::string text(const std::vector<uint8_t>& bytes) { return {bytes.begin(), bytes.end()}; }
std::string text(const Tensor& bytes) {
  return {reinterpret_cast<const char*>(bytes.const_data_ptr<uint8_t>()), static_cast<size_t>(bytes.numel())};
}

std::string name_of_this_process() {
  char host[256] = "";
  gethostname(host, sizeof host - 1);
  return fmt::format("{}, process {}", host, getpid());
}

c10::intrusive_ptr<c10d::Store> connect_store(const World& world) {
  FLAGS_caffe2_log_level = 2;  // errors alone: c10d warns of hosts without a name
  c10d::TCPStoreOptions options;
  options.port = static_cast<uint16_t>(world.port);
  options.isServer = world.is_first() && !world.has_agent;
  options.waitWorkers = false;
  if (options.isServer) options.masterListenFd = listen_at(world.address, world.port);
  try {
    const auto store = c10::make_intrusive<c10d::TCPStore>(world.address, options);
    // torchrun keeps its store over restarts: each start has its own part of it.
    return c10::make_intrusive<c10d::PrefixStore>(fmt::format("calque/{}", world.restarts), store);
  } catch (const std::exception&) {
    throw RankLost(
        fmt::format("rank {} cannot reach rank 0 at {}:{}", world.rank, world.address, world.port));
  }
}

}  // namespace

// What keeps a group together: the store, in which each process counts, twice per second, to show that it is
// alive, and the backend for tensors.
struct ProcessGroup::Connection {
  explicit Connection(const World& world) : rank(world.rank), store(connect_store(world)) {
    auto options = c10d::ProcessGroupGloo::Options::create(milliseconds(patient_seconds));
    options->devices.push_back(
        world.interface.empty()
            ? c10d::ProcessGroupGloo::createDeviceForHostname(own_address_towards(world.address, world.port))
            : c10d::ProcessGroupGloo::createDeviceForInterface(world.interface));
    try {
      backend = c10::make_intrusive<c10d::ProcessGroupGloo>(store, world.rank, world.size, options);
    } catch (const std::exception& error) {
      const std::string what = error.what();
      throw RankLost(fmt::format("rank {}: the processes did not all connect: {}", world.rank,
                                 what.substr(0, what.find('\n'))));
    }
    count_beat(*store);
    heart = std::thread([this] { keep_beating(); });
  }

  ~Connection() {
    stop.set_value();
    heart.join();
    // A backend with unfinished operations would wait for processes that are gone.
    if (failed) backend.release();
  }

  void count_beat(c10d::Store& shown_in) {
    shown_in.set(fmt::format("beat/{}", rank), bytes(std::to_string(beat++)));
  }

  void keep_beating() {
    try {
      const auto own_store = store->clone();  // the other one may be waiting for an answer
      while (stopped.wait_for(beat_interval) == std::future_status::timeout) count_beat(*own_store);
    } catch (const std::exception&) {  // rank 0 is gone: the next operation says so
    }
  }

  std::vector<std::string> beats(int size) const {
    std::vector<std::string> keys;
    for (int i = 0; i < size; ++i) keys.push_back(fmt::format("beat/{}", i));
    std::vector<std::string> all;
    for (const auto& value : store->multiGet(keys)) all.push_back(text(value));
    return all;
  }

  int rank;
  c10::intrusive_ptr<c10d::Store> store;
  c10::intrusive_ptr<c10d::ProcessGroupGloo> backend;
  std::vector<std::string> names;  // by rank
  int64_t beat = 0;
  std::promise<void> stop;
  std::future<void> stopped = stop.get_future();
  std::thread heart;
  bool failed = false;
};

struct ProcessGroup::Pending::Work {
  ProcessGroup& group;
  c10::intrusive_ptr<c10d::Work> work;
};

ProcessGroup::ProcessGroup() : timeout_seconds_(patient_seconds) {}

ProcessGroup::ProcessGroup(const World& world) : world_(world), timeout_seconds_(patient_seconds) {
  if (world.is_alone()) return;
  connection_ = std::make_unique<Connection>(world);
  connection_->names = gather(name_of_this_process());
}

ProcessGroup::~ProcessGroup() = default;

std::string ProcessGroup::name(int rank) const {
  return connection_ && !connection_->names.empty()
             ? fmt::format("rank {} ({})", rank, connection_->names[static_cast<size_t>(rank)])
             : fmt::format("rank {}", rank);
}

// The first that notices finds out whose beat stands still, and tells the others, which may know less: to
// them, those that end because of it are gone as well.
void ProcessGroup::fail(const std::exception& reason) {
  connection_->failed = true;
  auto verdict = std::async(std::launch::async, [this] {
    const auto before = connection_->beats(size());
    std::this_thread::sleep_for(beat_patience);
    const auto after = connection_->beats(size());
    std::string lost;
    for (int i = 0; i < size(); ++i) {
      if (i != rank() && before[static_cast<size_t>(i)] == after[static_cast<size_t>(i)])
        lost += (lost.empty() ? "" : ", ") + name(i);
    }
    return text(connection_->store->compareSet("verdict", {}, bytes(lost.empty() ? "?" : lost)));
  });
  std::string lost = name(0) + ", which cannot be reached";
  if (verdict.wait_for(beat_patience + store_patience) == std::future_status::ready) {
    try {
      lost = verdict.get();
    } catch (const std::exception&) {  // the store went down with rank 0
    }
  } else {
    new std::future(std::move(verdict));  // its destructor would wait
  }
  std::string what = reason.what();
  what = what.substr(0, what.find('\n'));
  if (is_first()) std::this_thread::sleep_for(beat_interval * 2);  // the others still read the verdict
  throw RankLost(lost == "?" ? fmt::format("{}: an operation failed: {}", name(rank()), what)
                             : fmt::format("{} lost {}", name(rank()), lost));
}

void ProcessGroup::Pending::wait() {
  if (!work_) return;
  ProcessGroup& group = work_->group;
  const auto started = std::chrono::steady_clock::now();
  try {
    work_->work->wait(milliseconds(group.timeout_seconds_));
  } catch (const std::exception& error) {
    group.fail(error);
  }
  group.waited_seconds_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
  work_.reset();
}

// Some operations notice at their start that a connection is gone.
template <class Start>
ProcessGroup::Pending ProcessGroup::begin(const Start& start) {
  Pending pending;
  if (is_alone()) return pending;
  try {
    pending.work_ = std::make_shared<Pending::Work>(Pending::Work{*this, start(*connection_->backend)});
  } catch (const std::exception& error) {
    fail(error);
  }
  return pending;
}

ProcessGroup::Pending ProcessGroup::start_sum(Tensor tensor) {
  std::vector<Tensor> tensors = {std::move(tensor)};
  return begin([&](c10d::Backend& backend) { return backend.allreduce(tensors); });
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
  std::vector<Tensor> tensors = {tensor.cpu()};  // itself, if it is there
  c10d::BroadcastOptions options;
  options.rootRank = from;
  begin([&](c10d::Backend& backend) { return backend.broadcast(tensors, options); }).wait();
  if (!tensor.is_cpu()) tensor.copy_(tensors.front());
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

void ProcessGroup::send(Tensor tensor, int to) {
  std::vector<Tensor> tensors = {std::move(tensor)};
  begin([&](c10d::Backend& backend) { return backend.send(tensors, to, 0); }).wait();
}

void ProcessGroup::receive(Tensor tensor, int from) {
  std::vector<Tensor> tensors = {std::move(tensor)};
  begin([&](c10d::Backend& backend) { return backend.recv(tensors, from, 0); }).wait();
}

namespace {

Tensor as_tensor(const std::string& text) {
  Tensor tensor = torch::empty({static_cast<int64_t>(text.size())}, torch::kUInt8);
  std::copy(text.begin(), text.end(), tensor.mutable_data_ptr<uint8_t>());
  return tensor;
}

}  // namespace

ProcessGroup::Texts ProcessGroup::gather(const std::string& own) {
  if (is_alone()) return {own};
  const Tensor sizes = gather(torch::tensor({static_cast<int64_t>(own.size())}, torch::kInt64)).flatten();
  const int64_t longest = std::max<int64_t>(1, sizes.max().item<int64_t>());
  Tensor padded = torch::zeros({longest}, torch::kUInt8);
  padded.slice(0, 0, static_cast<int64_t>(own.size())).copy_(as_tensor(own));
  const Tensor all = gather(padded);
  std::vector<std::string> texts;
  for (int64_t i = 0; i < size(); ++i) texts.push_back(text(all[i].slice(0, 0, sizes[i].item<int64_t>())));
  return texts;
}

std::string ProcessGroup::broadcast(const std::string& own, int from) {
  if (is_alone()) return own;
  const Tensor length = torch::tensor({static_cast<int64_t>(own.size())}, torch::kInt64);
  broadcast(length, from);
  Tensor content = rank() == from ? as_tensor(own) : torch::empty({length.item<int64_t>()}, torch::kUInt8);
  if (content.numel() > 0) broadcast(content, from);
  return text(content);
}

namespace {

// Each text after its length.
std::string pack(const ProcessGroup::Texts& texts) {
  std::string all;
  for (const std::string& one : texts) {
    const uint64_t size = one.size();
    all.append(reinterpret_cast<const char*>(&size), sizeof size).append(one);
  }
  return all;
}

ProcessGroup::Texts unpack(const std::string& all) {
  ProcessGroup::Texts texts;
  for (size_t at = 0; at < all.size();) {
    uint64_t size = 0;
    std::memcpy(&size, all.data() + at, sizeof size);
    texts.push_back(all.substr(at + sizeof size, size));
    at += sizeof size + size;
  }
  return texts;
}

}  // namespace

std::vector<ProcessGroup::Texts> ProcessGroup::gather(const Texts& own) {
  if (is_alone()) return {own};
  std::vector<Texts> by_rank;
  for (const std::string& one : gather(pack(own))) by_rank.push_back(unpack(one));
  return by_rank;
}

ProcessGroup::Texts ProcessGroup::broadcast(const Texts& texts, int from) {
  return is_alone() ? texts : unpack(broadcast(rank() == from ? pack(texts) : std::string(), from));
}

void ProcessGroup::barrier() { sum(std::vector<double>{0}); }

namespace {

// What a rank says of its work: done, failed through the user's fault (with help), or failed otherwise.
std::string run_and_describe(const std::function<void()>& work, std::exception_ptr& failure) {
  try {
    work();
    return "";
  } catch (const UserError& error) {
    failure = std::current_exception();
    return fmt::format("u{}\n{}", error.what(), error.help());
  } catch (const RankLost&) {
    throw;
  } catch (const std::exception& error) {
    failure = std::current_exception();
    return fmt::format("f{}\n", error.what());
  }
}

void throw_described(const std::string& name, const std::string& description) {
  const size_t end = description.rfind('\n');
  const std::string what = fmt::format("{}: {}", name, description.substr(1, end - 1));
  if (description.front() == 'u') throw UserError(what, description.substr(end + 1));
  throw std::runtime_error(what);
}

}  // namespace

std::string ProcessGroup::from_first(const std::function<std::string()>& make) {
  std::string result;
  everywhere([&] {
    if (is_first()) result = make();
  });
  return broadcast(result);
}

void ProcessGroup::everywhere(const std::function<void()>& work) {
  std::exception_ptr failure;
  const auto all = gather(run_and_describe(work, failure));
  if (failure) std::rethrow_exception(failure);
  for (int i = 0; i < size(); ++i) {
    const std::string& description = all[static_cast<size_t>(i)];
    if (!description.empty()) throw_described(name(i), description);
  }
}

void ProcessGroup::everywhere_in_turn(const std::function<void()>& work) {
  for (const bool first : {true, false}) {
    everywhere([&] {
      if ((world_.local_rank == 0) == first) work();
    });
    if (is_alone()) return;
  }
}

}  // namespace calque

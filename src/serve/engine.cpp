#include "calque/serve/engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <future>
#include <list>

#include "calque/base/error.h"

namespace calque {
namespace {

using Clock = std::chrono::steady_clock;

// Where several models have work, each may begin new sentences for this long before the next takes its turn.
constexpr auto model_quantum = std::chrono::milliseconds(100);
// A task's progress is passed on this often at most: a text so far costs more the longer it is.
constexpr auto progress_interval = std::chrono::milliseconds(25);
// How often a caller that waits looks whether it still has to.
constexpr auto check_interval = std::chrono::milliseconds(100);

}  // namespace

// A task on its way through the search.
struct Engine::Flow {
  int64_t id = 0;
  TranslationTask task;
  size_t next_line = 0;
  std::map<size_t, LineSearch> lines;  // begun
  std::deque<size_t> to_request;       // lines with parts to search for
  size_t lines_left = 0;
  int64_t parts_requested = 0;
  bool in_turns = false;
  Clock::time_point last_progress = {};
  std::atomic<bool> has_ended = false;
  std::mutex calling;  // held while a function of the task runs

  bool has_work() const { return !has_ended && (!to_request.empty() || next_line < task.lines.size()); }
};

struct Engine::Turns {
  struct Client {
    std::string name;
    std::list<std::shared_ptr<Flow>> flows;  // the next one first
  };
  std::list<Client> clients;  // the next one first

  void add(const std::shared_ptr<Flow>& flow) {
    flow->in_turns = true;
    const auto found = std::find_if(clients.begin(), clients.end(),
                                    [&](const Client& one) { return one.name == flow->task.client; });
    (found == clients.end() ? clients.emplace_back(Client{flow->task.client, {}}) : *found)
        .flows.push_back(flow);
  }
};

Engine::Engine(int64_t max_waiting_lines) : max_waiting_lines_(max_waiting_lines) {
  thread_ = std::thread([this] { work(); });
}

Engine::~Engine() { stop(); }

void Engine::stop() {
  {
    const std::lock_guard lock(mutex_);
    if (stopping_) return;
    stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
  const auto left = flows_;
  for (const auto& [id, flow] : left)
    end(flow, std::make_exception_ptr(std::runtime_error("the server has stopped")));
}

int64_t Engine::submit(TranslationTask task) {
  auto flow = std::make_shared<Flow>();
  flow->task = std::move(task);
  flow->lines_left = flow->task.lines.size();
  int64_t id = 0;
  {
    const std::lock_guard lock(mutex_);
    const auto lines = static_cast<int64_t>(flow->task.lines.size());
    if (stopping_) throw std::runtime_error("the server has stopped");
    if (counts_.waiting_lines > 0 && counts_.waiting_lines + lines > max_waiting_lines_)
      throw QueueFull(fmt::format("{} lines are waiting", counts_.waiting_lines));
    id = flow->id = next_task_++;
    flows_[id] = flow;
    counts_.waiting_lines += lines;
    if (lines > 0) turns_[flow->task.translator.get()].add(flow);
  }
  if (flow->task.lines.empty()) end(flow, nullptr);
  changed_.notify_all();
  return id;
}

void Engine::cancel(int64_t task) {
  std::shared_ptr<Flow> flow;
  {
    const std::lock_guard lock(mutex_);
    const auto found = flows_.find(task);
    if (found == flows_.end()) return;
    flow = found->second;
    flow->has_ended = true;
    flows_.erase(found);
    counts_.waiting_lines -= static_cast<int64_t>(flow->lines_left);
  }
  const std::lock_guard wait_for_calls(flow->calling);
}

std::vector<Translation> Engine::translate(TranslationTask task, const std::function<void()>& check) {
  // Shared with the task, which may be ending while it is cancelled here.
  struct Answer {
    std::vector<Translation> lines;
    std::promise<void> ended;
  };
  const auto answer = std::make_shared<Answer>();
  answer->lines.resize(task.lines.size());
  task.line_done = [answer](size_t line, const Translation& translation) {
    answer->lines[line] = translation;
  };
  task.ended = [answer](std::exception_ptr error) {
    error ? answer->ended.set_exception(error) : answer->ended.set_value();
  };
  auto ended = answer->ended.get_future();
  const int64_t id = submit(std::move(task));
  while (ended.wait_for(check_interval) != std::future_status::ready) {
    try {
      check();
    } catch (...) {
      cancel(id);
      throw;
    }
  }
  ended.get();
  return std::move(answer->lines);
}

EngineCounts Engine::counts() const {
  const std::lock_guard lock(mutex_);
  EngineCounts counts = counts_;
  counts.tasks = static_cast<int64_t>(flows_.size());
  return counts;
}

std::optional<double> Engine::sentences_per_second(
    const std::shared_ptr<const Translator>& translator) const {
  const std::lock_guard lock(mutex_);
  const auto found = speeds_.find(translator);
  if (found == speeds_.end() || found->second.seconds <= 0) return std::nullopt;
  return static_cast<double>(found->second.sentences) / found->second.seconds;
}

void Engine::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    std::erase_if(turns_, [](const auto& one) { return one.second.clients.empty(); });
    changed_.wait(lock, [&] { return stopping_ || !turns_.empty(); });
    if (stopping_) return;
    auto chosen = turns_.upper_bound(last_);
    if (chosen == turns_.end()) chosen = turns_.begin();
    last_ = chosen->first;
    // Keeps the model while it is used: a task that ends may be the last that needs it.
    const auto translator = chosen->second.clients.front().flows.front()->task.translator;
    const int64_t before = counts_.sentences;
    const auto begin = Clock::now();
    lock.unlock();
    search(*translator);
    lock.lock();
    const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
    counts_.busy_seconds += seconds;
    std::erase_if(speeds_, [](const auto& one) { return one.first.expired(); });
    Speed& speed = speeds_[translator];
    speed.sentences += counts_.sentences - before;
    speed.seconds += seconds;
  }
}

void Engine::search(const Translator& translator) {
  {
    const std::lock_guard lock(mutex_);
    began_ = Clock::now();
  }
  try {
    translator.search().run([&](bool) { return next(translator); },
                            [&](int64_t id, std::vector<Hypothesis> found) { accept(id, std::move(found)); },
                            [&](int64_t id, std::span<const int32_t> tokens) { return go_on(id, tokens); });
  } catch (...) {
    fail_all(translator, std::current_exception());
  }
}

bool Engine::others_wait(const Translator& translator) const {
  return std::any_of(turns_.begin(), turns_.end(), [&](const auto& one) {
    return one.first != &translator && !one.second.clients.empty();
  });
}

// The next sentence by turns: of the next client, of its next task.
std::optional<SearchRequest> Engine::next(const Translator& translator) {
  std::unique_lock lock(mutex_);
  if (stopping_ || (Clock::now() - began_ > model_quantum && others_wait(translator))) return std::nullopt;
  const auto found = turns_.find(&translator);
  if (found == turns_.end()) return std::nullopt;
  auto& clients = found->second.clients;
  while (!clients.empty()) {
    auto& flows = clients.front().flows;
    const std::shared_ptr<Flow> flow = flows.front();
    flows.pop_front();
    std::optional<SearchRequest> request;
    std::exception_ptr failure;
    if (flow->has_work()) {
      try {
        if (Clock::now() > flow->task.deadline) throw TimeOver("the translation took too long");
        request = take_from(*flow);
      } catch (...) {
        failure = std::current_exception();
      }
    }
    if (request) requests_[request->id] = {flow, flow->to_request.front()};
    if (request && !flow->lines.at(flow->to_request.front()).has_next()) flow->to_request.pop_front();
    flow->in_turns = flow->has_work() && !failure;
    if (flow->in_turns) flows.push_back(flow);
    if (flows.empty()) {
      clients.pop_front();
    } else {
      clients.splice(clients.end(), clients, clients.begin());
    }
    // Lines that needed no search.
    std::vector<size_t> done;
    for (const auto& [line, one] : flow->lines) {
      if (one.is_done()) done.push_back(line);
    }
    if (!done.empty() || failure) {
      lock.unlock();
      for (const size_t line : done) finish_line(flow, line);
      if (failure) end(flow, failure);
      lock.lock();
    }
    if (request) return request;
  }
  return std::nullopt;
}

// The next request of a task; its line is then the first of `to_request`. Nothing where the line needs no
// search.
std::optional<SearchRequest> Engine::take_from(Flow& flow) {
  if (flow.to_request.empty()) {
    const size_t line = flow.next_line++;
    const TranslationTask& task = flow.task;
    const LineSearch& begun =
        flow.lines
            .try_emplace(line, *task.translator, task.lines[line],
                         line < task.prefixes.size() ? task.prefixes[line] : "", task.decode)
            .first->second;
    if (!begun.has_next()) return std::nullopt;
    flow.to_request.push_back(line);
  }
  SearchRequest request = flow.lines.at(flow.to_request.front()).next(next_request_++);
  request.random_stream = flow.parts_requested++;  // the same whatever else is translated
  counts_.source_tokens += static_cast<int64_t>(request.source.size());
  return request;
}

void Engine::accept(int64_t id, std::vector<Hypothesis> hypotheses) {
  std::shared_ptr<Flow> flow;
  size_t line = 0;
  bool done = false;
  {
    const std::lock_guard lock(mutex_);
    std::tie(flow, line) = requests_.at(id);
    requests_.erase(id);
    ++counts_.sentences;
    counts_.target_tokens += static_cast<int64_t>(hypotheses.front().tokens.size());
    if (flow->has_ended) return;
    LineSearch& search = flow->lines.at(line);
    const bool had_next = search.has_next();
    search.accept(id, std::move(hypotheses));
    if (search.has_next() && !had_next) {  // it looped
      flow->to_request.push_back(line);
      if (!flow->in_turns) turns_[flow->task.translator.get()].add(flow);
    }
    done = search.is_done();
  }
  if (done) finish_line(flow, line);
}

// After each pass: passes the text so far on, now and then. False: the task was cancelled, or its time is
// over.
bool Engine::go_on(int64_t id, std::span<const int32_t> tokens) {
  std::shared_ptr<Flow> flow;
  size_t line = 0;
  std::string text;
  bool too_late = false;
  {
    const std::lock_guard lock(mutex_);
    std::tie(flow, line) = requests_.at(id);
    const auto now = Clock::now();
    too_late = now > flow->task.deadline;
    if (flow->has_ended || too_late) {
      requests_.erase(id);
      if (flow->has_ended) return false;
    } else {
      if (!flow->task.progress) return true;
      LineSearch& search = flow->lines.at(line);
      search.set_progress(id, tokens);
      if (now - flow->last_progress < progress_interval) return true;
      flow->last_progress = now;
      text = search.text_so_far();
    }
  }
  if (too_late) {
    end(flow, std::make_exception_ptr(TimeOver("the translation took too long")));
    return false;
  }
  const std::lock_guard calling(flow->calling);
  if (!flow->has_ended) flow->task.progress(line, text);
  return true;
}

void Engine::finish_line(const std::shared_ptr<Flow>& flow, size_t line) {
  Translation translation;
  bool last = false;
  {
    const std::lock_guard lock(mutex_);
    const auto found = flow->lines.find(line);
    if (flow->has_ended || found == flow->lines.end()) return;
    translation = found->second.finish();
    flow->lines.erase(found);
    --counts_.waiting_lines;
    last = --flow->lines_left == 0;
  }
  {
    const std::lock_guard calling(flow->calling);
    if (!flow->has_ended) flow->task.line_done(line, translation);
  }
  if (last) end(flow, nullptr);
}

void Engine::end(const std::shared_ptr<Flow>& flow, std::exception_ptr error) {
  {
    const std::lock_guard lock(mutex_);
    if (flow->has_ended) return;
    flow->has_ended = true;
    flows_.erase(flow->id);
    counts_.waiting_lines -= static_cast<int64_t>(flow->lines_left);
    flow->lines_left = 0;
  }
  const std::lock_guard calling(flow->calling);
  flow->task.ended(error);
}

// The search failed (out of memory, say): every task that was in it ends with the error.
void Engine::fail_all(const Translator& translator, std::exception_ptr error) {
  std::vector<std::shared_ptr<Flow>> all;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [id, flow] : flows_) {
      if (flow->task.translator.get() == &translator) all.push_back(flow);
    }
    turns_.erase(&translator);
    requests_.clear();
  }
  for (const auto& flow : all) end(flow, error);
}

}  // namespace calque

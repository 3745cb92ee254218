// Engine: translates for many clients at once. One thread searches; the sentences of all tasks share its
// continuous batches. Clients take turns, and the tasks of a client take turns, so that a single sentence is
// not stuck behind a long document.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "calque/decode/translator.h"

namespace calque {

// The queue is full: try again later.
struct QueueFull : std::runtime_error {
  using std::runtime_error::runtime_error;
};
// The task's time is over.
struct TimeOver : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Lines to translate. The functions are called from the engine's thread, and must be quick.
struct TranslationTask {
  std::shared_ptr<const Translator> translator;
  std::string client;  // whose turn it takes
  std::vector<std::string> lines;
  std::shared_ptr<const DecodeConfig> decode;
  std::vector<std::string> prefixes = {};  // that the lines' translations must begin with; missing: none
  std::chrono::steady_clock::time_point deadline = std::chrono::steady_clock::time_point::max();
  std::function<void(size_t line, const Translation& translation)> line_done;
  std::function<void(size_t line, const std::string& text)> progress = {};  // the text so far
  std::function<void(std::exception_ptr error)> ended;  // after the last line, or a failure
};

struct EngineCounts {
  int64_t waiting_lines = 0;  // of all tasks that have not ended
  int64_t tasks = 0;
  int64_t sentences = 0;  // translated so far
  int64_t source_tokens = 0, target_tokens = 0;
  double busy_seconds = 0;  // spent searching
};

class Engine {
 public:
  explicit Engine(int64_t max_waiting_lines);
  ~Engine();

  // Tasks that are left end with an error, and new ones are refused. No function of a task is called any more
  // once this returns.
  void stop();

  // Throws QueueFull. The id is for cancel().
  int64_t submit(TranslationTask task);
  // No line of the task is delivered any more once this returns.
  void cancel(int64_t task);
  // Waits until a task has ended; for callers that have a thread to spare. `check` is called now and then;
  // what it throws cancels the task.
  std::vector<Translation> translate(
      TranslationTask task, const std::function<void()>& check = [] {});

  EngineCounts counts() const;
  // Of the time spent searching with this model; nothing where it has not translated yet.
  std::optional<double> sentences_per_second(const std::shared_ptr<const Translator>& translator) const;

 private:
  struct Flow;
  struct Turns;  // of the clients of one model

  void work();
  void search(const Translator& translator);
  std::optional<SearchRequest> next(const Translator& translator);
  std::optional<SearchRequest> take_from(Flow& flow);
  void accept(int64_t request, std::vector<Hypothesis> hypotheses);
  bool go_on(int64_t request, std::span<const int32_t> tokens);
  void finish_line(const std::shared_ptr<Flow>& flow, size_t line);
  void end(const std::shared_ptr<Flow>& flow, std::exception_ptr error);
  void fail_all(const Translator& translator, std::exception_ptr error);
  bool others_wait(const Translator& translator) const;

  const int64_t max_waiting_lines_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::map<const Translator*, Turns> turns_;
  std::map<int64_t, std::shared_ptr<Flow>> flows_;                        // by task
  std::map<int64_t, std::pair<std::shared_ptr<Flow>, size_t>> requests_;  // in the search: task and line
  const Translator* last_ = nullptr;
  std::chrono::steady_clock::time_point began_;
  int64_t next_task_ = 1, next_request_ = 1;
  EngineCounts counts_;
  struct Speed {
    int64_t sentences = 0;
    double seconds = 0;
  };
  std::map<std::weak_ptr<const Translator>, Speed, std::owner_less<>> speeds_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace calque

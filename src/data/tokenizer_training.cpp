#include "calque/data/tokenizer_training.h"

#include <chrono>
#include <condition_variable>
#include <thread>

#include "calque/base/error.h"
#include "calque/base/log.h"
#include "calque/base/progress.h"
#include "calque/base/units.h"
#include "calque/data/sentence_reader.h"

namespace calque {
namespace {

int64_t count_sentences(const Corpus& corpus) {
  SentenceReader all(corpus);
  std::string line;
  int64_t count = 0;
  while (all.next(line)) ++count;
  return count;
}

// SentencePiece does not report progress; the elapsed time shows that it is running.
class Ticker {
 public:
  explicit Ticker(const std::string& label)
      : progress_(label, 0, ""),  // mutate: display only
        thread_([this] { run(); }) {}
  ~Ticker() {
    {
      const std::lock_guard lock(mutex_);
      done_ = true;
    }
    changed_.notify_all();  // mutate: without it the end would come up to a second later
    thread_.join();
  }

 private:
  void run() {
    std::unique_lock lock(mutex_);
    constexpr std::chrono::seconds tick(1);  // mutate: display only
    while (!changed_.wait_for(lock, tick, [this] { return done_; }))
      progress_.advance(1);  // mutate: display only
  }
  Progress progress_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool done_ = false;
  std::thread thread_;
};

}  // namespace

Tokenizer train_tokenizer(const TokenizerConfig& config, const Corpus& corpus, int threads) {
  const int64_t sentences = count_sentences(corpus);
  if (sentences == 0)
    throw UserError("data.train has no sentences to train a tokenizer on",
                    "check data.train with `calque data check`");
  const int64_t stride = (sentences + config.train_lines - 1) / config.train_lines;
  log::info("training a {} tokenizer with a vocabulary of {} on {} sentences", name_of(config.kind),
            format_count(config.vocabulary), format_count(sentences / stride));
  SentenceReader source(corpus, stride);
  const Ticker ticker("training the tokenizer");
  return Tokenizer::train(
      config, [&](std::string& line) { return source.next(line); }, threads);
}

}  // namespace calque

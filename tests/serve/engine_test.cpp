#include "calque/serve/engine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>

#include "calque/base/error.h"
#include "served_model.h"

namespace calque {
namespace {

using namespace std::chrono_literals;
using testing::Each;

TranslationTask task_of(const std::shared_ptr<Translator>& translator, std::vector<std::string> lines,
                        const std::string& client = "a") {
  TranslationTask task;
  task.translator = translator;
  task.client = client;
  task.lines = std::move(lines);
  task.decode = std::make_shared<DecodeConfig>(translator->config());
  return task;
}

std::vector<std::string> some_lines(size_t count) {
  std::vector<std::string> lines;
  for (size_t i = 0; i < count; ++i) lines.push_back("Le chat " + std::to_string(i) + " dort.");
  return lines;
}

}  // namespace

TEST(Engine, TranslatesForManyAtOnceAsForOneAlone) {
  const auto translator = tiny_translator(), other = tiny_translator(2);
  const auto lines = some_lines(12);
  const auto expected = translator->translate_all(lines), expected_of_other = other->translate_all(lines);
  Engine engine(1000);
  std::vector<std::future<std::vector<Translation>>> answers;
  for (int i = 0; i < 6; ++i) {
    answers.push_back(std::async(std::launch::async, [&, i] {
      return engine.translate(task_of(i % 2 == 0 ? translator : other, lines, std::to_string(i)));
    }));
  }
  for (size_t i = 0; i < answers.size(); ++i) {
    const auto found = answers[i].get();
    const auto& wanted = i % 2 == 0 ? expected : expected_of_other;
    for (size_t line = 0; line < lines.size(); ++line) {
      EXPECT_EQ(found[line].text(), wanted[line].text());
      EXPECT_EQ(found[line].best.front().score, wanted[line].best.front().score);
    }
  }
  const EngineCounts counts = engine.counts();
  EXPECT_EQ(counts.sentences, 72);
  EXPECT_EQ(counts.waiting_lines, 0);
  EXPECT_EQ(counts.tasks, 0);
  EXPECT_GT(counts.source_tokens, 72);
}

TEST(Engine, ASentenceIsNotStuckBehindALongDocument) {
  const auto translator = tiny_translator();
  Engine engine(100'000);
  std::promise<void> begun, ended;
  std::atomic<size_t> lines_done = 0;
  auto document = task_of(translator, some_lines(4000), "document");
  document.line_done = [&](size_t, const Translation&) {
    if (lines_done++ == 0) begun.set_value();
  };
  document.ended = [&](std::exception_ptr) { ended.set_value(); };
  engine.submit(std::move(document));
  begun.get_future().wait();
  engine.translate(task_of(translator, {"Où est la gare ?"}, "person"));
  EXPECT_LT(lines_done.load(), 3000U);
  ended.get_future().wait();
  EXPECT_EQ(lines_done, 4000U);
}

TEST(Engine, AFullQueueIsRefusedAndACancelledTaskMakesRoom) {
  const auto translator = tiny_translator();
  Engine engine(500);
  std::atomic<size_t> lines_done = 0;
  auto task = task_of(translator, some_lines(500));
  task.line_done = [&](size_t, const Translation&) { ++lines_done; };
  task.ended = [](std::exception_ptr) { ADD_FAILURE() << "a cancelled task does not end"; };
  const int64_t id = engine.submit(std::move(task));
  EXPECT_THROW(engine.submit(task_of(translator, some_lines(500))), QueueFull);
  engine.cancel(id);
  const size_t before = lines_done;
  EXPECT_EQ(engine.translate(task_of(translator, some_lines(3))).size(), 3U);
  EXPECT_EQ(lines_done, before);  // nothing is delivered after cancel()
  engine.cancel(id);              // again, or unknown: nothing happens
  engine.cancel(12345);
}

TEST(Engine, ATaskEndsWhenItsTimeIsOver) {
  const auto translator = tiny_translator();
  Engine engine(100'000);
  auto task = task_of(translator, some_lines(20'000));
  task.deadline = std::chrono::steady_clock::now() + 20ms;
  EXPECT_THROW(engine.translate(std::move(task)), TimeOver);
}

TEST(Engine, ATaskIsCancelledByWhatTheCheckThrows) {
  const auto translator = tiny_translator();
  Engine engine(100'000);
  const auto check = [] { throw std::runtime_error("left"); };
  EXPECT_THROW(engine.translate(task_of(translator, some_lines(50'000)), check), std::runtime_error);
  EXPECT_EQ(engine.counts().waiting_lines, 0);
}

TEST(Engine, ABadTaskFailsAloneAndTheOthersGoOn) {
  const auto translator = tiny_translator();
  Engine engine(10'000);
  auto good = std::async(std::launch::async,
                         [&] { return engine.translate(task_of(translator, some_lines(300), "good")); });
  auto bad = task_of(translator, {"Bonjour."}, "bad");
  std::string prefix;
  for (int i = 0; i < 200; ++i) prefix += "word ";
  bad.prefixes = {prefix};  // longer than the model's context
  EXPECT_THROW(engine.translate(std::move(bad)), UserError);
  EXPECT_EQ(good.get().size(), 300U);
}

TEST(Engine, ProgressGrowsIntoTheTranslation) {
  const auto translator = tiny_translator();
  Engine engine(100);
  std::vector<std::string> seen;
  auto task = task_of(translator, {"Le chat dort sur la chaise."});
  task.progress = [&](size_t line, const std::string& text) {
    EXPECT_EQ(line, 0U);
    seen.push_back(text);
  };
  EXPECT_FALSE(engine.translate(std::move(task)).front().text().empty());
  EXPECT_FALSE(seen.empty());
}

TEST(Engine, TasksThatAreLeftEndWithAnError) {
  const auto translator = tiny_translator();
  std::promise<bool> failed;
  {
    Engine engine(100'000);
    auto task = task_of(translator, some_lines(50'000));
    task.line_done = [](size_t, const Translation&) {};
    task.ended = [&](std::exception_ptr error) { failed.set_value(error != nullptr); };
    engine.submit(std::move(task));
  }
  EXPECT_TRUE(failed.get_future().get());
}

}  // namespace calque

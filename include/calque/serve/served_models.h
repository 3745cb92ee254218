// ServedModels: the models of a server. They are loaded in the background, one at a time, and answer once
// they have translated a sentence.
#pragma once

#include <condition_variable>
#include <deque>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "calque/base/error.h"
#include "calque/runs/model_source.h"

namespace calque {

enum class ModelState { loading, ready, failed };
template <>
struct EnumNames<ModelState> {
  static constexpr std::string_view names[] = {"loading", "ready", "failed"};
};

// One model in one precision.
struct ServedModel {
  std::string name;
  WeightPrecision precision = WeightPrecision::int8;
  ModelState state = ModelState::loading;
  std::string error = {};                       // why it failed
  std::shared_ptr<Translator> translator = {};  // once it is ready
  std::optional<double> bleu = {};              // of the run's test set, or its newest evaluation
  std::string bleu_on = {};                     // the test set, and its size
};

struct NameTaken : UserError {
  using UserError::UserError;
};

class ServedModels {
 public:
  // The first precision is loaded at once, the others when they are asked for. No other is ever loaded: each
  // is a copy of the weights in memory.
  ServedModels(std::filesystem::path runs, std::vector<WeightPrecision> precisions,
               const torch::Device& device = torch::kCPU);
  ~ServedModels();

  // Finds a run or checkpoint and begins to load it. What does not exist is a UserError, what has the name of
  // another a NameTaken.
  void add(const std::string& run_or_checkpoint);
  bool remove(const std::string& name);  // false: there is none of this name

  // The first that was added where the name is empty. A precision of precisions() that is not loaded yet is
  // loaded in the background: the model returned is then `loading`. Nothing: no such model.
  std::optional<ServedModel> find(const std::string& name, std::optional<WeightPrecision> precision = {});
  std::vector<ServedModel> list() const;  // in the order in which they were added, in the server's precision
  std::vector<ServedModel> list_with_scores() const;  // reads the runs' newest evaluations
  std::string default_name() const;
  std::vector<std::string> precisions() const;
  ModelState default_state() const;  // of the model that answers where none is named; failed: there is none
  void wait_until_loaded();          // all of them, well or badly

 private:
  struct Entry {
    int64_t number = 0;  // another one for a model that was removed and added again
    ModelSource source;
    std::map<WeightPrecision, ServedModel> loaded;
  };

  void load(const std::string& name, WeightPrecision precision);
  void work();

  const std::filesystem::path runs_;
  const std::vector<WeightPrecision> precisions_;
  const torch::Device device_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::string> order_;
  std::map<std::string, Entry> entries_;
  int64_t next_number_ = 0;
  std::deque<std::pair<std::string, WeightPrecision>> to_load_;
  bool stopping_ = false;
  SharedModels shared_;  // used by the thread alone
  std::thread thread_;
};

// The weights of a loaded model in memory.
int64_t weight_bytes(const Decoder& decoder);

}  // namespace calque

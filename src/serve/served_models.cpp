#include "calque/serve/served_models.h"

#include <ATen/Parallel.h>
#include <omp.h>

#include <algorithm>

#include "calque/base/error.h"
#include "calque/base/log.h"
#include "calque/base/units.h"
#include "calque/model/decoder.h"
#include "calque/runs/run_list.h"

namespace calque {
namespace fs = std::filesystem;

int64_t weight_bytes(const Decoder& decoder) {
  const int64_t count = decoder.parameter_count();
  const auto precision = decoder.weight_precision();
  return precision == WeightPrecision::int8       ? count
         : precision == WeightPrecision::bfloat16 ? 2 * count
                                                  : 4 * count;
}

ServedModels::ServedModels(fs::path runs, std::vector<WeightPrecision> precisions,
                           const torch::Device& device)
    : runs_(std::move(runs)), precisions_(std::move(precisions)), device_(device) {
  thread_ = std::thread([this] { work(); });
}

ServedModels::~ServedModels() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void ServedModels::add(const std::string& run_or_checkpoint) {
  ModelSource source = find_model(runs_, run_or_checkpoint);
  const std::lock_guard lock(mutex_);
  const std::string name = source.name;
  if (entries_.contains(name))
    throw NameTaken(fmt::format("{}: a model of this name is served already", name));
  ServedModel model;
  model.name = name;
  model.precision = precisions_.front();
  order_.push_back(name);
  Entry& entry = entries_[name];
  entry.number = next_number_++;
  entry.source = std::move(source);
  entry.loaded[precisions_.front()] = std::move(model);
  to_load_.emplace_back(name, precisions_.front());
  changed_.notify_all();
}

bool ServedModels::remove(const std::string& name) {
  const std::lock_guard lock(mutex_);
  std::erase(order_, name);
  return entries_.erase(name) > 0;
}

std::optional<ServedModel> ServedModels::find(const std::string& name,
                                              std::optional<WeightPrecision> precision) {
  const std::lock_guard lock(mutex_);
  if (name.empty() && order_.empty()) return std::nullopt;
  const auto found = entries_.find(name.empty() ? order_.front() : name);
  if (found == entries_.end()) return std::nullopt;
  Entry& entry = found->second;
  const WeightPrecision wanted = precision.value_or(precisions_.front());
  const auto loaded = entry.loaded.find(wanted);
  if (loaded != entry.loaded.end()) return loaded->second;
  if (std::find(precisions_.begin(), precisions_.end(), wanted) == precisions_.end())
    throw std::logic_error(fmt::format("{} is not served", name_of(wanted)));
  ServedModel model = entry.loaded.at(precisions_.front());
  model.precision = wanted;
  model.state = ModelState::loading;
  model.translator.reset();
  entry.loaded[wanted] = model;
  to_load_.emplace_back(found->first, wanted);
  changed_.notify_all();
  return model;
}

std::vector<ServedModel> ServedModels::list() const {
  const std::lock_guard lock(mutex_);
  std::vector<ServedModel> all;
  for (const std::string& name : order_) all.push_back(entries_.at(name).loaded.at(precisions_.front()));
  return all;
}

std::vector<ServedModel> ServedModels::list_with_scores() const {
  std::vector<ServedModel> all = list();
  for (ServedModel& one : all) {
    std::unique_lock lock(mutex_);
    const auto found = entries_.find(one.name);
    if (found == entries_.end()) continue;  // removed meanwhile
    const ModelSource source = found->second.source;
    lock.unlock();
    const auto evaluation = source.run ? shown_evaluation(*source.run) : std::nullopt;
    if (!evaluation) continue;
    one.bleu = evaluation->bleu;
    one.bleu_on = fmt::format("{} ({} sentences)", evaluation->test_set, format_count(evaluation->sentences));
  }
  return all;
}

std::vector<std::string> ServedModels::precisions() const {
  std::vector<std::string> names;
  for (const WeightPrecision one : precisions_) names.emplace_back(name_of(one));
  return names;
}

std::string ServedModels::default_name() const {
  const std::lock_guard lock(mutex_);
  return order_.empty() ? "" : order_.front();
}

ModelState ServedModels::default_state() const {
  const auto all = list();
  return all.empty() ? ModelState::failed : all.front().state;
}

void ServedModels::wait_until_loaded() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] {
    return std::all_of(entries_.begin(), entries_.end(), [](const auto& entry) {
      return std::all_of(entry.second.loaded.begin(), entry.second.loaded.end(),
                         [](const auto& one) { return one.second.state != ModelState::loading; });
    });
  });
}

void ServedModels::load(const std::string& name, WeightPrecision precision) {
  std::unique_lock lock(mutex_);
  const auto found = entries_.find(name);
  if (found == entries_.end()) return;  // removed meanwhile
  const ModelSource source = found->second.source;
  const int64_t number = found->second.number;
  lock.unlock();
  std::shared_ptr<Translator> translator;
  std::string error;
  try {
    translator = shared_.open(source, precision, device_);
    translator->translate("Bonjour.");
    log::info("{}: ready ({} parameters, {})", name, format_count(translator->decoder().parameter_count()),
              name_of(precision));
  } catch (const std::exception& failure) {
    error = failure.what();
    error = error.substr(0, error.find("\nException raised from"));
    log::error("{}: {}", name, error);
  }
  lock.lock();
  const auto still = entries_.find(name);
  if (still == entries_.end() || still->second.number != number) return;
  ServedModel& model = still->second.loaded[precision];
  model.state = translator ? ModelState::ready : ModelState::failed;
  model.error = error;
  model.translator = translator;
  changed_.notify_all();
}

void ServedModels::work() {
  at::get_num_threads();   // whose first call would set the next line back
  omp_set_num_threads(1);  // of this thread: translating goes on meanwhile
  for (;;) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return stopping_ || !to_load_.empty(); });
    if (stopping_) return;
    const auto [name, precision] = to_load_.front();
    to_load_.pop_front();
    lock.unlock();
    load(name, precision);
  }
}

}  // namespace calque

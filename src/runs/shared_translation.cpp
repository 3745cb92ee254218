#include "calque/runs/shared_translation.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>

#include "calque/base/config.h"
#include "calque/base/error.h"
#include "calque/base/hash.h"
#include "calque/checkpoint/checkpoint.h"
#include "calque/checkpoint/hf_config.h"
#include "calque/kernels/threads.h"

namespace calque {
namespace fs = std::filesystem;

namespace {

constexpr size_t lines_per_rank = 256;  // in a block: enough to keep a rank's batches full

// What rank 0 sends to the others begins with one of these: lines follow, there are no more, or it has failed
// (through the user's fault, or otherwise), for the reason that follows.
constexpr char lines_mark = '+', end_mark = '.', user_error_mark = 'u', failure_mark = 'f';

}  // namespace

SharedTranslation::SharedTranslation(const Translator& translator, ProcessGroup& group, Render render,
                                     std::string prefix)
    : translator_(translator),
      group_(group),
      render_(std::move(render)),
      prefix_(std::move(prefix)),
      exceptions_(std::uncaught_exceptions()) {}

SharedTranslation::~SharedTranslation() {
  end(std::uncaught_exceptions() > exceptions_ ? fmt::format("{}it failed", failure_mark)
                                               : std::string(1, end_mark));
}

void SharedTranslation::end(const std::string& reason) {
  if (group_.is_alone() || !group_.is_first() || std::exchange(ended_, true)) return;
  try {
    group_.broadcast(ProcessGroup::Texts{reason});
  } catch (const std::exception&) {  // a rank is lost: the operation before has said so
  }
}

TranslatedLine SharedTranslation::summarise(int64_t line, const Translation& translation) const {
  const TranslatedText& best = translation.best.front();
  TranslatedLine result{render_(line, translation), best.complete,   translation.looped,
                        translation.copied,         translation.cut, 0};
  for (const Hypothesis& part : best.parts)
    result.tokens += static_cast<int64_t>(part.token_log_probabilities.size());
  return result;
}

// Every Nth line, so that all ranks have as many long ones.
std::vector<TranslatedLine> SharedTranslation::translate_share(const std::vector<std::string>& lines,
                                                               int64_t first_line) const {
  const auto ranks = static_cast<size_t>(group_.size());
  auto at = static_cast<size_t>(group_.rank());
  std::vector<TranslatedLine> translated;
  translator_.translate_lines(
      [&](bool) -> std::optional<std::string> {
        if (at >= lines.size()) return std::nullopt;
        const size_t line = at;
        at += ranks;
        return lines[line];
      },
      [&](int64_t index, const Translation& translation) {
        translated.push_back(summarise(first_line + index * group_.size() + group_.rank(), translation));
        group_.note_progress();
      },
      prefix_, {first_line + group_.rank(), group_.size()});
  return translated;
}

namespace {

ProcessGroup::Texts pack(const std::vector<TranslatedLine>& lines) {
  ProcessGroup::Texts texts;
  for (const TranslatedLine& one : lines) {
    texts.push_back(one.text);
    texts.push_back(
        fmt::format("{:d}{:d}{:d}{:d}{}", one.complete, one.looped, one.copied, one.cut, one.tokens));
  }
  return texts;
}

TranslatedLine unpack(const ProcessGroup::Texts& texts, size_t line) {
  const std::string& facts = texts.at(2 * line + 1);
  return {texts.at(2 * line), facts[0] == '1', facts[1] == '1',
          facts[2] == '1',    facts[3] == '1', std::stoll(facts.substr(4))};
}

}  // namespace

void SharedTranslation::run(const NextLine& next, const Done& done) {
  if (group_.is_alone()) {
    translator_.translate_lines(
        next, [&](int64_t line, const Translation& one) { done(line, summarise(line, one)); }, prefix_);
    return;
  }
  try {
    run_blocks(next, done);
  } catch (const UserError& error) {
    end(user_error_mark + std::string(error.what()));
    throw;
  } catch (const std::exception& error) {
    end(failure_mark + std::string(error.what()));
    throw;
  }
}

void SharedTranslation::run_blocks(const NextLine& next, const Done& done) {
  const size_t most = lines_per_rank * static_cast<size_t>(group_.size());
  for (int64_t first_line = 0;;) {
    ProcessGroup::Texts lines;
    {
      const ProcessGroup::OutsideWait reading(group_);
      while (lines.size() < most) {
        auto line = next(true);
        if (!line) break;
        lines.push_back(std::move(*line));
      }
    }
    if (lines.empty()) return;
    ProcessGroup::Texts message = lines;
    message.insert(message.begin(), std::string(1, lines_mark));
    ended_ = true;  // an error of one rank from here on is thrown on all
    group_.broadcast(message);
    const auto by_rank = group_.gather_from_all([&] { return pack(translate_share(lines, first_line)); });
    ended_ = false;
    for (size_t i = 0; i < lines.size(); ++i)
      done(first_line++, unpack(by_rank[i % by_rank.size()], i / by_rank.size()));
  }
}

void SharedTranslation::work() {
  for (int64_t first_line = 0;;) {
    auto lines = group_.broadcast(ProcessGroup::Texts());
    const std::string mark = lines.front();
    if (mark.front() == end_mark) return;
    const std::string failure = fmt::format("{}: {}", group_.name(0), mark.substr(1));
    if (mark.front() == user_error_mark) throw UserError(failure);
    if (mark.front() == failure_mark) throw std::runtime_error(failure);
    lines.erase(lines.begin());
    group_.gather_from_all([&] { return pack(translate_share(lines, first_line)); });
    first_line += static_cast<int64_t>(lines.size());
  }
}

namespace {

// Of all that a checkpoint's translations come from, wherever it lies.
std::string weights_hash(const ModelSource& source) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(source.checkpoint)) {
    const fs::path name = entry.path().filename();
    if (name.extension() == ".safetensors" && name != "state.safetensors") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  Hasher hasher;
  for (const fs::path& file : files) hasher.add_value(hash_file(file));
  hasher.add(Checkpoint(source.checkpoint).adapter_base_hash());
  return hex(hasher.value());
}

// Not the number of threads: translations have the same bits for any.
Claims describe(const std::string& weights, const Translator& translator) {
  const Decoder& decoder = translator.decoder();
  Claims claims = {{"the model's weights, as a hash", weights},
                   {"the model's configuration", hf_config(decoder.config()).dump()},
                   {"tokenizer, as a hash", hex(translator.tokenizer().hash())},
                   {"--precision", std::string(name_of(decoder.weight_precision()))},
                   {"--device", decoder.device().str()},
                   {"bfloat16 instructions", has_bfloat16_instructions() ? "yes" : "no"}};
  DecodeConfig decode = translator.config();
  if (!decode.shots.empty()) claims.emplace_back("decode.shots, as a hash", hex(hash_file(decode.shots)));
  decode.shots.clear();
  for (const Field& field : fields(decode))
    claims.emplace_back("decode." + field.name, YAML::Dump(field.write({})));
  return claims;
}

}  // namespace

std::unique_ptr<Translator> open_on_all(ProcessGroup& group, const ModelSource& source,
                                        const std::function<std::unique_ptr<Translator>()>& open) {
  if (group.is_alone()) return open();
  std::unique_ptr<Translator> translator;
  std::string weights;
  group.everywhere([&] {
    weights = weights_hash(source);
    translator = open();
    if (weights_hash(source) == weights) return;
    throw UserError(fmt::format("{}: the checkpoint changed while it was read", source.checkpoint.string()),
                    "start again; a copy of the checkpoint stays as it is");
  });
  group.check_alike(describe(weights, *translator));
  return translator;
}

}  // namespace calque

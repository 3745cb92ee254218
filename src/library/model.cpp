#include "calque/calque.h"

#include <algorithm>
#include <numeric>

#include "calque/base/error.h"
#include "calque/base/unicode.h"
#include "calque/decode/scorer.h"
#include "calque/kernels/device.h"
#include "calque/kernels/threads.h"
#include "calque/metrics/text_scores.h"
#include "calque/runs/model_source.h"

namespace calque {

struct Model::Parts {
  std::unique_ptr<Translator> translator;
  TranslateOptions defaults;
};

namespace {

// Errors of the layers below as the library's own.
template <class Call>
auto translated_errors(const Call& call) {
  try {
    return call();
  } catch (const UserError& error) {
    throw Error(error.what(), error.help());
  }
}

// Both structs have the same fields, but for `shots` here and `prefix` there.
template <class From, class To>
void copy_options(const From& from, To& to) {
  to.beam = from.beam;
  to.nbest = from.nbest;
  to.length_penalty = from.length_penalty;
  to.early_stopping = from.early_stopping;
  to.max_length_ratio = from.max_length_ratio;
  to.max_length_extra = from.max_length_extra;
  to.no_repeat_ngram = from.no_repeat_ngram;
  to.sample = from.sample;
  to.temperature = from.temperature;
  to.top_k = from.top_k;
  to.top_p = from.top_p;
  to.seed = from.seed;
  to.split_tokens = from.split_tokens;
  to.split_sentences = from.split_sentences;
  to.batch = from.batch;
}

// Reads every field back through the listing, which checks its range.
void apply(const TranslateOptions& options, DecodeConfig& config) {
  copy_options(options, config);
  for (const Field& field : fields(config)) {
    try {
      field.read(field.write({}), {});
    } catch (const BadValue& error) {
      throw UserError(field.name + ": " + error.what());
    }
  }
  check_decode(config);
}

WeightPrecision precision_named(const std::string& name) {
  const auto& names = EnumNames<WeightPrecision>::names;
  const auto found = std::find(std::begin(names), std::end(names), name);
  if (found == std::end(names))
    throw UserError("precision: \"" + name + "\" is not one of: float32, bfloat16, int8");
  return static_cast<WeightPrecision>(found - std::begin(names));
}

}  // namespace

Model::Model(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
Model::~Model() = default;
Model::Model(Model&&) noexcept = default;
Model& Model::operator=(Model&&) noexcept = default;

Model Model::load(const std::string& run_or_checkpoint, const LoadOptions& options) {
  return translated_errors([&] {
    if (options.threads > 0) set_num_threads(options.threads);
    if (options.keep_freed_memory) keep_freed_memory();
    auto parts = std::make_unique<Parts>();
    parts->translator =
        open_translator(find_model(options.runs, run_or_checkpoint), precision_named(options.precision),
                        find_device(options.device, "device"));
    copy_options(parts->translator->config(), parts->defaults);
    return Model(std::move(parts));
  });
}

const TranslateOptions& Model::default_options() const { return parts_->defaults; }
int64_t Model::parameter_count() const { return calque::parameter_count(*parts_->translator); }

std::string Model::translate(const std::string& line) const { return translate(line, parts_->defaults); }

std::string Model::translate(const std::string& line, const TranslateOptions& options) const {
  return candidates(line, options).front().text;
}

std::vector<Candidate> Model::candidates(const std::string& line, const TranslateOptions& options) const {
  return translated_errors([&] {
    apply(options, parts_->translator->config());
    std::vector<Candidate> all;
    for (const TranslatedText& one : parts_->translator->translate(line, options.prefix).best)
      all.push_back({one.text, one.score, one.log_probability, one.complete});
    return all;
  });
}

std::vector<std::string> Model::translate(const std::vector<std::string>& lines) const {
  return translate(lines, parts_->defaults);
}

std::vector<std::string> Model::translate(const std::vector<std::string>& lines,
                                          const TranslateOptions& options) const {
  std::vector<std::string> all(lines.size());
  size_t at = 0;
  translate([&] { return at < lines.size() ? std::optional(lines[at++]) : std::nullopt; },
            [&](int64_t line, const std::string& text) { all[static_cast<size_t>(line)] = text; }, options);
  return all;
}

void Model::translate(const std::function<std::optional<std::string>()>& next,
                      const std::function<void(int64_t line, const std::string& translation)>& done,
                      const TranslateOptions& options) const {
  translated_errors([&] {
    apply(options, parts_->translator->config());
    parts_->translator->translate_lines(
        [&](bool) { return next(); },
        [&](int64_t line, const Translation& translation) { done(line, translation.text()); },
        options.prefix);
  });
}

double Model::score(const std::string& source, const std::string& target) const {
  return translated_errors([&] {
    const Translator& translator = *parts_->translator;
    const Tokenizer& tokenizer = translator.tokenizer();
    const auto scores =
        score_pairs(translator.decoder(), translator.format(),
                    {{tokenizer.encode(clean_text(source)), tokenizer.encode(clean_text(target))}})
            .front();
    if (scores.empty()) throw UserError("the pair is longer than the model's context");
    return std::accumulate(scores.begin(), scores.end(), 0.0);
  });
}

Scores Model::evaluate(const std::vector<std::string>& sources,
                       const std::vector<std::string>& references) const {
  return evaluate(sources, references, parts_->defaults);
}

Scores Model::evaluate(const std::vector<std::string>& sources, const std::vector<std::string>& references,
                       const TranslateOptions& options) const {
  return translated_errors([&] {
    ScoredText text{translate(sources, options), {}};
    for (const std::string& reference : references) text.references.push_back({reference});
    ScoringOptions scoring;
    scoring.resamples = 0;
    const TextScores found = score_text(text, scoring);
    const MetricScore &bleu = *found.find("bleu"), &chrf = *found.find("chrf"), &ter = *found.find("ter");
    return Scores{bleu.score,     chrf.score,    ter.score,      bleu.signature,
                  chrf.signature, ter.signature, text.hypotheses};
  });
}

}  // namespace calque

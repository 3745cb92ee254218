// calque tokenizer: train a tokenizer, or use one as a filter.
#include "calque/data/tokenizer.h"

#include <iostream>
#include <optional>

#include "calque/base/error.h"
#include "calque/base/file.h"
#include "calque/base/log.h"
#include "calque/base/text.h"
#include "calque/base/units.h"
#include "calque/checkpoint/checkpoint.h"
#include "calque/cli/command.h"
#include "calque/data/tokenizer_training.h"
#include "calque/kernels/threads.h"

namespace calque::cli {
namespace {

struct TokenizerOptions {
  TokenizerConfig config;
  std::string kind = "bpe";
  bool identity = false;
  std::filesystem::path model;
  std::filesystem::path output;
  std::vector<std::filesystem::path> files;
  bool pieces = false;
  uint64_t seed = 1;
  std::optional<int64_t> threads = {};
};

void train_model(TokenizerOptions& options) {
  Corpus corpus;
  for (const auto& file : options.files) {
    CorpusPart part;
    // A TSV of pairs has a tab in its first line; everything else is text.
    LineReader reader(file);
    std::string_view first;
    const bool tsv = reader.next(first) && first.find('\t') != std::string_view::npos;
    (tsv ? part.pairs : part.text) = file;
    corpus.push_back(part);
  }
  options.config.kind = options.kind == "bpe" ? TokenizerKind::bpe : TokenizerKind::unigram;
  options.config.nfkc = !options.identity;
  set_num_threads(options.threads.value_or(0));
  const Tokenizer tokenizer = train_tokenizer(options.config, corpus, num_threads());
  write_file(options.output, tokenizer.serialized());
  log::info("{}: {} pieces", options.output.string(), format_count(tokenizer.size()));
}

// Of a file, a checkpoint or a run.
Tokenizer open_tokenizer(const std::filesystem::path& model) {
  const std::filesystem::path path = checkpoint_of(model);
  return std::filesystem::is_directory(path) ? Checkpoint(path).tokenizer() : Tokenizer::load(path);
}

void encode(const TokenizerOptions& options) {
  const Tokenizer tokenizer = open_tokenizer(options.model);
  std::string line;
  for (uint64_t number = 1; std::getline(std::cin, line); ++number) {
    if (const auto bad = find_invalid_utf8(line)) {
      throw UserError(fmt::format("stdin:{}: byte {} is not valid UTF-8", number, *bad + 1));
    }
    const auto ids = options.config.sampling > 0
                         ? tokenizer.encode_sampled(line, options.config.sampling, options.seed + number)
                         : tokenizer.encode(line);
    std::vector<std::string> words;
    for (const int32_t id : ids) words.push_back(options.pieces ? tokenizer.piece(id) : std::to_string(id));
    print(join(words, " ") + "\n");
  }
}

void decode(const TokenizerOptions& options) {
  const Tokenizer tokenizer = open_tokenizer(options.model);
  std::string line;
  for (uint64_t number = 1; std::getline(std::cin, line); ++number) {
    std::vector<int32_t> ids;
    std::istringstream words(line);
    for (std::string word; words >> word;) {
      const auto id = parse_count(word);
      if (!id || *id < 0 || *id >= tokenizer.size()) {
        throw UserError(fmt::format("stdin:{}: \"{}\" is not a token id; ids go from 0 to {}", number,
                                    shorten(word, 40), tokenizer.size() - 1));
      }
      ids.push_back(static_cast<int32_t>(*id));
    }
    print(tokenizer.decode(ids) + "\n");
  }
}

}  // namespace

void add_tokenizer_command(CLI::App& app) {
  static TokenizerOptions options;
  CLI::App* tokenizer =
      add_command(app, "tokenizer", "Train a SentencePiece tokenizer; encode and decode with it",
                  "calque tokenizer train -o fr-en.model data/everyday/train.tsv --vocabulary 2000");
  tokenizer->require_subcommand(1);

  CLI::App* train_command =
      add_command(*tokenizer, "train", "Learn pieces from TSV pairs or plain text",
                  "calque tokenizer train -o fr-en.model data/everyday/train.tsv --vocabulary 2000");
  train_command->add_option("FILES", options.files, "TSV or text files, plain or gzip")
      ->required()
      ->type_name("FILE");
  train_command->add_option("-o,--output", options.output, "The model to write")
      ->required()
      ->type_name("FILE");
  train_command->add_option("--vocabulary", options.config.vocabulary, "Vocabulary size")
      ->capture_default_str()
      ->check(CLI::Range(264, 1'000'000));
  train_command->add_option("--kind", options.kind, "How the pieces are learned")
      ->capture_default_str()
      ->check(CLI::IsMember({"bpe", "unigram"}));
  train_command->add_flag("--no-nfkc", options.identity, "No Unicode normalisation");
  train_command->add_option("--threads", options.threads, "Processor threads; 0: all cores")
      ->check(CLI::Range(0, 1024));
  train_command->callback([] { train_model(options); });

  CLI::App* encode_command =
      add_command(*tokenizer, "encode", "Encode text from stdin as ids, one line per line",
                  "echo \"Il fait beau.\" | calque tokenizer encode fr-en.model");
  encode_command
      ->add_option("MODEL", options.model, "A SentencePiece model, a tokenizer.json, a run or a checkpoint")
      ->required()
      ->type_name(wants_run);
  encode_command->add_flag("--pieces", options.pieces, "Print pieces instead of ids");
  encode_command->add_option("--sampling", options.config.sampling, "BPE-dropout or unigram sampling")
      ->check(CLI::Range(0.0, 0.99));
  encode_command->add_option("--seed", options.seed, "Random seed of sampling")->capture_default_str();
  encode_command->callback([] { encode(options); });

  CLI::App* decode_command = add_command(
      *tokenizer, "decode", "Decode ids from stdin to text, one line per line",
      "echo \"Il fait beau.\" | calque tokenizer encode fr-en.model | calque tokenizer decode fr-en.model");
  decode_command
      ->add_option("MODEL", options.model, "A SentencePiece model, a tokenizer.json, a run or a checkpoint")
      ->required()
      ->type_name(wants_run);
  decode_command->callback([] { decode(options); });
}

}  // namespace calque::cli

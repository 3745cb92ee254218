// ByteLevelBpe: byte-level BPE (Radford et al., 2019) as described by a Hugging Face tokenizer.json. The text
// is split by regular expressions, the bytes of each part are mapped to printable characters, and adjacent
// pieces are merged in the order of a list.
#include <unicode/normalizer2.h>
#include <unicode/regex.h>

#include <array>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <queue>
#include <unordered_map>

#include "calque/base/error.h"
#include "calque/base/hash.h"
#include "calque/base/json.h"
#include "calque/base/text.h"
#include "calque/base/unicode.h"
#include "calque/data/tokenizer_model.h"

namespace calque {
namespace {

using nlohmann::json;

// GPT-2's pattern, which the ByteLevel pre-tokenizer uses unless use_regex is false.
constexpr const char* gpt2_pattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

// Printable bytes map to the character with the same code, the others to characters from U+0100 on.
const std::array<char32_t, 256>& byte_characters() {
  static const auto table = [] {
    std::array<char32_t, 256> all{};
    char32_t next = 256;
    for (char32_t byte = 0; byte < 256; ++byte) {
      const bool printable = (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
      all[byte] = printable ? byte : next++;
    }
    return all;
  }();
  return table;
}

// A regular expression of a stranger may need time exponential in the text. Steps of ICU's engine, of about a
// millisecond each.
constexpr int32_t matching_steps = 5000;

// One step of pre-tokenisation: splits the text before and after each match of the pattern.
struct Split {
  std::shared_ptr<icu::RegexPattern> pattern;
};

class ByteLevelBpe : public TokenizerModel {
 public:
  ByteLevelBpe(const std::string& text, std::string name) : name_(std::move(name)) {
    json file = parse_json(text, name_);
    if (!file.is_object() || !file.contains("model") || !file["model"].is_object())
      refuse("not a tokenizer.json");
    try {
      read(file);
    } catch (const json::exception& error) {
      refuse(fmt::format("a value has the wrong type: {}", error.what()));
    }
    json_ = std::move(file);
  }

  std::vector<int32_t> encode(std::string_view text) const override {
    std::vector<int32_t> ids;
    for_each_part(text, [&](std::string_view part) { add_merged(part, nullptr, 0, ids); });
    return ids;
  }

  std::vector<int32_t> encode_sampled(std::string_view text, double sampling, uint64_t seed) const override {
    std::vector<int32_t> ids;
    uint64_t random_state = mix(seed, 0x5A4D);  // mutate: any number gives another random stream
    for_each_part(text, [&](std::string_view part) { add_merged(part, &random_state, sampling, ids); });
    return ids;
  }

  std::string decode(std::span<const int32_t> ids) const override {
    std::string bytes;
    for (const int32_t id : ids) {
      if (is_control(id)) continue;
      for (const char32_t character : code_points(pieces_[static_cast<size_t>(id)])) {
        const auto found = byte_of_.find(character);
        if (found != byte_of_.end()) {
          bytes.push_back(static_cast<char>(found->second));
        } else {
          bytes += to_utf8(std::u32string(1, character));
        }
      }
    }
    return bytes;
  }

  int32_t size() const override { return static_cast<int32_t>(pieces_.size()); }
  const std::string& piece(int32_t id) const override { return pieces_[static_cast<size_t>(id)]; }
  std::optional<int32_t> find(std::string_view piece) const override {
    const auto found = ids_.find(std::string(piece));
    return found == ids_.end() ? std::nullopt : std::optional(found->second);
  }
  bool is_byte(int32_t id) const override {
    return !is_control(id) && code_points(pieces_[static_cast<size_t>(id)]).size() == 1;
  }
  bool is_control(int32_t id) const override { return control_[static_cast<size_t>(id)]; }
  bool begins_word(int32_t id) const override { return piece(id).starts_with("Ġ"); }
  int32_t unknown_id() const override { return -1; }
  int32_t begin_id() const override { return begin_; }
  int32_t end_id() const override { return end_; }
  const char* file_name() const override { return "tokenizer.json"; }

  std::string pruned(std::span<const int32_t> kept) const override {
    json file = json_;
    std::unordered_map<int32_t, int32_t> places;
    for (size_t i = 0; i < kept.size(); ++i) places[kept[i]] = static_cast<int32_t>(i);
    json vocabulary = json::object(), merges = json::array(), added = json::array();
    for (const auto& [text, id] : json_["model"]["vocab"].items()) {
      const auto found = places.find(id.get<int32_t>());
      if (found != places.end()) vocabulary[text] = found->second;
    }
    for (const auto& [left, right] : merge_texts_) {
      if (vocabulary.contains(left) && vocabulary.contains(right) && vocabulary.contains(left + right))
        merges.push_back(json::array({left, right}));
    }
    for (json token : json_.value("added_tokens", json::array())) {
      const auto found = places.find(token["id"].get<int32_t>());
      if (found == places.end()) continue;
      token["id"] = found->second;
      added.push_back(token);
    }
    file["model"]["vocab"] = vocabulary;
    file["model"]["merges"] = merges;
    file["added_tokens"] = added;
    if (places.contains(begin_) && places.contains(end_))
      set_begin_and_end(file, places.at(begin_), places.at(end_));
    return file.dump();
  }

  std::vector<int32_t> parts_of(int32_t id) const override {
    std::vector<int32_t> visited = {id};
    if (is_control(id)) return visited;
    std::vector<int32_t> symbols;
    for (const char32_t character : code_points(piece(id))) {
      if (const auto found = find(to_utf8(std::u32string(1, character)))) symbols.push_back(*found);
    }
    visited.insert(visited.end(), symbols.begin(), symbols.end());
    while (symbols.size() > 1) {
      size_t best = symbols.size();
      Merge best_merge{std::numeric_limits<int32_t>::max(), -1};
      for (size_t i = 0; i + 1 < symbols.size(); ++i) {
        const auto found = merges_.find(pair_key(symbols[i], symbols[i + 1]));
        if (found == merges_.end() || found->second.rank >= best_merge.rank) continue;
        best = i;
        best_merge = found->second;
      }
      if (best == symbols.size()) break;
      symbols[best] = best_merge.id;
      symbols.erase(symbols.begin() + static_cast<int64_t>(best) + 1);
      visited.push_back(best_merge.id);
    }
    return visited;
  }

 private:
  struct Merge {
    int32_t rank, id;
  };

  [[noreturn]] void refuse(const std::string& what, const std::string& help = "") const {
    throw UserError(fmt::format("{}: {}", name_, what), help);
  }

  static uint64_t pair_key(int32_t left, int32_t right) {
    return static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32 | static_cast<uint32_t>(right);
  }

  void read(const json& file) {
    const json& model = file["model"];
    if (model.value("type", "BPE") != "BPE")
      refuse(fmt::format("the tokenizer type {} is not supported",
                         shorten(model["type"].get<std::string>(), 20)),
             "supported are byte-level BPE (tokenizer.json) and SentencePiece (tokenizer.model)");
    ignore_merges_ = model.value("ignore_merges", false);
    for (const char* key : {"end_of_word_suffix", "continuing_subword_prefix"}) {
      if (model.contains(key) && model[key].is_string() && !model[key].get<std::string>().empty())
        refuse(fmt::format("{} is not supported", key));
    }
    if (model.contains("dropout") && model["dropout"].is_number() && model["dropout"].get<double>() != 0)
      refuse("dropout is not supported", "set it to null: the same text would get other ids each time");
    if (!model.at("vocab").is_object() || !model.at("merges").is_array())
      refuse("vocab or merges has the wrong type: expected an object and a list");
    const json added = file.value("added_tokens", json::array());
    size_t count = 0;
    for (const auto& [text, id] : model.at("vocab").items())
      count = std::max<size_t>(count, check_id(id) + 1);
    for (const json& token : added) count = std::max<size_t>(count, check_id(token.at("id")) + 1);
    pieces_.resize(count);
    control_.assign(count, true);  // so that ids without a piece are never decoded
    for (const auto& [text, id] : model["vocab"].items()) {
      pieces_[id.get<size_t>()] = text;
      control_[id.get<size_t>()] = false;
      ids_[text] = id.get<int32_t>();
    }
    for (const json& token : added) {
      const auto id = token["id"].get<size_t>();
      pieces_[id] = token.at("content").get<std::string>();
      control_[id] = token.value("special", true);
      ids_[pieces_[id]] = static_cast<int32_t>(id);
    }
    for (size_t byte = 0; byte < 256; ++byte)
      byte_of_[byte_characters()[byte]] = static_cast<unsigned char>(byte);
    for (size_t byte = 0; byte < 256; ++byte) {
      const auto found = find(to_utf8(std::u32string(1, byte_characters()[byte])));
      byte_ids_[byte] = found.value_or(-1);
    }
    read_merges(model.at("merges"));
    if (file.contains("normalizer") && !file["normalizer"].is_null()) read_normalizer(file["normalizer"]);
    bool byte_level = false;
    if (file.contains("pre_tokenizer") && !file["pre_tokenizer"].is_null())
      byte_level = read_split(file["pre_tokenizer"]);
    if (!byte_level)
      refuse("the tokenizer is not byte-level",
             "use the model's SentencePiece file (tokenizer.model) instead");
    read_begin_and_end(file.value("post_processor", json()));
    for (const int32_t id : {begin_, end_}) {
      if (id < 0 || id >= size())
        refuse("the post-processor has no begin and end tokens", "put its tokenizer_config.json beside it");
    }
  }

  // The first token of the template begins a text. The other token that the template lists ends it; if it
  // lists only one token, that one does both.
  void read_begin_and_end(const json& processor) {
    if (!processor.is_object() || processor.value("type", "") != "TemplateProcessing") return;
    const json known = processor.value("special_tokens", json::object());
    const json single = processor.value("single", json::array());
    if (single.empty() || !single.front().contains("SpecialToken")) return;
    const std::string first = single.front()["SpecialToken"].value("id", "");
    for (const auto& [name, token] : known.items()) {
      const auto id = static_cast<int32_t>(check_id(token.at("ids").at(0)));
      if (name == first) begin_ = id;
      if (name != first || known.size() == 1) end_ = id;
    }
  }

  size_t check_id(const json& id) const {
    if (!id.is_number_unsigned() || id.get<uint64_t>() > 10'000'000) refuse("invalid token id");
    return id.get<size_t>();
  }

  void read_merges(const json& merges) {
    for (const json& merge : merges) {
      std::string left, right;
      if (merge.is_array() && merge.size() == 2) {
        left = merge[0].get<std::string>();
        right = merge[1].get<std::string>();
      } else {
        const auto text = merge.get<std::string>();
        const size_t blank = text.find(' ');
        if (blank == std::string::npos) refuse("invalid merge: expected two pieces, separated by a space");
        left = text.substr(0, blank);
        right = text.substr(blank + 1);
      }
      const auto a = find(left), b = find(right), joined = find(left + right);
      if (!a || !b || !joined)
        refuse(fmt::format("a merge has unknown pieces: {} {}", shorten(left, 30), shorten(right, 30)));
      merges_.try_emplace(pair_key(*a, *b), Merge{static_cast<int32_t>(std::ssize(merges_)), *joined});
      merge_texts_.emplace_back(left, right);
    }
  }

  void read_normalizer(const json& normalizer) {
    if (normalizer.value("type", "") != "NFC")
      refuse(fmt::format("the normalizer {} is not supported; only NFC is",
                         shorten(normalizer.value("type", "?"), 20)));
    nfc_ = true;
  }

  // Adds the splits of a pre-tokenizer. Returns true if it is byte-level.
  bool read_split(const json& step) {
    const std::string type = step.value("type", "");
    if (type == "Sequence") {
      bool bytes = false;
      for (const json& one : step.at("pretokenizers")) bytes = read_split(one) || bytes;
      return bytes;
    }
    if (type == "ByteLevel") {
      if (step.value("add_prefix_space", false)) add_prefix_space_ = true;
      if (step.value("use_regex", true)) add_split(gpt2_pattern);
      return true;
    }
    if (type == "Digits") {
      add_split(step.value("individual_digits", false) ? R"(\p{N})" : R"(\p{N}+)");
      return false;
    }
    if (type == "Split" && step.at("pattern").contains("Regex") && !step.value("invert", false) &&
        step.value("behavior", "") == "Isolated") {
      add_split(step["pattern"]["Regex"].get<std::string>());
      return false;
    }
    refuse(fmt::format("the pre-tokenizer {} is not supported", shorten(type, 20)));
  }

  void add_split(std::string pattern) {
    // ICU's \s matches fewer white-space characters than Hugging Face's does.
    for (size_t at = 0; (at = pattern.find('\\', at)) != std::string::npos; at += 2) {
      if (at + 1 >= pattern.size()) break;
      if (pattern[at + 1] == 's')
        pattern.replace(at, 2, "\\p{White_Space}");
      else if (pattern[at + 1] == 'S')
        pattern.replace(at, 2, "\\P{White_Space}");
    }
    UErrorCode status = U_ZERO_ERROR;
    UParseError place;
    Split split;
    split.pattern.reset(icu::RegexPattern::compile(icu::UnicodeString::fromUTF8(pattern), place, status));
    if (U_FAILURE(status)) refuse("the pre-tokenizer has an invalid regular expression");
    splits_.push_back(std::move(split));
  }

  template <class Use>
  void for_each_part(std::string_view text, Use use) const {
    auto whole =
        icu::UnicodeString::fromUTF8(icu::StringPiece(text.data(), static_cast<int32_t>(text.size())));
    if (nfc_) {
      UErrorCode status = U_ZERO_ERROR;
      whole = icu::Normalizer2::getNFCInstance(status)->normalize(whole, status);
    }
    if (add_prefix_space_ && whole.length() > 0 && whole.charAt(0) != u' ') whole.insert(0, u' ');
    cut(whole, 0, use);
  }

  template <class Use>
  void cut(const icu::UnicodeString& text, size_t step, Use& use) const {
    if (text.isEmpty()) return;
    if (step == splits_.size()) {
      std::string part;
      text.toUTF8String(part);
      use(part);
      return;
    }
    UErrorCode status = U_ZERO_ERROR;
    const std::unique_ptr<icu::RegexMatcher> matcher(splits_[step].pattern->matcher(text, status));
    if (U_SUCCESS(status)) matcher->setTimeLimit(matching_steps, status);
    int32_t at = 0;
    while (U_SUCCESS(status) && matcher->find(status) != 0) {
      const int32_t begin = matcher->start(status), end = matcher->end(status);
      if (begin > at) cut(text.tempSubStringBetween(at, begin), step + 1, use);
      if (end > begin) cut(text.tempSubStringBetween(begin, end), step + 1, use);
      at = end;
    }
    if (U_FAILURE(status))
      throw UserError("the tokenizer's regular expression takes too long or too much memory on this text",
                      "it is in pre_tokenizer of tokenizer.json");
    if (at < text.length()) cut(text.tempSubString(at), step + 1, use);
  }

  // Merges the bytes of a part: the lowest rank first, and the leftmost pair among equal ranks. If
  // `random_state` is not null, each merge is skipped with probability `sampling` (BPE-dropout, Provilkov et
  // al., 2020).
  void add_merged(std::string_view part, uint64_t* random_state, double sampling,
                  std::vector<int32_t>& ids) const {
    if (ignore_merges_ && random_state == nullptr) {
      std::u32string text;
      for (const char byte : part) text += byte_characters()[static_cast<unsigned char>(byte)];
      if (const auto found = find(to_utf8(text))) {
        ids.push_back(*found);
        return;
      }
    }
    struct Symbol {
      int32_t id, before, after;
    };
    std::vector<Symbol> symbols;
    for (const char byte : part) {
      const int32_t id = byte_ids_[static_cast<unsigned char>(byte)];
      if (id < 0) continue;  // the vocabulary has no piece for this byte
      const auto place = static_cast<int32_t>(symbols.size());
      symbols.push_back({id, place - 1, place + 1});
    }
    if (symbols.empty()) return;
    symbols.back().after = -1;
    struct Join {
      int32_t rank, left, left_id, right_id, id;
      bool operator<(const Join& other) const {  // largest: lowest rank, then leftmost
        return rank != other.rank ? rank > other.rank : left > other.left;
      }
    };
    std::priority_queue<Join> queue;
    const auto offer = [&](int32_t left) {
      if (left < 0 || symbols[left].after < 0) return;
      const int32_t right_id = symbols[symbols[left].after].id;
      const auto found = merges_.find(pair_key(symbols[left].id, right_id));
      if (found == merges_.end()) return;
      queue.push({found->second.rank, left, symbols[left].id, right_id, found->second.id});
    };
    for (size_t i = 0; i + 1 < symbols.size(); ++i) offer(static_cast<int32_t>(i));
    while (!queue.empty()) {
      const Join join = queue.top();
      queue.pop();
      Symbol& left = symbols[join.left];
      if (left.id != join.left_id || left.after < 0 || symbols[left.after].id != join.right_id) continue;
      if (random_state != nullptr) {
        *random_state = mix(*random_state, 1);  // mutate: any number gives another random stream
        if (static_cast<double>(*random_state >> 11) * 0x1p-53 < sampling) continue;
      }
      Symbol& right = symbols[left.after];
      left.id = join.id;
      left.after = right.after;
      right.id = -1;
      if (left.after >= 0) symbols[left.after].before = join.left;
      offer(left.before);
      offer(join.left);
    }
    for (int32_t at = 0; at >= 0; at = symbols[at].after) ids.push_back(symbols[at].id);
  }

  std::string name_;
  json json_;
  std::vector<std::string> pieces_;
  std::vector<bool> control_;
  std::unordered_map<std::string, int32_t> ids_;
  std::unordered_map<char32_t, unsigned char> byte_of_;
  std::array<int32_t, 256> byte_ids_{};
  std::unordered_map<uint64_t, Merge> merges_;
  std::vector<std::pair<std::string, std::string>> merge_texts_;
  std::vector<Split> splits_;
  bool ignore_merges_ = false, nfc_ = false, add_prefix_space_ = false;
  int32_t begin_ = -1, end_ = -1;
};

}  // namespace

void set_begin_and_end(json& file, int64_t begin, int64_t end) {
  std::map<int64_t, std::string> names;
  for (const auto& [text, id] : file["model"]["vocab"].items()) {
    if (id == begin || id == end) names[id.get<int64_t>()] = text;
  }
  for (const json& token : file.value("added_tokens", json::array())) {
    const auto id = token.value("id", int64_t{-1});
    if (id == begin || id == end) names[id] = token.value("content", "");
  }
  const json sequence = {{"Sequence", {{"id", "A"}, {"type_id", 0}}}},
             second = {{"Sequence", {{"id", "B"}, {"type_id", 1}}}};
  const json first = {{"SpecialToken", {{"id", names[begin]}, {"type_id", 0}}}};
  json known = json::object();
  for (const auto& [id, name] : names) known[name] = {{"id", name}, {"ids", {id}}, {"tokens", {name}}};
  file["post_processor"] = {{"type", "TemplateProcessing"},
                            {"single", {first, sequence}},
                            {"pair", {first, sequence, second}},
                            {"special_tokens", known}};
}

std::shared_ptr<const TokenizerModel> make_byte_level_bpe(const std::string& text, const std::string& name) {
  return std::make_shared<ByteLevelBpe>(text, name);
}

}  // namespace calque

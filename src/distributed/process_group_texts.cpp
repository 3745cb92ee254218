// What the processes of a group say in words: texts, errors, claims; by the operations on tensors.
#include <ATen/ATen.h>

#include <algorithm>
#include <cstring>

#include "calque/base/error.h"
#include "calque/distributed/process_group.h"
#include "rendezvous.h"

namespace calque {

using torch::Tensor;

namespace {

std::string text(const Tensor& bytes) {
  return {reinterpret_cast<const char*>(bytes.const_data_ptr<uint8_t>()), static_cast<size_t>(bytes.numel())};
}

Tensor as_tensor(const std::string& text) {
  Tensor tensor = torch::empty({static_cast<int64_t>(text.size())}, torch::kUInt8);
  std::copy(text.begin(), text.end(), tensor.mutable_data_ptr<uint8_t>());
  return tensor;
}

}  // namespace

ProcessGroup::Texts ProcessGroup::gather(const std::string& own) {
  if (is_alone()) return {own};
  const Tensor sizes = gather(torch::tensor({static_cast<int64_t>(own.size())}, torch::kInt64)).flatten();
  const int64_t longest = std::max<int64_t>(1, sizes.max().item<int64_t>());
  Tensor padded = torch::zeros({longest}, torch::kUInt8);
  padded.slice(0, 0, static_cast<int64_t>(own.size())).copy_(as_tensor(own));
  const Tensor all = gather(padded);
  std::vector<std::string> texts;
  for (int64_t i = 0; i < size(); ++i) texts.push_back(text(all[i].slice(0, 0, sizes[i].item<int64_t>())));
  return texts;
}

std::string ProcessGroup::broadcast(const std::string& own, int from) {
  if (is_alone()) return own;
  const Tensor length = torch::tensor({static_cast<int64_t>(own.size())}, torch::kInt64);
  broadcast(length, from);
  Tensor content = rank() == from ? as_tensor(own) : torch::empty({length.item<int64_t>()}, torch::kUInt8);
  if (content.numel() > 0) broadcast(content, from);
  return text(content);
}

namespace {

// Each text after its length.
std::string pack(const ProcessGroup::Texts& texts) {
  std::string all;
  for (const std::string& one : texts) {
    const uint64_t size = one.size();
    all.append(reinterpret_cast<const char*>(&size), sizeof size).append(one);
  }
  return all;
}

ProcessGroup::Texts unpack(const std::string& all) {
  ProcessGroup::Texts texts;
  for (size_t at = 0; at < all.size();) {
    uint64_t size = 0;
    std::memcpy(&size, all.data() + at, sizeof size);
    texts.push_back(all.substr(at + sizeof size, size));
    at += sizeof size + size;
  }
  return texts;
}

}  // namespace

std::vector<ProcessGroup::Texts> ProcessGroup::gather(const Texts& own) {
  if (is_alone()) return {own};
  std::vector<Texts> by_rank;
  for (const std::string& one : gather(pack(own))) by_rank.push_back(unpack(one));
  return by_rank;
}

ProcessGroup::Texts ProcessGroup::broadcast(const Texts& texts, int from) {
  return is_alone() ? texts : unpack(broadcast(rank() == from ? pack(texts) : std::string(), from));
}

void ProcessGroup::barrier() { sum(std::vector<double>{0}); }

namespace {

// What a rank says of its work: done, failed through the user's fault (with help), or failed otherwise.
std::string run_and_describe(const std::function<void()>& work, std::exception_ptr& failure) {
  try {
    work();
    return "";
  } catch (const UserError& error) {
    failure = std::current_exception();
    return fmt::format("u{}\n{}", error.what(), error.help());
  } catch (const RankLost&) {
    throw;
  } catch (const std::exception& error) {
    failure = std::current_exception();
    return fmt::format("f{}\n", error.what());
  }
}

void throw_described(const std::string& name, const std::string& description) {
  const size_t end = description.rfind('\n');
  const std::string what = fmt::format("{}: {}", name, description.substr(1, end - 1));
  if (description.front() == 'u') throw UserError(what, description.substr(end + 1));
  throw std::runtime_error(what);
}

}  // namespace

std::string ProcessGroup::from_first(const std::function<std::string()>& make) {
  std::string result;
  everywhere([&] {
    if (is_first()) result = make();
  });
  return broadcast(result);
}

void ProcessGroup::everywhere(const std::function<void()>& work) {
  gather_from_all([&] {
    work();
    return Texts();
  });
}

std::vector<ProcessGroup::Texts> ProcessGroup::gather_from_all(const std::function<Texts()>& make) {
  std::exception_ptr failure;
  Texts own;
  const std::string description = [&] {
    const LongWork work(*this);
    return run_and_describe([&] { own = make(); }, failure);
  }();
  own.insert(own.begin(), description);
  auto all = gather(own);
  if (failure) std::rethrow_exception(failure);
  for (int i = 0; i < size(); ++i) {
    Texts& texts = all[static_cast<size_t>(i)];
    if (!texts.front().empty()) throw_described(name(i), texts.front());
    texts.erase(texts.begin());
  }
  return all;
}

void ProcessGroup::check_alike(const Claims& claims, const std::string& help) {
  if (is_alone()) return;
  Texts own;
  for (const auto& [name, value] : claims) own.insert(own.end(), {name, value});
  std::vector<Claims> all;
  std::vector<std::string> ranks;
  for (const Texts& texts : gather(own)) {
    all.emplace_back();
    for (size_t i = 0; i + 1 < texts.size(); i += 2) all.back().emplace_back(texts[i], texts[i + 1]);
    ranks.push_back(name(static_cast<int>(ranks.size())));
  }
  const std::string difference = describe_difference(all, ranks);
  if (!difference.empty()) throw UserError(difference, help);
}

void ProcessGroup::everywhere_in_turn(const std::function<void()>& work) {
  for (const bool first : {true, false}) {
    everywhere([&] {
      if ((world_.local_rank == 0) == first) work();
    });
    if (is_alone()) return;
  }
}

}  // namespace calque

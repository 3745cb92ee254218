#include "calque/train/part_times.h"

#include <chrono>
#include <cstring>
#include <vector>

namespace calque {
namespace {

using Clock = std::chrono::steady_clock;

struct OpenPart {
  const char* part;  // null: an operation that counts for what it is inside of
  Clock::time_point start;
  double inside = 0;  // of what was opened in it and counts for itself
};

thread_local std::vector<OpenPart> open_parts;
thread_local std::map<std::string, double> part_seconds;

bool is_product(const char* name) {
  for (const char* product :
       {"aten::mm", "aten::addmm", "aten::bmm", "aten::baddbmm", "aten::addmm_", "aten::matmul"}) {
    if (std::strcmp(name, product) == 0) return true;
  }
  return false;
}

const char* part_of(const at::RecordFunction& function) {
  for (const OpenPart& open : open_parts) {
    if (open.part != nullptr && std::strcmp(open.part, "optimizer") == 0) return nullptr;
  }
  if (function.scope() == at::RecordScope::USER_SCOPE) return function.name();
  return is_product(function.name()) ? "products" : nullptr;
}

std::unique_ptr<at::ObserverContext> begin_operation(const at::RecordFunction& function) {
  open_parts.push_back({part_of(function), Clock::now()});
  return nullptr;
}

void end_operation(const at::RecordFunction&, at::ObserverContext*) {
  if (open_parts.empty()) return;  // it was opened before we listened
  const OpenPart done = open_parts.back();
  open_parts.pop_back();
  const double whole = std::chrono::duration<double>(Clock::now() - done.start).count();
  if (done.part != nullptr) part_seconds[done.part] += whole - done.inside;
  if (!open_parts.empty()) open_parts.back().inside += done.part != nullptr ? whole : done.inside;
}

}  // namespace

PartTimes::PartTimes() {
  part_seconds.clear();
  handle_ = at::addThreadLocalCallback(at::RecordFunctionCallback(begin_operation, end_operation)
                                           .scopes({at::RecordScope::FUNCTION, at::RecordScope::USER_SCOPE}));
}

PartTimes::~PartTimes() { at::removeCallback(handle_); }

std::map<std::string, double> PartTimes::seconds() const { return part_seconds; }

}  // namespace calque

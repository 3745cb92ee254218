#include "calque/train/parameter_division.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "calque/train/orthogonalise.h"

namespace calque {
namespace {

// Smaller ones are not worth a call of the optimizer for each piece.
constexpr int64_t smallest_divided_elements = 512;

int64_t rows_of(const TrainedParameter& parameter) {
  return parameter.tensor.dim() == 0 ? 1 : parameter.tensor.size(0);
}

// A matrix that is orthogonalised.
struct MuonMatrix {
  ParameterSlice rows;
  double work;
};

class Division {
 public:
  Division(const std::vector<TrainedParameter>& parameters, OptimizerKind optimizer, size_t ranks)
      : parameters_(parameters), slices_(ranks), work_(ranks), state_(ranks) {
    std::vector<MuonMatrix> matrices;
    for (size_t i = 0; i < parameters.size(); ++i) {
      if (optimizer != OptimizerKind::muon || parameters[i].part_rows.empty()) {
        by_rows_.push_back(i);
        continue;
      }
      int64_t row = 0;
      for (const int64_t rows : parameters[i].part_rows) {
        const int64_t columns = parameters[i].tensor.size(1);
        matrices.push_back({{i, row, row + rows}, orthogonalising_work(rows, columns)});
        row += rows;
      }
    }
    std::stable_sort(matrices.begin(), matrices.end(),
                     [](const MuonMatrix& a, const MuonMatrix& b) { return a.work > b.work; });
    for (const MuonMatrix& matrix : matrices) add_matrix(matrix);
    divide_rows();
    for (auto& slices : slices_) join_neighbours(slices);
  }

  std::vector<std::vector<ParameterSlice>> slices() && { return std::move(slices_); }

 private:
  // The largest come first, each to the rank with the least to do.
  void add_matrix(const MuonMatrix& matrix) {
    size_t to = 0;
    for (size_t rank = 1; rank < slices_.size(); ++rank) {
      if (std::pair(work_[rank], state_[rank]) < std::pair(work_[to], state_[to])) to = rank;
    }
    work_[to] += matrix.work;
    const int64_t columns = parameters_[matrix.rows.parameter].tensor.size(1);
    state_[to] += static_cast<double>((matrix.rows.end - matrix.rows.begin) * columns);
    slices_[to].push_back(matrix.rows);
  }

  // The size up to which ranks are filled if they get `added` together, and none more than its share.
  double filled_to(double added) const {
    std::vector<double> sorted = state_;
    std::sort(sorted.begin(), sorted.end());
    double sum = 0;
    for (size_t lowest = 1; lowest <= sorted.size(); ++lowest) {
      sum += sorted[lowest - 1];
      const double level = (sum + added) / static_cast<double>(lowest);
      if (lowest == sorted.size() || level <= sorted[lowest]) return level;
    }
    return 0;
  }

  void divide_rows() {
    double elements = 0;
    for (const size_t i : by_rows_) elements += static_cast<double>(parameters_[i].tensor.numel());
    const double level = filled_to(2 * elements);  // mean and mean square
    size_t rank = 0;
    double room = 0;  // elements, of ranks up to this one
    const auto open = [&] { room += std::max(0.0, level - state_[rank]) / 2; };
    open();
    for (const size_t i : by_rows_) {
      const int64_t rows = rows_of(parameters_[i]), size = parameters_[i].tensor.numel();
      const double row_size = static_cast<double>(size) / static_cast<double>(rows);
      const int64_t least = size <= smallest_divided_elements ? rows : 1;
      for (int64_t row = 0; row < rows;) {
        const bool is_last = rank + 1 == slices_.size();
        int64_t fitting = std::clamp<int64_t>(std::llround(room / row_size), 0, rows - row);
        if (is_last || (least == rows && room > 0)) fitting = rows - row;
        if (fitting == 0) {
          ++rank;
          open();
          continue;
        }
        slices_[rank].push_back({i, row, row + fitting});
        row += fitting;
        room -= static_cast<double>(fitting) * row_size;
      }
    }
  }

  static void join_neighbours(std::vector<ParameterSlice>& slices) {
    std::sort(slices.begin(), slices.end(), [](const ParameterSlice& a, const ParameterSlice& b) {
      return std::pair(a.parameter, a.begin) < std::pair(b.parameter, b.begin);
    });
    std::vector<ParameterSlice> joined;
    for (const ParameterSlice& slice : slices) {
      if (!joined.empty() && joined.back().parameter == slice.parameter && joined.back().end == slice.begin) {
        joined.back().end = slice.end;
      } else {
        joined.push_back(slice);
      }
    }
    slices = std::move(joined);
  }

  const std::vector<TrainedParameter>& parameters_;
  std::vector<size_t> by_rows_;  // those that AdamW updates
  std::vector<std::vector<ParameterSlice>> slices_;
  std::vector<double> work_, state_;  // by rank; state in elements
};

}  // namespace

std::vector<std::vector<ParameterSlice>> divide_parameters(const std::vector<TrainedParameter>& parameters,
                                                           OptimizerKind optimizer, int ranks) {
  return Division(parameters, optimizer, static_cast<size_t>(ranks)).slices();
}

TrainedParameter view_of(const std::vector<TrainedParameter>& parameters, const ParameterSlice& slice) {
  TrainedParameter view = parameters[slice.parameter];
  if (slice.begin == 0 && slice.end == rows_of(view)) return view;
  view.name += fmt::format("[{}:{}]", slice.begin, slice.end);
  view.tensor = view.tensor.detach().slice(0, slice.begin, slice.end);
  std::vector<int64_t> part_rows;
  int64_t row = 0;
  for (const int64_t rows : view.part_rows) {
    if (row >= slice.begin && row < slice.end) part_rows.push_back(rows);
    row += rows;
  }
  view.part_rows = std::move(part_rows);
  return view;
}

SliceName parse_slice_name(const std::string& name) {
  const size_t open = name.find('['), colon = name.find(':', open), close = name.find(']', colon);
  if (open == std::string::npos || colon == std::string::npos || close == std::string::npos) return {name};
  return {name.substr(0, open) + name.substr(close + 1), true,
          std::stoll(name.substr(open + 1, colon - open - 1)),
          std::stoll(name.substr(colon + 1, close - colon - 1))};
}

}  // namespace calque

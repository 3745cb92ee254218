// How parameters are divided among ranks (ZeRO stage 1; Rajbhandari et al., 2020): whole matrices where Muon
// orthogonalises them, rows where AdamW goes through single elements.
#pragma once

#include <string>
#include <vector>

#include "calque/runs/train_config.h"
#include "calque/train/optimizer.h"

namespace calque {

// Some rows of a parameter, or all.
struct ParameterSlice {
  size_t parameter;  // its index
  int64_t begin, end;
};

// The slices of each rank, at most one after another per parameter. Muon's work is balanced first, then the
// memory of the optimizer's state: momentum for Muon, twice as much for AdamW. The same on every rank.
std::vector<std::vector<ParameterSlice>> divide_parameters(const std::vector<TrainedParameter>& parameters,
                                                           OptimizerKind optimizer, int ranks);

// A view of the rows. Its name says which ones, "embedding.weight[0:100]", unless it has all.
TrainedParameter view_of(const std::vector<TrainedParameter>& parameters, const ParameterSlice& slice);

// What such a name, or one that begins with it, says: "embedding.weight[0:100].mean" are rows 0 to 99 of
// "embedding.weight.mean".
struct SliceName {
  std::string whole;
  bool is_slice = false;
  int64_t begin = 0, end = 0;
};
SliceName parse_slice_name(const std::string& name);

}  // namespace calque
